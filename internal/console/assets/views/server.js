/** One server: its state and what it offers. */

import { clock, duration, fill, firstLine, h, number, plural, short } from '../dom.js';
import { stringify } from '../json.js';
import { itemLink, itemsOf, link, on, serverNamed, state } from '../store.js';
import { crumbs, empty, figures, overviewCrumb, stateMark } from './parts.js';

const TABS = { tools: ['Tools', ['tools']], prompts: ['Prompts', ['prompts']], resources: ['Resources', ['resources', 'templates']] };

export function server(main, route, signal) {
  document.title = `${route.server} · mcpx`;
  const tab = TABS[route.kind] ? route.kind : 'tools';
  const top = h('div', {});
  const body = h('div', {});
  fill(main, top, body);
  let listed;
  const drawBody = () => {
    const now = stringify([serverNamed(route.server)?.state, Object.entries(state.items).map(([kind, all]) => all && itemsOf(route.server, kind))]);
    if (now === listed) return; // keep the elements, so that a click hits its target
    listed = now;
    fill(body, serverNamed(route.server) && [tabs(route.server, tab), lists(route.server, tab)]);
  };
  let shown;
  const draw = () => {
    const now = JSON.stringify([state.status === null, serverNamed(route.server)]);
    if (now === shown) return; // nothing here has changed: keep open parts open
    shown = now;
    const isOpen = top.querySelector('.stderr-box')?.open;
    fill(top, head(route.server));
    const box = top.querySelector('.stderr-box');
    if (box) box.open = isOpen === true; // keep it open when lines are added
    drawBody();
  };
  on('status', draw, signal);
  on('items', drawBody, signal);
  const ticking = setInterval(() => {
    const line = top.querySelector('.retry');
    if (line) line.textContent = retry(serverNamed(route.server));
  }, 1000);
  signal.addEventListener('abort', () => clearInterval(ticking));
  draw();
}

function head(name) {
  const s = serverNamed(name);
  if (!s) return state.status ? empty('No such server', `The schema ${state.schema} has no server named ${name}.`) : empty('Connecting…', 'Loading the servers from mcpx.');
  return [
    crumbs(overviewCrumb(), [s.name]),
    h('div', { class: 'head' }, h('div', { class: 'title' }, h('h1', {}, s.name), stateMark(s)), s.description && h('p', { class: 'lead' }, s.description)),
    s.state !== 'ready' && trouble(s),
    figures(['Transport', s.transport], ['Start-up', s.startup_ms === undefined ? '–' : duration(s.startup_ms)], ['Tools', s.tools], ['Tokens', short(s.tokens), 'in full']),
    s.state === 'ready' && stderr(s, 'Latest lines of stderr'),
  ];
}

/** Returns why a server is not ready, and the time of the next try. */
function trouble(s) {
  return h('section', { class: `trouble ${s.state}`, role: 'status' },
    h('p', {}, h('strong', {}, s.reason || { idle: 'The server does not run. A call starts it.', starting: 'The server is starting.', stopped: 'The server is stopped.' }[s.state] || 'The server is not there.')),
    s.state === 'idle' && s.listed_at && h('p', { class: 'muted' }, `Listed on ${new Date(s.listed_at).toLocaleString()}.`),
    s.retry_at && h('p', { class: 'retry muted' }, retry(s)),
    s.stderr?.length > 0 && h('pre', { class: 'text stderr', tabIndex: 0, 'aria-label': 'Latest lines of stderr' }, s.stderr.join('\n')));
}

function retry(s) {
  const left = Math.ceil((Date.parse(s?.retry_at) - Date.now()) / 1000);
  return left > 0 ? `Next try in ${left} s, at ${clock(s.retry_at)}; a call tries at once.` : 'Trying again now…';
}

function stderr(s, title) {
  return s.stderr?.length > 0 && h('details', { class: 'stderr-box' }, h('summary', {}, title), h('pre', { class: 'text stderr', tabIndex: 0 }, s.stderr.join('\n')));
}

function tabs(name, chosen) {
  return h('div', { class: 'tabs', role: 'navigation', 'aria-label': `What ${name} has` }, Object.entries(TABS).map(([id, [text, kinds]]) => {
    const count = kinds.reduce((n, k) => n + itemsOf(name, k).length, 0);
    return h('a', { class: 'tab', href: link(name, id), data: { key: `tab ${id}` }, 'aria-current': id === chosen ? 'page' : undefined }, text, h('span', { class: 'tab-count' }, number(count)));
  }));
}

function lists(name, tab) {
  const kinds = TABS[tab][1];
  if (kinds.some((k) => state.items[k] === null)) return h('p', { class: 'empty' }, 'Reading the list…');
  const groups = kinds.map((k) => [k, itemsOf(name, k)]).filter(([, list]) => list.length > 0);
  if (groups.length === 0) return empty(`No ${tab}`, serverNamed(name).state === 'ready' ? `This server has no ${tab}.` : 'They appear when the server is ready.');
  return groups.map(([kind, list]) => [
    kind === 'templates' && h('h2', { class: 'list-title' }, 'Templates'),
    h('div', { class: 'items', data: { list: kind } }, list.map((i) => h('a', { class: 'item', href: itemLink(i), data: { key: itemLink(i) } },
      h('span', { class: 'item-name' }, i.name), h('span', { class: 'item-note' }, note(i)), h('span', { class: 'item-text' }, firstLine(i.raw.description) || i.raw.title || (i.name === i.key ? '' : i.key))))),
  ]);
}

function note(i) {
  if (i.kind === 'tools') return i.raw.annotations?.readOnlyHint ? 'read-only' : i.raw.annotations?.destructiveHint ? 'destructive' : '';
  if (i.kind === 'prompts') return i.raw.arguments?.length > 0 ? plural(i.raw.arguments.length, 'argument') : '';
  return i.raw.mimeType ?? '';
}
