/** The shared parts of the panes of the log. */

import { clock, h } from '../dom.js';

/**
 * A pane shows one kind of lines. It draws only while it is shown.
 * @typedef {object} Pane
 * @property {HTMLElement[]} tools controls besides the filter
 * @property {(words: string) => void} draw
 * @property {() => void} clear
 * @property {(on: boolean) => void} [shown] the pane is shown or hidden
 */

/** The most rows of a pane. */
export const SHOWN = 500;

/** Appends a row, and stays at the end if the person is there. */
export function append(lines, row) {
  const atEnd = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 20;
  lines.append(row);
  while (lines.children.length > SHOWN) lines.firstChild.remove();
  if (atEnd) lines.scrollTop = lines.scrollHeight;
}

/** Returns a row of the panel. */
export const line = (kind, { at, title, from }, ...text) => h('li', { class: `log-line ${kind}` }, h('time', {}, at ? clock(at) : ''),
  h('span', { class: 'log-kind' }, title), h('span', { class: 'log-from' }, from ?? ''), h('span', { class: 'log-text' }, text));
