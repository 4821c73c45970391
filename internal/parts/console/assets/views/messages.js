/** The JSON-RPC messages of this page's session, or between mcpx and a server. */

import { ask } from '../api.js';
import { bytes, clock, copyButton, fill, h } from '../dom.js';
import { parse, stringify } from '../json.js';
import { mayControl, on, servers, state } from '../state.js';
import { append } from './pane.js';

const POLL = 1000;
const KEPT = 300; // of a server
const OWN = ''; // this page's session

/** @returns {import('./pane.js').Pane} */
export function messages(lines, isShown) {
  let words = '';
  let chosen = OWN;
  let of = []; // of the chosen server
  let last = 0; // the number of its newest message
  let drawn; // the newest of this page's messages that is drawn
  let timer = 0;
  const chooser = h('select', { 'aria-label': 'Session', onchange: () => {
    chosen = chooser.value;
    of = [];
    last = 0;
    drawAll();
    follow();
  } });
  const offer = () => {
    const names = mayControl() ? servers().filter((s) => s.state !== 'disabled').map((s) => s.name) : [];
    if (names.join('\n') === [...chooser.options].slice(1).map((o) => o.value).join('\n')) return; // it may be open
    if (!names.includes(chosen)) chosen = OWN;
    fill(chooser, h('option', { value: OWN }, 'this page'), names.map((n) => h('option', { value: n, selected: n === chosen }, n)));
  };
  const wanted = (m) => words === '' || m.text.toLowerCase().includes(words);
  const drawAll = () => {
    const all = chosen === OWN ? state.messages : of;
    const shown = all.filter(wanted).map(row);
    fill(lines, shown.length > 0 ? shown : h('li', { class: 'empty' }, chosen === OWN ? 'No message yet.' : `Messages between mcpx and ${chosen} appear here from now on.`));
    drawn = state.messages.at(-1);
  };
  /** Reads the messages of the chosen server while they are shown. */
  const follow = async () => {
    clearTimeout(timer);
    if (chosen === OWN || !isShown()) return;
    const server = chosen;
    if (document.visibilityState === 'visible') {
      const found = await ask('messages', { server, after: String(last) }).catch(() => []);
      if (server !== chosen || !isShown()) return;
      if (found.length > 0 && of.length === 0) fill(lines);
      last = found.at(-1)?.number ?? last;
      for (const m of found) m.session = server;
      of = [...of, ...found].slice(-KEPT);
      for (const m of found.filter(wanted)) append(lines, row(m));
    }
    timer = setTimeout(follow, POLL);
  };
  on('messages', () => {
    if (chosen !== OWN || !isShown()) return;
    const news = state.messages.slice(state.messages.indexOf(drawn) + 1);
    if (drawn === undefined) fill(lines);
    drawn = state.messages.at(-1);
    for (const m of news.filter(wanted)) append(lines, row(m));
  });
  on('status', offer);
  offer();
  return {
    tools: [chooser],
    draw(filter) {
      words = filter;
      drawAll();
      follow();
    },
    clear() {
      if (chosen === OWN) state.messages.length = 0;
      of = [];
    },
    shown: (is) => { if (is) follow(); else clearTimeout(timer); },
  };
}

/** Returns a message as one line that opens. */
function row(m) {
  const body = h('div', {});
  const details = h('details', { ontoggle: () => details.open && !body.firstChild && fill(body, h('pre', { class: 'text stderr', tabIndex: 0 }, pretty(m.text))) },
    h('summary', {}, h('span', { class: 'log-text' }, title(m)), h('span', { class: 'muted' }, ` ${bytes(m.bytes)}`)), body);
  return h('li', { class: `log-line message-line ${m.received ? 'received' : 'sent'}` }, h('time', {}, clock(m.at)), h('span', { class: 'log-kind' }, m.received ? '← received' : '→ sent'), details, copyButton(() => m.text, 'Copy the message'));
}

const METHODS = 1000; // whose responses may still come
const methods = new Map(); // of requests, by who sent them and their ID

/** Returns what a message is: its method, or what it responds to. */
function title({ text, received, session }) {
  const method = /^\{(?:"jsonrpc":"2\.0",)?(?:"id":(?:"[^"]*"|[\d.]+),)?"method":"([^"]*)"/.exec(text)?.[1] ?? /"method":"([^"]{1,80})"/.exec(text.slice(0, 200))?.[1];
  const id = /"id":("[^"]{0,60}"|\d{1,20})/.exec(text.slice(0, 200))?.[1];
  const tool = method === 'tools/call' ? /"name":"([^"]{1,80})"/.exec(text)?.[1] : undefined;
  const key = `${session} ${method ? received : !received} ${id}`;
  if (method && id) methods.set(key, method);
  if (methods.size > METHODS) methods.delete(methods.keys().next().value);
  const what = method ?? [/^\{[^{]*"error":/.test(text) ? 'error' : 'result', methods.get(key) && `of ${methods.get(key)}`].filter(Boolean).join(' ');
  return [what, tool, id && `#${id}`].filter(Boolean).join(' ');
}

function pretty(text) {
  try {
    return stringify(parse(text), 2);
  } catch {
    return text; // it was cut
  }
}
