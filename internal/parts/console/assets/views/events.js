/** Log messages, progress, notifications and state changes. */

import { fill, h } from '../dom.js';
import { setLevel } from '../session.js';
import { emit, note, on, state } from '../state.js';
import { append, line, SHOWN } from './pane.js';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** @returns {import('./pane.js').Pane} */
export function events(lines, isShown) {
  let words = '';
  const level = h('select', { 'aria-label': 'Level of log messages', onchange: () => setLevel(level.value).catch((error) => note({ kind: 'session', level: 'error', from: 'mcpx', text: error.message })) },
    h('option', { value: '' }, 'any level'), LEVELS.map((l) => h('option', { value: l }, l)));
  const wanted = (e) => words === '' || `${e.kind} ${e.level ?? ''} ${e.from ?? ''} ${e.text}`.toLowerCase().includes(words);
  const row = (e) => line(e.level ?? '', { at: e.at, title: e.level && e.kind === 'log' ? e.level : e.kind, from: e.from }, e.text);
  on('log', (e) => { if (e && isShown() && wanted(e)) append(lines, row(e)); });
  return {
    tools: [level],
    draw(filter) {
      words = filter;
      fill(lines, state.log.filter(wanted).slice(-SHOWN).map(row));
    },
    clear() {
      state.log.length = 0;
      emit('log');
    },
  };
}
