/** The calls of this browser: run again, export, delete. */

import { button, dateTime, download, duration, fill, h, plural } from '../dom.js';
import { stringify } from '../json.js';
import { raw, RENDER } from '../render.js';
import { OUTCOMES, prepared } from '../runs.js';
import { on, setHistory, state } from '../state.js';
import { confirm, crumbs, empty, overviewCrumb } from './parts.js';

export function history(main, _, signal) {
  document.title = 'History · mcpx';
  const draw = () => fill(main, content());
  on('history', draw, signal);
  draw();
}

/** Opens the called item with the same arguments. */
function open(entry, now) {
  const name = entry.kind === 'resources' ? entry.key : entry.name;
  const hash = `#/${[entry.schema, entry.server, entry.kind, name].map(encodeURIComponent).join('/')}`;
  prepared.set(hash, { args: entry.arguments, now });
  location.hash = hash;
}

/** Deletes a call and focuses the next one. */
function drop(entry, i) {
  setHistory(state.history.filter((e) => e !== entry));
  document.querySelectorAll('.history-name')[i]?.focus();
}

async function clear() {
  if (await confirm('Clear the history?', `${plural(state.history.length, 'call')} with arguments and results will be gone from this browser.`, 'Clear')) setHistory([]);
}

const opened = new Set(); // calls whose results are shown

/** Returns the result of a call as far as it was kept. */
function kept(entry) {
  if (entry.error !== undefined) return h('div', { class: 'failure' }, h('p', { class: 'pre' }, entry.error));
  if (entry.result === undefined) return h('p', { class: 'empty' }, 'No result was kept.');
  if (entry.result?.cut === true) return [h('p', { class: 'empty' }, 'Only the beginning of this result was kept.'), h('pre', { class: 'text', tabIndex: 0 }, entry.result.beginning)];
  try {
    return RENDER[entry.kind](entry.result, entry.server);
  } catch {
    return raw(entry.result);
  }
}

/** Returns the button that shows the result of a call, and the place for it. */
function resultOf(entry) {
  const place = h('div', { class: 'history-result output', hidden: true });
  const toggle = button('Result', () => {
    if (!opened.delete(entry.at)) opened.add(entry.at);
    draw();
  }, { kind: 'small', data: { key: `result ${entry.at}` } });
  const draw = () => {
    place.hidden = !opened.has(entry.at);
    toggle.setAttribute('aria-expanded', String(!place.hidden));
    fill(place, !place.hidden && h('div', { class: 'result-body' }, kept(entry)));
  };
  draw();
  return [toggle, place];
}

function content() {
  const all = state.history;
  const head = [crumbs(overviewCrumb(), ['History']), h('div', { class: 'head' }, h('div', { class: 'title' }, h('h1', {}, 'History'), h('span', { class: 'spring' }),
    all.length > 0 && [
      button('Export', () => download('mcpx-history.json', stringify(all, 2), 'application/json'), { symbol: 'save', label: 'Export as JSON' }),
      button('Clear', clear, { symbol: 'trash', label: 'Clear the history' }),
    ]),
  h('p', { class: 'lead' }, 'Kept in this browser alone, arguments and results included.'))];
  if (all.length === 0) return [head, empty('No calls yet', 'Calls that you run appear here.')];
  return [head, h('ol', { class: 'history', data: { list: 'history' } }, all.map((entry, i) => {
    const args = stringify(entry.arguments ?? {});
    const [toggle, place] = resultOf(entry);
    return h('li', {}, h('span', { class: `outcome ${entry.outcome}` }, OUTCOMES[entry.outcome] ?? entry.outcome),
      h('button', { type: 'button', class: 'history-name', data: { key: `open ${entry.at}` }, onclick: () => open(entry, false) },
        h('strong', {}, entry.name), h('span', { class: 'muted' }, ` ${entry.server}${entry.schema === state.profile ? '' : ` · ${entry.schema}`}`)),
      h('code', { class: 'history-args' }, args === '{}' ? '' : args),
      h('span', { class: 'history-when muted' }, `${dateTime(entry.at)} · ${duration(entry.ms ?? 0)}`),
      h('span', { class: 'history-actions' }, toggle, button('Run again', () => open(entry, true), { kind: 'small', symbol: 'play', data: { key: `run ${entry.at}` } }),
        button('', () => drop(entry, i), { kind: 'ghost small', symbol: 'close', label: `Delete the call of ${entry.name}` })), place);
  }))];
}
