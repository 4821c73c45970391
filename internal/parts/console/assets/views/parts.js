/** Parts that several views use. */

import { button, duration, h, number, plural, short } from '../dom.js';
import { stateClass, stateWord } from '../states.js';
import { link, state } from '../state.js';

/** Returns the state of a server: a dot and a word. */
export function stateMark(server) {
  return h('span', { class: `state ${stateClass(server)}` }, h('span', { class: 'dot', 'aria-hidden': 'true' }), stateWord(server));
}

/** Returns a short summary of what a server offers and costs. */
export function facts(s) {
  return [
    s.startup_ms !== undefined && duration(s.startup_ms),
    s.state === 'ready' || s.tools > 0 ? plural(s.tools, 'tool') : undefined,
    s.tokens > 0 ? `${short(s.tokens)} tokens` : undefined,
  ].filter(Boolean);
}

/** Returns the breadcrumbs. */
export function crumbs(...parts) {
  return h('nav', { class: 'crumbs', 'aria-label': 'Path' }, parts.map(([text, ...to], i) =>
    i === parts.length - 1 ? h('span', { 'aria-current': 'page' }, text) : [h('a', { href: link(...to), data: { key: `crumb ${i}` } }, text), h('span', { 'aria-hidden': 'true' }, '/')]));
}

export const overviewCrumb = () => [state.profile || 'mcpx'];

/** Returns a row of named figures. */
export const figures = (...list) => h('dl', { class: 'figures' }, list.filter(Boolean).map(([name, value, note]) =>
  h('div', {}, h('dt', {}, name), h('dd', {}, typeof value === 'number' ? number(value) : value, note && [' ', h('small', {}, note)]))));

export const empty = (title, text, ...more) => h('div', { class: 'empty-state' }, h('h2', {}, title), h('p', {}, text), more);

/** Tells the person something. */
export const tell = (title, text) => confirm(title, text, '');

/** Asks a question with two answers. Resolves to whether the person agrees. */
export function confirm(title, text, yes) {
  return new Promise((resolve) => {
    let agreed = false;
    const dialog = h('dialog', { class: 'dialog small', 'aria-labelledby': 'confirm', onclose: () => { dialog.remove(); resolve(agreed); } },
      h('header', {}, h('h2', { id: 'confirm' }, title)), h('div', { class: 'dialog-body' }, h('p', { class: 'pre' }, text)),
      h('footer', {}, yes && button(yes, () => { agreed = true; dialog.close(); }, { kind: 'danger' }), button(yes ? 'No' : 'Close', () => dialog.close())));
    document.body.append(dialog);
    dialog.showModal();
  });
}
