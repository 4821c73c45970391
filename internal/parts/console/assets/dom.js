/** Creates elements. Text from upstreams enters the page only as text nodes. */

const PROPERTIES = new Set(['value', 'checked', 'disabled', 'selected', 'open', 'hidden', 'htmlFor', 'tabIndex', 'readOnly', 'srcObject']);

/**
 * Creates an element: h('p', {class: 'note', onclick: f}, 'text', otherElement).
 * @param {string} tag @param {Record<string, any>} [props] @param {...any} children
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false && !PROPERTIES.has(key)) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (PROPERTIES.has(key)) element[key] = value;
    else if (key === 'href' || key === 'src') {
      if (isSafeURL(value)) element.setAttribute(key, value);
    } else element.setAttribute(key, value === true ? '' : value);
  }
  return add(element, ...children);
}

/** Appends children. Arrays are flattened, empty values skipped, other values become text. */
export function add(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Changes the content of an element and keeps the focus on the child with the same data-key and position. */
export function keepFocus(element, change) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset?.key : undefined;
  const alike = () => [...element.querySelectorAll(`[data-key="${CSS.escape(focused)}"]`)];
  const place = focused ? alike().indexOf(document.activeElement) : -1;
  change();
  if (place >= 0) alike()[place]?.focus();
}

/** Replaces all children. */
export function fill(element, ...children) {
  keepFocus(element, () => {
    element.replaceChildren();
    add(element, ...children);
  });
  return element;
}

/** Allows links within the page, to its own files, to the web, and to data created here. */
const isSafeURL = (url) => /^(#|assets\/|https?:\/\/|blob:)/i.test(url);

/** Returns a link to the web, or plain text for any other URL. */
export function outLink(url, text = url) {
  return /^https?:\/\//i.test(url) ? h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, text) : h('span', {}, text);
}

const ICONS = {
  menu: 'M4 6h16M4 12h16M4 18h16',
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14ZM20 20l-4-4',
  sun: 'M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.400M17.6 17.6 19 19M5 19l1.4-1.400M17.6 6.4 19 5',
  moon: 'M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5Z',
  auto: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18ZM12 3v18M12 8h7.5M12 13h9M12 18h6',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5 10 17.5 19.5 7',
  play: 'M7 4.5v15l12-7.5z',
  stop: 'M6 6h12v12H6z',
  right: 'M9 5l7 7-7 7',
  up: 'M6 15l6-6 6 6',
  down: 'M6 9l6 6 6-6',
  close: 'M6 6l12 12M18 6 6 18',
  plus: 'M12 5v14M5 12h14',
  alert: 'M12 3 2 20h20ZM12 10v4M12 17v.5',
  history: 'M4 4v5h5M4.5 9A8.5 8.5 0 1 1 4 14M12 8v4.5l3 2',
  chart: 'M4 20V10M10 20V4M16 20v-7M21 20H3',
  home: 'M4 11 12 4l8 7v9H4Z',
  save: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  restart: 'M20 5v5h-5M19.5 10A8 8 0 1 0 20 14',
  edit: 'M4 20h4L19 9l-4-4L4 16ZM13 7l4 4',
  keyboard: 'M3 6h18v12H3zM7 10h.5M11 10h.5M15 10h.5M8 14h8',
};

/** @param {keyof typeof ICONS} name */
export function icon(name) {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  for (const [key, value] of Object.entries({ class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false' })) svg.setAttribute(key, value);
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** Returns a button. A button with only an icon needs a label. */
export function button(text, onclick, { kind = 'quiet', symbol, label, ...rest } = {}) {
  return h('button', { type: 'button', class: `button ${kind}`, onclick, 'aria-label': label, title: label, ...rest }, symbol && icon(symbol), text && h('span', {}, text));
}

/** Returns a button that copies the result of text(). */
export function copyButton(text, label = 'Copy') {
  const b = button('', async () => {
    await navigator.clipboard?.writeText(text()).catch(() => {});
    b.replaceChildren(icon('check'));
    announce('Copied');
    setTimeout(() => b.replaceChildren(icon('copy')), 1200);
  }, { kind: 'ghost small', symbol: 'copy', label, data: { key: label } });
  return b;
}

/** Offers a file for download. */
export function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Announces a text to screen readers. */
export function announce(text) {
  document.getElementById('live').textContent = text;
}

export const number = (n) => new Intl.NumberFormat('en').format(n);
export const short = (n) => (n < 10_000 ? number(n) : new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(n));
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
export const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round(ms % 60_000 / 1000)} s`);
export const bytes = (n) => (n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KB` : `${(n / (1 << 20)).toFixed(1)} MB`);
export const clock = (time) => new Date(time).toLocaleTimeString();
export const dateTime = (time) => new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** Returns the first line of a description, for a list. */
export const firstLine = (text = '') => text.trim().split(/\n/, 1)[0];
