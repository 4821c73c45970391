/** The calls of this browser: run again, export, delete. */

import { button, download, duration, fill, h } from '../dom.js';
import { stringify } from '../json.js';
import { OUTCOMES, prepared } from '../runs.js';
import { on, setHistory, state } from '../store.js';
import { crumbs, empty, overviewCrumb } from './parts.js';

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

function content() {
  const all = state.history;
  const head = [crumbs(overviewCrumb(), ['History']), h('div', { class: 'head' }, h('div', { class: 'title' }, h('h1', {}, 'History'), h('span', { class: 'spring' }),
    all.length > 0 && [
      button('Export', () => download('mcpx-history.json', stringify(all, 2), 'application/json'), { symbol: 'save', label: 'Export as JSON' }),
      button('Clear', () => setHistory([]), { symbol: 'trash', label: 'Clear the history' }),
    ]),
  h('p', { class: 'lead' }, 'Kept in this browser alone, arguments and results included.'))];
  if (all.length === 0) return [head, empty('No calls yet', 'Calls that you run appear here.')];
  return [head, h('ol', { class: 'history', data: { list: 'history' } }, all.map((entry, i) => {
    const args = stringify(entry.arguments ?? {});
    return h('li', {}, h('span', { class: `outcome ${entry.outcome}` }, OUTCOMES[entry.outcome] ?? entry.outcome),
      h('button', { type: 'button', class: 'history-name', data: { key: `open ${entry.at}` }, onclick: () => open(entry, false) },
        h('strong', {}, entry.name), h('span', { class: 'muted' }, ` ${entry.server}${entry.schema === state.schema ? '' : ` · ${entry.schema}`}`)),
      h('code', { class: 'history-args' }, args === '{}' ? '' : args),
      h('span', { class: 'history-when muted' }, `${new Date(entry.at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })} · ${duration(entry.ms ?? 0)}`),
      h('span', { class: 'history-actions' }, button('Run again', () => open(entry, true), { kind: 'small', symbol: 'play', data: { key: `run ${entry.at}` } }),
        button('', () => drop(entry, i), { kind: 'ghost small', symbol: 'close', label: `Delete the call of ${entry.name}` })));
  }))];
}
