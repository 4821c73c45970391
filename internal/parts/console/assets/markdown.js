/** Shows Markdown as elements. Only common marks count; everything else stays text. */

import { h, outLink } from './dom.js';

const FENCE = /^ {0,3}(```|~~~)/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const STARTS = /^ {0,3}(#{1,6}\s|>|```|~~~|([-*_])(\s*\2){2,}\s*$)/;

/** Returns the elements of a text. @param {string} text */
export function markdown(text) {
  return h('div', { class: 'markdown' }, blocks(text.split(/\r?\n/)));
}

const DEPTH = 8; // of quotes and lists

function blocks(lines, depth = 0) {
  if (depth > DEPTH) return h('p', {}, lines.join('\n'));
  const found = [];
  for (let i = 0; i < lines.length;) {
    const [element, next] = block(lines, i, depth);
    if (element) found.push(element);
    i = next;
  }
  return found;
}

/** Returns the block that begins at a line, and the line after it. */
function block(lines, i, depth) {
  const line = lines[i];
  if (line.trim() === '') return [null, i + 1];
  if (FENCE.test(line)) return fence(lines, i);
  const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading) return [h(`h${Math.min(heading[1].length + 2, 6)}`, {}, inline(heading[2])), i + 1]; // below the headings of the page
  if (/^ {0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) return [h('hr', {}), i + 1];
  if (/^ {0,3}>/.test(line)) {
    const end = after(lines, i, (l) => /^ {0,3}>/.test(l));
    return [h('blockquote', {}, blocks(lines.slice(i, end).map((l) => l.replace(/^ {0,3}> ?/, '')), depth + 1)), end];
  }
  if (ITEM.test(line)) return list(lines, i, depth);
  if (line.includes('|') && /^[\s|:-]+$/.test(lines[i + 1] ?? '') && lines[i + 1].includes('-')) return table(lines, i);
  const end = after(lines, i + 1, (l) => l.trim() !== '' && !STARTS.test(l) && !ITEM.test(l));
  return [h('p', {}, inline(lines.slice(i, end).join('\n'))), end];
}

/** Returns the first line from i on that does not fit. */
function after(lines, i, fits) {
  while (i < lines.length && fits(lines[i])) i++;
  return i;
}

function fence(lines, i) {
  const mark = FENCE.exec(lines[i])[1];
  const end = after(lines, i + 1, (l) => !l.trim().startsWith(mark));
  return [h('pre', { class: 'text stderr', tabIndex: 0 }, lines.slice(i + 1, end).join('\n')), end + 1];
}

function list(lines, i, depth) {
  const [, indent, mark] = ITEM.exec(lines[i]);
  const items = [];
  while (i < lines.length) {
    const item = ITEM.exec(lines[i]);
    if (!item || item[1].length !== indent.length) break;
    const end = after(lines, i + 1, (l) => l.trim() !== '' && (!ITEM.test(l) || ITEM.exec(l)[1].length > indent.length) && !STARTS.test(l));
    const rest = lines.slice(i + 1, end);
    const nested = rest.findIndex((l) => ITEM.test(l));
    const own = nested < 0 ? rest : rest.slice(0, nested);
    items.push(h('li', {}, inline([item[3], ...own.map((l) => l.trim())].join('\n')), nested >= 0 && blocks(rest.slice(nested), depth + 1)));
    i = after(lines, end, (l) => l.trim() === '' && ITEM.test(lines[end + 1] ?? ''));
  }
  return [h(/\d/.test(mark) ? 'ol' : 'ul', {}, items), i];
}

function table(lines, i) {
  const cells = (l) => l.trim().replace(/^\||\|$/g, '').split('|').map((c) => inline(c.trim()));
  const end = after(lines, i + 2, (l) => l.includes('|'));
  return [h('div', { class: 'table-scroll' }, h('table', {}, h('thead', {}, h('tr', {}, cells(lines[i]).map((c) => h('th', { scope: 'col' }, c)))),
    h('tbody', {}, lines.slice(i + 2, end).map((l) => h('tr', {}, cells(l).map((c) => h('td', {}, c))))))), end];
}

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|!?\[([^\]]*)\]\(([^)\s]+)[^)]*\)|(https?:\/\/[^\s<>)]+)/g;

/** Returns a text with its marks as elements. */
function inline(text) {
  const parts = [];
  let done = 0;
  for (const m of text.matchAll(INLINE)) {
    parts.push(text.slice(done, m.index));
    done = m.index + m[0].length;
    if (m[1]) parts.push(h('code', {}, m[1]));
    else if (m[2] ?? m[3]) parts.push(h('strong', {}, m[2] ?? m[3]));
    else if (m[4]) parts.push(h('em', {}, m[4]));
    else if (m[6]) parts.push(outLink(m[6], m[5] || m[6]));
    else parts.push(outLink(m[7]));
  }
  return [...parts, text.slice(done)];
}
