/** The last lines that the processes of servers wrote to stderr. */

import { fill, h } from '../dom.js';
import { on, servers } from '../state.js';
import { line } from './pane.js';

/** @returns {import('./pane.js').Pane} */
export function stderr(lines, isShown) {
  let words = '';
  let cleared = new Map(); // server → its last line when the person cleared the pane
  const rows = () => servers().flatMap((s) => {
    const all = s.stderr ?? [];
    return all.slice(all.lastIndexOf(cleared.get(s.name)) + 1).map((text) => [s.name, text]);
  });
  const draw = () => {
    const shown = rows().filter(([name, text]) => words === '' || `${name} ${text}`.toLowerCase().includes(words));
    fill(lines, shown.length > 0 ? shown.map(([from, text]) => line('', { title: 'stderr', from }, text)) : h('li', { class: 'empty' }, 'No server has written to stderr.'));
  };
  on('status', () => { if (isShown()) draw(); });
  return {
    tools: [],
    draw(filter) {
      words = filter;
      draw();
    },
    clear() {
      cleared = new Map(servers().map((s) => [s.name, s.stderr?.at(-1)]));
    },
  };
}
