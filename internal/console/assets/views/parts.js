/** Parts that several views use. */

import { duration, h, number, plural, short } from '../dom.js';
import { link, state } from '../store.js';

const STATES = { idle: 'Idle', starting: 'Starting', ready: 'Ready', waiting: 'Waiting', failed: 'Failed', stopped: 'Stopped' };

/** Returns the state of a server: a dot and a word. */
export function stateMark(server) {
  return h('span', { class: `state ${Object.hasOwn(STATES, server.state) ? server.state : ''}` }, h('span', { class: 'dot', 'aria-hidden': 'true' }), STATES[server.state] ?? server.state);
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

export const overviewCrumb = () => [state.schema || 'mcpx'];

/** Returns a row of named figures. */
export const figures = (...list) => h('dl', { class: 'figures' }, list.filter(Boolean).map(([name, value, note]) =>
  h('div', {}, h('dt', {}, name), h('dd', {}, typeof value === 'number' ? number(value) : value, note && [' ', h('small', {}, note)]))));

export const empty = (title, text, ...more) => h('div', { class: 'empty-state' }, h('h3', {}, title), h('p', {}, text), more);
