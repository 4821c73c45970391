/** The panel below: events, JSON-RPC messages, and stderr. */

import { button, fill, h } from '../dom.js';
import { load, on, save, state } from '../state.js';
import { events } from './events.js';
import { messages } from './messages.js';
import { stderr } from './stderr.js';

export function log(element) {
  let open = load('mcpx.log', false) === true;
  let paused = false;
  let words = '';
  const lines = h('ol', { class: 'log-lines', tabIndex: 0, 'aria-label': 'Messages' });
  const isShown = (pane) => () => open && !paused && panes[chosen] === pane;
  const panes = {};
  for (const [name, make] of Object.entries({ Events: events, Messages: messages, stderr })) panes[name] = make(lines, () => isShown(panes[name])());
  let chosen = 'Events';

  const count = h('span', { class: 'muted' });
  const filter = h('input', { type: 'search', placeholder: 'Filter', 'aria-label': 'Filter the log', oninput: () => { words = filter.value.toLowerCase(); redraw(); } });
  const pause = h('button', { type: 'button', class: 'button small', 'aria-pressed': 'false', onclick: () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    if (!paused) redraw();
  } }, 'Pause');
  const title = h('button', { type: 'button', class: 'log-title', onclick: () => toggle() });
  const switches = Object.keys(panes).map((name) => h('button', { type: 'button', class: 'tab', 'aria-pressed': 'false', onclick: () => choose(name) }, name));
  const tools = h('div', { class: 'log-tools' });
  const bar = h('header', {}, title, count, h('div', { class: 'switch log-switch', role: 'group', 'aria-label': 'Show' }, switches), h('span', { class: 'spring' }), tools);

  const redraw = () => {
    panes[chosen].draw(words);
    lines.scrollTop = lines.scrollHeight;
  };
  const choose = (name) => {
    panes[chosen].shown?.(false);
    chosen = name;
    switches.forEach((s) => s.setAttribute('aria-pressed', String(s.textContent === chosen)));
    fill(tools, panes[chosen].tools, filter, pause, button('Clear', () => { panes[chosen].clear(); redraw(); }, { kind: 'small' }));
    panes[chosen].shown?.(open);
    if (open) redraw();
  };
  const toggle = (to = !open) => {
    open = to;
    save('mcpx.log', String(open));
    element.classList.toggle('open', open);
    title.setAttribute('aria-expanded', String(open));
    fill(title, h('span', { class: 'chevron', 'aria-hidden': 'true' }), 'Log');
    panes[chosen].shown?.(open);
    if (open) redraw();
  };
  const counted = () => { count.textContent = state.log.length > 0 ? String(state.log.length) : ''; };
  on('log', counted);
  fill(element, bar, lines);
  choose('Events');
  toggle(open);
  counted();
  return toggle;
}
