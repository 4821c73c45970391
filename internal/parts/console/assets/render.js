/** Shows results. Text from upstreams never becomes markup. */

import { bytes, button, copyButton, download, h, icon, outLink, plural } from './dom.js';
import { isObject, parseComposite, stringify } from './json.js';
import { markdown } from './markdown.js';
import { link } from './state.js';

const IMAGES = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/(wav|x-wav|wave|mpeg|mp3|mp4|aac|ogg|webm|flac|x-flac)$/;
const TEXT_SHOWN = 20_000;
const CHILDREN_SHOWN = 100;

/** Show a result by the kind of its item: (result, server) => elements. */
export const RENDER = { tools: toolResult, prompts: promptResult, resources: resourceResult };

/** The content of a tool's result. @param {any} result @param {string} server */
function toolResult(result, server) {
  const structured = result.structuredContent;
  const twin = structured === undefined ? undefined : stringify(structured);
  const isTwin = (c) => c?.type === 'text' && twin !== undefined && stringify(parseComposite(c.text)) === twin;
  const content = Array.isArray(result.content) ? result.content : [];
  const shown = content.filter((c) => !isTwin(c));
  return [
    structured !== undefined && block('Structured content', tree(structured), () => stringify(structured, 2)),
    shown.map((c) => contentBlock(c, server)),
    content.length === 0 && structured === undefined && h('p', { class: 'empty' }, 'The result is empty.'),
  ];
}

/** The messages of a prompt. */
function promptResult(result, server) {
  return [
    result.description && h('p', { class: 'lead' }, result.description),
    (result.messages ?? []).map((m) => h('div', { class: 'message' }, h('span', { class: 'role' }, m.role),
      [m.content ?? []].flat().map((c) => contentBlock(c, server)))),
  ];
}

/** The contents of a resource. */
function resourceResult(result) {
  return (result.contents ?? []).map((c) => resourceBlock(c));
}

/** One block of content, by its type. */
export function contentBlock(c, server) {
  switch (isObject(c) ? c.type : '') {
    case 'text':
      return textBlock(String(c.text ?? ''));
    case 'image':
    case 'audio':
      return mediaBlock(c.data, c.mimeType);
    case 'resource':
      return resourceBlock(c.resource ?? {});
    case 'resource_link':
      return h('a', { class: 'resource-link', href: link(server, 'resources', String(c.uri)) },
        h('strong', {}, c.title ?? c.name ?? c.uri), h('code', {}, c.uri), c.description && h('span', {}, c.description));
    default:
      return block(isObject(c) && c.type ? String(c.type) : 'Content', tree(c), () => stringify(c, 2));
  }
}

function block(title, body, copy, ...actions) {
  return h('section', { class: 'block' }, h('header', {}, h('h4', {}, title), h('span', { class: 'spring' }), actions, copy && copyButton(copy)), body);
}

function textBlock(text, title = 'Text') {
  const value = parseComposite(text);
  return value === undefined ? block(title, plain(text), () => text) : block(title === 'Text' ? 'JSON text' : title, tree(value), () => text);
}

/** Returns a text; a long text is completed on demand. */
function plain(text) {
  const pre = h('pre', { class: 'text', tabIndex: 0 }, text.slice(0, TEXT_SHOWN));
  if (text.length <= TEXT_SHOWN) return pre;
  const more = button(`Show all ${bytes(text.length)}`, () => { pre.textContent = text; more.remove(); }, { kind: 'small' });
  return h('div', {}, pre, more);
}

const isMarkdown = (r) => /^text\/(x-)?markdown\b/i.test(r.mimeType ?? '') || !r.mimeType && /\.(md|markdown)$/i.test(r.uri ?? '');

/** Returns a text in Markdown, and a button that shows its source. */
function markdownBlock(text, title) {
  const body = h('div', {});
  let isSource = false;
  const toggle = h('button', { type: 'button', class: 'button small', 'aria-pressed': 'false', onclick: () => { isSource = !isSource; draw(); } }, 'Source');
  const draw = () => {
    toggle.setAttribute('aria-pressed', String(isSource));
    body.replaceChildren(isSource || text.length > TEXT_SHOWN ? plain(text) : markdown(text));
  };
  draw();
  return block(title, body, () => text, text.length <= TEXT_SHOWN && toggle);
}

function resourceBlock(r) {
  const title = [r.uri, r.mimeType].filter(Boolean).join(' · ');
  if (typeof r.text === 'string' && isMarkdown(r)) return markdownBlock(r.text, title);
  if (typeof r.text === 'string') return textBlock(r.text, title);
  if (typeof r.blob === 'string') return mediaBlock(r.blob, r.mimeType, title);
  return block(title || 'Resource', tree(r), () => stringify(r, 2));
}

/** Returns an image, a sound, or a file to download. */
function mediaBlock(data, type = 'application/octet-stream', title = type) {
  let content;
  try {
    content = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  } catch {
    return block(title, h('p', { class: 'empty' }, 'The data is not Base64.'));
  }
  const isImage = IMAGES.test(type);
  const keep = button(bytes(content.length), () => download(`mcpx.${/\/([a-z0-9]+)/.exec(type)?.[1] ?? 'bin'}`, content, 'application/octet-stream'), { kind: 'ghost small', symbol: 'save', label: 'Download' });
  if (!isImage && !AUDIO.test(type)) return block(title, h('p', { class: 'empty' }, `${bytes(content.length)} of binary data.`), null, keep);
  const src = URL.createObjectURL(new Blob([content], { type }));
  const broken = () => body.replaceChildren(h('p', { class: 'empty' }, `The browser cannot show this as ${type}.`));
  const media = isImage ? h('img', { src, alt: 'Image of the result', onerror: () => broken() }) : h('audio', { src, controls: true, onerror: () => broken() });
  const body = h('div', { class: 'media' }, media);
  return block(title, body, null, keep);
}

/** Returns a JSON value as a collapsible tree. */
export function tree(value) {
  return h('div', { class: 'tree' }, node(undefined, value, 0));
}

function node(key, value, depth) {
  const label = key === undefined ? null : [h('span', { class: typeof key === 'number' ? 'key index' : 'key' }, key), h('span', { class: 'punct' }, ': ')];
  if (value === null || typeof value !== 'object') return h('div', { class: 'leaf' }, label, leaf(value));
  const entries = Array.isArray(value) ? value.map((v, i) => [i, v]) : Object.entries(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  if (entries.length === 0) return h('div', { class: 'leaf' }, label, h('span', { class: 'punct' }, open + close));
  const children = h('div', { class: 'children' });
  let shown = 0;
  const more = () => {
    children.querySelector(':scope > .more')?.remove();
    for (const [k, v] of entries.slice(shown, shown + CHILDREN_SHOWN)) children.append(node(k, v, depth + 1));
    shown += CHILDREN_SHOWN;
    if (shown < entries.length) children.append(button(`${entries.length - shown} more`, more, { kind: 'small more' }));
  };
  const details = h('details', { ontoggle: () => details.open && shown === 0 && more() },
    h('summary', {}, icon('right'), label, h('span', { class: 'punct' }, open),
      h('span', { class: 'count' }, plural(entries.length, Array.isArray(value) ? 'item' : 'key')), h('span', { class: 'punct' }, close)), children);
  details.open = depth < 2 && entries.length <= CHILDREN_SHOWN;
  return details;
}

function leaf(value) {
  if (typeof value !== 'string') return h('span', { class: value === null ? 'null' : typeof value === 'boolean' ? 'boolean' : 'number' }, String(value));
  const text = h('span', { class: 'string' }, /^https?:\/\/\S+$/.test(value) ? ['"', outLink(value), '"'] : JSON.stringify(value.slice(0, 1000)));
  if (value.length <= 1000) return text;
  const more = button(`${bytes(value.length)}: show all`, () => { text.textContent = JSON.stringify(value); more.remove(); }, { kind: 'small' });
  return [text, more];
}

/** Returns the original value as JSON. */
export function raw(value) {
  return block('Raw JSON', plain(stringify(value, 2) ?? ''), () => stringify(value, 2));
}
