/** A resource to read and subscribe to, or a template for its URI. */

import { button, clock, fill, h, plural } from '../dom.js';
import { createForm } from '../form.js';
import { lastRun, prepared, start } from '../runs.js';
import { complete, subscribe, unsubscribe } from '../session.js';
import { itemLink, itemNamed, itemsOf, on, state } from '../state.js';
import { drawRun, missing } from './call.js';
import { crumbs, empty, overviewCrumb } from './parts.js';

export function resource(main, route, signal) {
  document.title = `${route.name} · mcpx`;
  // A resource need not be listed: templates and links lead to others.
  const known = () => itemsOf(route.server, 'resources').find((i) => i.key === route.name) ?? { kind: 'resources', key: route.name, name: route.name, server: route.server, raw: {} };
  const item = known();
  const output = h('section', { class: 'output', 'aria-label': 'Contents' });
  const live = h('p', { class: 'muted', role: 'status' });
  const trouble = h('p', { class: 'field-error', role: 'alert', hidden: true });
  const read = button('Read', () => start(known()), { kind: 'primary', symbol: 'play' });
  const follow = button('', async () => {
    follow.disabled = true;
    trouble.hidden = true;
    try {
      await (state.subscriptions.has(item.key) ? unsubscribe : subscribe)(item.key);
    } catch (error) {
      trouble.hidden = false;
      trouble.textContent = error.message;
    }
    follow.disabled = false;
  }, { label: 'Subscribe' });
  const draw = () => {
    const s = state.subscriptions.get(item.key);
    fill(follow, h('span', {}, s ? 'Unsubscribe' : 'Subscribe'));
    follow.setAttribute('aria-label', s ? 'Unsubscribe' : 'Subscribe');
    live.textContent = !s ? '' : s.count === 0 ? 'Subscribed. Nothing has changed since.' : `Updated at ${clock(s.at)}, ${plural(s.count, 'update')} so far.`;
  };
  const top = h('div', {});
  const drawTop = () => fill(top, head(known()));
  fill(main, top, h('div', { class: 'actions' }, read, follow, live), trouble, output);
  on('items', drawTop, signal);
  drawTop();
  fill(output, empty('Not read yet', 'Read it once, or subscribe and see it change.'));
  let again = false; // changed since the last read began
  const refresh = () => {
    again = lastRun(item)?.outcome === 'running';
    if (!again) start(known());
  };
  on('run', (run) => {
    if (run !== lastRun(item)) return; // another resource, or an older read
    drawRun(output, run);
    if (again && run.outcome !== 'running') refresh();
  }, signal);
  on('subscriptions', draw, signal);
  on('updated', (uri) => { if (uri === item.key) { draw(); refresh(); } }, signal);
  if (lastRun(item)) drawRun(output, lastRun(item));
  if (prepared.get(itemLink(item))?.now) start(known());
  prepared.delete(itemLink(item));
  draw();
  const followed = state.subscriptions.get(item.key);
  if (followed?.count > 0 && followed.at > (lastRun(item)?.began ?? 0)) refresh(); // changed while another view was open
}

const head = (item) => [
  crumbs(overviewCrumb(), [item.server, item.server], ['Resources', item.server, 'resources'], [item.name]),
  h('div', { class: 'head' }, h('h1', {}, item.raw.title ?? item.name),
    h('p', {}, h('code', {}, item.key), item.raw.mimeType && h('span', { class: 'badge' }, item.raw.mimeType)),
    item.raw.description && h('p', { class: 'lead pre' }, item.raw.description)),
];

export function template(main, route, signal) {
  document.title = `${route.name} · mcpx`;
  let drawn = false;
  const draw = () => {
    const item = itemNamed(route.server, 'templates', route.name);
    if (!drawn) fill(main, crumbs(overviewCrumb(), [route.server, route.server], ['Resources', route.server, 'resources'], [item?.name ?? route.name]), item ? page(item) : missing(route));
    drawn ||= Boolean(item);
  };
  on('items', draw, signal);
  on('status', draw, signal);
  draw();
}

/** @param {import('../state.js').Item} item */
function page(item) {
  const names = variables(item.key);
  const schema = { type: 'object', properties: Object.fromEntries(names.map((n) => [n, { type: 'string' }])), required: names };
  const form = createForm(schema, { suggest: (name, value, others) => complete({ type: 'ref/resource', uri: item.key }, name, value, others) });
  const uri = h('code', {}, item.key);
  const redraw = () => { uri.textContent = expand(item.key, form.get()); };
  const open = () => {
    if (form.check().length > 0) return form.focusError();
    location.hash = `#/${[state.profile, item.server, 'resources', expand(item.key, form.get())].map(encodeURIComponent).join('/')}`;
  };
  return [
    h('div', { class: 'head' }, h('h1', {}, item.raw.title ?? item.name), item.raw.description && h('p', { class: 'lead pre' }, item.raw.description)),
    h('form', { class: 'panel', novalidate: true, oninput: redraw, onsubmit: (event) => { event.preventDefault(); open(); } },
      h('header', {}, h('h2', {}, 'Variables')), h('div', { class: 'panel-body' }, form.el, h('p', { class: 'uri' }, uri)),
      h('footer', {}, h('button', { type: 'submit', class: 'button primary' }, 'Open'))),
  ];
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;
const plainName = (v) => v.replace(/(\*|:\d+)$/, '');

const variables = (text) => [...new Set([...text.matchAll(EXPRESSION)].flatMap((m) => m[2].split(',').map(plainName)))];

/** Fills a URI template (RFC 6570) with text values. */
function expand(text, values) {
  const forms = { '': ['', ','], '+': ['', ','], '#': ['#', ','], '.': ['.', '.'], '/': ['/', '/'], ';': [';', ';'], '?': ['?', '&'], '&': ['&', '&'] };
  return text.replace(EXPRESSION, (whole, operator, list) => {
    const [first, between] = forms[operator];
    const encode = operator === '+' || operator === '#' ? encodeURI : encodeURIComponent;
    const parts = list.split(',').map(plainName).filter((n) => values[n] !== undefined)
      .map((n) => (/[;?&]/.test(operator) ? `${n}=${encode(values[n])}` : encode(values[n])));
    return parts.length > 0 ? first + parts.join(between) : Object.keys(values).length > 0 ? '' : whole;
  });
}
