/** The panel with log messages, progress and notifications. */

import { button, clock, fill, h } from '../dom.js';
import { setLevel } from '../session.js';
import { load, note, on, state } from '../store.js';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const SHOWN = 500;

export function log(element) {
  let open = load('mcpx.log', false) === true;
  let paused = false;
  let words = '';
  const lines = h('ol', { class: 'log-lines', tabIndex: 0, 'aria-label': 'Messages' });
  const count = h('span', { class: 'muted' });
  const filter = h('input', { type: 'search', placeholder: 'Filter', 'aria-label': 'Filter the log', oninput: () => { words = filter.value.toLowerCase(); redraw(); } });
  const level = h('select', { 'aria-label': 'Level of log messages', onchange: () => setLevel(level.value).catch((error) => note({ kind: 'session', level: 'error', from: 'mcpx', text: error.message })) },
    h('option', { value: '' }, 'any level'), LEVELS.map((l) => h('option', { value: l }, l)));
  const pause = h('button', { type: 'button', class: 'button small', 'aria-pressed': 'false', onclick: () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    if (!paused) redraw();
  } }, 'Pause');
  const title = h('button', { type: 'button', class: 'log-title', onclick: () => toggle() });
  const bar = h('header', {}, title, count, h('span', { class: 'spring' }),
    h('div', { class: 'log-tools' }, filter, level, pause, button('Clear', () => { state.log.length = 0; redraw(); }, { kind: 'small' })));

  const wanted = (e) => words === '' || `${e.kind} ${e.level ?? ''} ${e.from ?? ''} ${e.text}`.toLowerCase().includes(words);
  const row = (e) => h('li', { class: `log-line ${e.level ?? ''}` }, h('time', {}, clock(e.at)),
    h('span', { class: 'log-kind' }, e.level && e.kind === 'log' ? e.level : e.kind), h('span', { class: 'log-from' }, e.from ?? ''), h('span', { class: 'log-text' }, e.text));
  const counted = () => { count.textContent = state.log.length > 0 ? String(state.log.length) : ''; };
  const redraw = () => {
    fill(lines, state.log.filter(wanted).slice(-SHOWN).map(row));
    lines.scrollTop = lines.scrollHeight;
    counted();
  };
  const toggle = (to = !open) => {
    open = to;
    try { localStorage.setItem('mcpx.log', String(open)); } catch { /* kept for this visit */ }
    element.classList.toggle('open', open);
    title.setAttribute('aria-expanded', String(open));
    fill(title, h('span', { class: 'chevron', 'aria-hidden': 'true' }), 'Log');
    if (open) redraw();
  };
  on('log', (e) => {
    counted();
    if (!open || paused || !wanted(e)) return;
    const atEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 20;
    lines.append(row(e));
    if (lines.children.length > SHOWN) lines.firstChild.remove();
    if (atEnd) lines.scrollTop = lines.scrollHeight;
  });
  fill(element, bar, lines);
  toggle(open);
  counted();
  return toggle;
}
