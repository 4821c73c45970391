/** A tool or a prompt: its form, the call, the result. */

import { ask } from '../api.js';
import { announce, bytes, button, clock, copyButton, duration, fill, h, icon, keepFocus, number, plural } from '../dom.js';
import { createForm, createJSONEditor } from '../form.js';
import { stringify } from '../json.js';
import { raw, RENDER, tree } from '../render.js';
import { lastRun, OUTCOMES, prepared, start } from '../runs.js';
import { validate } from '../schema.js';
import { complete } from '../session.js';
import { isFailing } from '../states.js';
import { itemLink, itemNamed, on, serverNamed, state } from '../state.js';
import { crumbs, empty, overviewCrumb } from './parts.js';

const HINTS = [['readOnlyHint', true, 'Read-only', 'good'], ['destructiveHint', true, 'Destructive', 'bad'], ['idempotentHint', true, 'Idempotent', ''], ['openWorldHint', true, 'Open world', '']];

export function call(main, route, signal) {
  document.title = `${route.name} · mcpx`;
  let shown = '';
  let input;
  const draw = () => {
    const item = itemNamed(route.server, route.kind, route.name);
    const s = serverNamed(route.server);
    const now = item ? stringify(item.raw) : JSON.stringify([state.items[route.kind] === null, s?.state, s?.reason]);
    if (now === shown) return; // the list was read again, but this item has not changed
    shown = now;
    if (item) keepFocus(main, () => { input = page(main, item, signal, input?.typed()); });
    else {
      const again = prepared.get(location.hash);
      if (again && state.items[route.kind] !== null) again.now = false; // do not run it later
      fill(main, crumbs(overviewCrumb(), [route.server, route.server], [route.name]), missing(route));
    }
  };
  on('items', draw, signal);
  on('status', draw, signal);
  draw();
}

/** Returns why an item cannot be shown. */
export function missing(route) {
  const s = serverNamed(route.server);
  if (!state.status || s?.state === 'ready' && state.items[route.kind] === null) return h('p', { class: 'empty' }, 'Reading the list…');
  if (!s) return empty(`There is no server ${route.server}`, `The profile ${state.profile} has no server of that name.`);
  if (isFailing(s)) return empty(`${route.name} is not there`, `The server ${s.name} has failed: ${s.reason}`);
  const reasons = { starting: 'is starting. Its lists appear when it is ready.', idle: 'does not run, and listed no such thing when it did.', stopped: 'is stopped.', disabled: 'is disabled.' };
  return empty(`${route.name} is not there`, `The server ${s.name} ${reasons[s.state] ?? 'does not list it now.'}`);
}

/** Draws the page, and keeps the text of the previous one. */
function page(main, item, signal, typed) {
  const { raw: definition } = item;
  const input = panel(item);
  const output = h('section', { class: 'output', 'aria-label': 'Result' });
  const cost = h('p', { class: 'cost muted' });
  const more = h('div', { class: 'more-about' });
  const draw = (run) => {
    if (!run || run !== lastRun(item)) return; // the call of another item
    drawRun(output, run);
    input.busy(run.outcome === 'running' ? run : null);
    const below = input.el.getBoundingClientRect().bottom <= output.getBoundingClientRect().top; // one column: the result may be out of view
    if (below && run.outcome !== 'running') output.scrollIntoView({ block: 'nearest' });
  };
  fill(main,
    crumbs(overviewCrumb(), [item.server, item.server], [item.kind === 'tools' ? 'Tools' : 'Prompts', item.server, item.kind], [item.name]),
    h('div', { class: 'head' }, h('div', { class: 'title' }, h('h1', {}, item.name), definition.title && h('span', { class: 'muted' }, definition.title), badges(definition.annotations)),
      description(definition.description), cost),
    h('div', { class: 'bench' }, input.el, output), more);
  if (item.kind === 'tools') drawReading(item, cost, more);
  fill(output, empty('No result yet', 'Fill in the form and run it.', h('p', {}, h('kbd', {}, 'Ctrl'), ' ', h('kbd', {}, 'Enter'))));
  on('run', draw, signal);
  draw(lastRun(item));
  const ready = prepared.get(itemLink(item));
  prepared.delete(itemLink(item));
  if (ready ?? typed) input.use(ready ?? typed);
  else if (lastRun(item)) input.use({ args: lastRun(item).args });
  return input;
}

/** Shows what a tool costs, what the agent reads of it, and its schemas. */
async function drawReading(item, cost, more) {
  const definition = (title, value) => value && folded(title, h('div', { class: 'panel-body' }, raw(value)));
  const schemas = [definition('Input schema', item.raw.inputSchema), definition('Output schema', item.raw.outputSchema)];
  fill(more, schemas);
  const reading = await ask('tool', { server: item.server, tool: item.name }).catch(() => null);
  if (!reading) return;
  fill(cost, `${plural(reading.tokens, 'token')} in full, ${reading.line ? `${number(reading.line_tokens)} in a listing` : 'too many tools for a line in the listing'}, ${number(reading.inspect_tokens)} with inspect`);
  fill(more, folded('What the agent reads', h('div', { class: 'panel-body reading' },
    h('h3', {}, `In the listing of ${item.server}`), reading.line ? h('pre', { class: 'text stderr', tabIndex: 0 }, reading.line) : h('p', { class: 'muted' }, 'The server has too many tools. The agent finds this one by search.'),
    h('h3', {}, `inspect("${item.server}", "${item.name}")`), h('pre', { class: 'text stderr', tabIndex: 0 }, reading.inspect))), schemas);
}

const folded = (title, body) => h('details', { class: 'panel folded' }, h('summary', {}, icon('right'), title), body);

function description(text = '') {
  if (text.length < 400) return text && h('p', { class: 'lead pre' }, text);
  return h('details', { class: 'long' }, h('summary', {}, h('span', { class: 'lead' }, `${text.slice(0, 200).trimEnd()}…`)), h('p', { class: 'lead pre' }, text));
}

const badges = (annotations = {}) => HINTS.filter(([key, value]) => annotations[key] === value).map(([, , text, kind]) => h('span', { class: `badge ${kind}` }, text));

/** The arguments, as a form or as JSON. */
function panel(item) {
  const schema = item.kind === 'tools' ? item.raw.inputSchema ?? {} : promptSchema(item.raw);
  const suggest = item.kind === 'prompts' ? (name, value, others) => complete({ type: 'ref/prompt', name: item.key }, name, value, others) : undefined;
  const form = createForm(schema, { suggest });
  const editor = createJSONEditor();
  let json = false;
  let run = null;
  const body = h('div', { class: 'panel-body' });
  const anyway = button('Send anyway', () => go(true), { kind: 'small', hidden: true });
  const runButton = h('button', { type: 'submit', class: 'button primary' });
  const cancel = button('Cancel', () => run?.cancel(), { kind: 'danger', symbol: 'stop', hidden: true });
  const toggles = ['Form', 'JSON'].map((text) => h('button', { type: 'button', class: 'tab', 'aria-pressed': 'false', onclick: () => choose(text === 'JSON') }, text));

  const choose = (wantJSON) => {
    if (wantJSON !== json) {
      if (wantJSON) editor.set(form.get());
      else {
        const value = editor.get();
        if (value === undefined) return;
        form.set(value);
      }
      json = wantJSON;
    }
    toggles.forEach((t, i) => t.setAttribute('aria-pressed', String((i === 1) === json)));
    fill(body, json ? editor.el : form.isEmpty ? h('p', { class: 'empty' }, `This ${item.kind === 'tools' ? 'tool' : 'prompt'} takes no arguments.`) : form.el);
  };
  const go = (unchecked = false) => {
    if (run) return;
    const args = json ? editor.get() : form.get();
    if (args === undefined) return;
    const errors = json ? validate(schema, args) : form.check();
    if (json) editor.show(errors);
    anyway.hidden = errors.length === 0;
    if (errors.length > 0 && !unchecked) {
      announce(`${errors.length === 1 ? 'One problem' : `${errors.length} problems`} in the arguments`);
      if (!json) form.focusError();
      return;
    }
    anyway.hidden = true;
    start(item, args);
  };
  const busy = (now) => {
    run = now;
    runButton.disabled = Boolean(now);
    cancel.hidden = !now;
    fill(runButton, icon('play'), h('span', {}, now ? 'Running…' : item.kind === 'tools' ? 'Run' : 'Get prompt'));
  };
  const el = h('form', {
    class: 'panel', novalidate: true, onsubmit: (event) => { event.preventDefault(); go(); },
    onkeydown: (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); go(); } },
  }, h('header', {}, h('h2', {}, 'Arguments'), h('span', { class: 'spring' }), h('div', { class: 'switch', role: 'group', 'aria-label': 'Edit as' }, toggles)),
  body, h('footer', {}, runButton, cancel, anyway));
  busy(null);
  choose(false);
  return {
    el, busy,
    /** Returns the current text of the JSON, or the readable values of the form. */
    typed: () => (json ? { text: editor.text() } : { args: form.get() }),
    use({ args, text, now }) {
      choose(text !== undefined);
      if (json) return editor.write(text);
      form.set(args);
      if (now) go();
    },
  };
}

/** Returns a schema for a prompt's arguments, which are strings. */
function promptSchema(prompt) {
  const list = prompt.arguments ?? [];
  const properties = Object.fromEntries(list.map((a) => [a.name, { type: 'string', description: a.description, title: a.title }]));
  return { type: 'object', properties, required: list.filter((a) => a.required).map((a) => a.name), additionalProperties: false };
}

/** Draws a call: its progress or its outcome. */
export function drawRun(place, run) {
  if (run.outcome === 'running') return fill(place, h('header', { class: 'result-head' }, outcome(run),
    h('span', { class: 'muted' }, `since ${clock(run.began)}`)), progress(run.progress));
  const body = h('div', { class: 'result-body' });
  let isRaw = false;
  const toggle = h('button', { type: 'button', class: 'button small', 'aria-pressed': 'false', onclick: () => { isRaw = !isRaw; draw(); } }, 'Raw JSON');
  const draw = () => {
    toggle.setAttribute('aria-pressed', String(isRaw));
    fill(body, run.outcome === 'cancelled' ? h('p', { class: 'empty' }, 'You have canceled this call.') : run.error ? failure(run.error)
      : isRaw ? raw(run.result) : RENDER[run.item.kind](run.result, run.item.server));
  };
  draw();
  const figures = h('span', { class: 'result-figures muted' });
  const drawFigures = () => { figures.textContent = [duration(run.ms), run.result && bytes(run.size), run.result && tokensOf(run)].filter(Boolean).join(' · '); };
  drawFigures();
  count(run).then(drawFigures);
  return fill(place,
    h('header', { class: 'result-head' }, outcome(run), figures,
      run.result && h('span', { class: 'result-actions' }, toggle, copyButton(() => stringify(run.result, 2), 'Copy the result'))),
    body, run.outcome === 'ok' && run.item.kind === 'tools' && selector(run));
}

const COUNTED = 2 << 20; // larger results are not sent to mcpx to count their tokens

/** Counts the tokens of a tool's result, exactly. Without a count the figure is an estimate. */
async function count(run) {
  if (run.item.kind !== 'tools' || !run.result || run.tokens !== undefined || run.size > COUNTED) return;
  run.tokens = (await ask('preview', {}, { result: run.result }).catch(() => null))?.tokens;
}

/** Returns the tokens of a result's text. An image costs what its model charges, which mcpx does not know. */
function tokensOf(run) {
  const items = [run.result?.content ?? run.result?.contents ?? []].flat();
  const media = items.filter((c) => c?.type === 'image' || c?.type === 'audio' || c?.blob !== undefined || c?.resource?.blob !== undefined);
  const estimate = () => Math.ceil((run.size - media.reduce((n, c) => n + (c.data ?? c.blob ?? c.resource.blob).length, 0)) / 4);
  const text = run.tokens === undefined ? `≈ ${number(estimate())} tokens` : plural(run.tokens, 'token');
  return media.length > 0 ? `${text} and ${plural(media.length, 'file')}` : text;
}

/** Returns a field for a select, and what it would leave of the result for the agent. */
function selector(run) {
  const field = h('input', { type: 'text', class: 'code', 'aria-label': 'Select', placeholder: 'id, user.login where state = open limit 5', spellcheck: 'false', autocomplete: 'off', value: run.select ?? '' });
  const answer = h('div', { role: 'status' });
  const preview = async () => {
    run.select = field.value.trim();
    if (!run.select) return void fill(answer);
    try {
      const p = await ask('preview', {}, { result: run.result, select: run.select });
      const saved = p.tokens - p.selected;
      fill(answer, h('p', { class: 'saved' }, `${plural(p.selected, 'token')} instead of ${number(p.tokens)}`, saved > 0 && [': ', h('strong', {}, `${Math.round(saved / p.tokens * 100)} % less`)]),
        h('pre', { class: 'text stderr', tabIndex: 0 }, p.text));
    } catch (error) {
      fill(answer, h('p', { class: 'field-error' }, error.message));
    }
  };
  return h('details', { class: 'selector', open: Boolean(run.select) }, h('summary', {}, icon('right'), 'Select a part of it'),
    h('p', { class: 'muted' }, 'What the agent reads if it adds this select to its call.'),
    h('form', { class: 'select-row', novalidate: true, onsubmit: (event) => { event.preventDefault(); preview(); } }, field, h('button', { type: 'submit', class: 'button' }, 'Preview')), answer);
}

const outcome = (run) => h('span', { class: `outcome ${run.outcome}` },
  run.outcome === 'running' ? h('span', { class: 'spinner', 'aria-hidden': 'true' }) : icon({ ok: 'check', cancelled: 'stop' }[run.outcome] ?? 'alert'), OUTCOMES[run.outcome]);

function failure(error) {
  return h('div', { class: 'failure' }, h('p', { class: 'pre' }, error.message), error.code !== undefined && h('p', { class: 'muted' }, `JSON-RPC error ${error.code}`), error.data !== undefined && tree(error.data));
}

function progress(p) {
  if (!p) return h('div', { class: 'progress' }, h('progress', { 'aria-label': 'Progress' }));
  const share = p.total > 0 ? `${Math.round(p.progress / p.total * 100)} %` : String(p.progress);
  const bar = p.total > 0 ? { max: p.total, value: Math.min(p.progress, p.total) } : {};
  return h('div', { class: 'progress' }, h('progress', { 'aria-label': 'Progress', ...bar }), h('span', {}, [share, p.message].filter(Boolean).join(' · ')));
}
