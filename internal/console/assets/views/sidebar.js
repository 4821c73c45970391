/** The servers, and the search over everything they offer. */

import { button, fill, firstLine, h, icon } from '../dom.js';
import { itemLink, link, on, schemas, servers, state } from '../store.js';
import { facts, stateMark } from './parts.js';

const FOUND = 60;
const KINDS = { tools: 'Tool', prompts: 'Prompt', resources: 'Resource', templates: 'Template' };

export function sidebar(element, { current, toggleTheme, themeName, showShortcuts }) {
  const search = h('input', {
    type: 'search', id: 'search', placeholder: 'Search', 'aria-label': 'Search tools, prompts and resources of all servers',
    autocomplete: 'off', spellcheck: 'false', oninput: () => draw(),
    onkeydown: (event) => {
      if (event.key === 'Enter') list.querySelector('a')?.click();
      if (event.key === 'Escape') {
        search.value = '';
        draw();
      }
    },
  });
  const chooser = h('select', { id: 'schema', 'aria-label': 'Schema', onchange: () => { location.hash = `#/${encodeURIComponent(chooser.value)}`; } });
  const schemaRow = h('div', { class: 'schema-row' }, h('label', { htmlFor: 'schema' }, 'Schema'), chooser);
  const list = h('div', { class: 'nav-list', data: { list: 'servers' } });
  const foot = h('div', { class: 'nav-foot' });
  const theme = button('', () => { toggleTheme(); drawTheme(); }, { kind: 'ghost', symbol: 'auto', label: 'Theme' });
  const drawTheme = () => {
    const name = themeName();
    theme.replaceChildren(icon({ light: 'sun', dark: 'moon', system: 'auto' }[name]));
    theme.title = `Theme: ${name}`;
    theme.setAttribute('aria-label', `Theme: ${name}. Change it`);
  };

  let offered = '';
  const drawChooser = (names) => {
    const now = JSON.stringify([names, state.schema]);
    if (now === offered) return; // it may be open
    offered = now;
    schemaRow.hidden = names.length < 2;
    fill(chooser, names.map((n) => h('option', { value: n, selected: n === state.schema }, n)));
  };
  let drawn = '';
  const draw = () => {
    const names = schemas();
    const now = JSON.stringify([names, state.schema, servers(), current(), search.value, search.value && Object.values(state.items).map((l) => l?.length)]);
    if (now === drawn) return; // keep the elements, so that a click hits its target
    drawn = now;
    drawChooser(names);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    fill(list, words.length > 0 ? results(words) : [
      h('h2', { class: 'nav-title' }, 'Servers'),
      servers().map(serverLink),
      servers().length === 0 && h('p', { class: 'nav-note' }, state.status ? 'This schema has no servers.' : 'Connecting…'),
    ]);
    const here = current();
    fill(foot, [['home', 'Overview', []], ['chart', 'Tokens', ['~tokens']], ['history', 'History', ['~history']]].map(([symbol, text, to]) =>
      h('a', { href: link(...to), data: { key: text }, class: 'nav-link', 'aria-current': (here.page ?? '') === (to[0] ?? '') && !here.server ? 'page' : undefined }, icon(symbol), text)));
  };
  const serverLink = (s) => h('a', { class: 'nav-server', href: link(s.name), data: { key: s.name }, 'aria-current': current().server === s.name ? 'page' : undefined },
    h('span', { class: 'nav-name' }, s.name), stateMark(s), h('span', { class: 'nav-facts' }, s.state === 'ready' || s.state === 'idle' ? facts(s).join(' · ') : s.reason ?? ''));
  const results = (words) => {
    const found = find(words);
    return [
      h('h2', { class: 'nav-title' }, found.length === 0 ? 'Nothing found' : `${found.length > FOUND ? `First ${FOUND} of ${found.length}` : found.length} found`),
      found.slice(0, FOUND).map((i) => h('a', { class: 'nav-item', href: itemLink(i), data: { key: itemLink(i) } },
        h('span', { class: 'nav-name' }, i.name), h('span', { class: 'nav-kind' }, KINDS[i.kind]), h('span', { class: 'nav-facts' }, `${i.server} · ${firstLine(i.raw.description) || i.key}`))),
    ];
  };

  fill(element,
    h('div', { class: 'nav-head' }, h('a', { class: 'brand', href: '#/' }, h('img', { src: 'assets/icon.svg', alt: '', width: 20, height: 20 }), 'mcpx'),
      h('span', { class: 'spring' }), button('', showShortcuts, { kind: 'ghost wide-only', symbol: 'keyboard', label: 'Keyboard shortcuts' }), theme),
    schemaRow, h('div', { class: 'search' }, icon('search'), search, h('kbd', {}, '/')), list, foot);
  drawTheme();
  for (const topic of ['status', 'items', 'route']) on(topic, draw);
  draw();
}

/** Returns the items with all words, best first: matches in the name before the description. */
function find(words) {
  const ranked = [];
  for (const item of Object.values(state.items).flat()) {
    if (!item) continue;
    const name = `${item.name} ${item.raw.title ?? ''} ${item.server}`.toLowerCase();
    const text = `${name} ${item.key} ${item.raw.description ?? ''}`.toLowerCase();
    if (words.every((w) => text.includes(w))) ranked.push([words.reduce((sum, w) => sum + (item.name.toLowerCase().startsWith(w) ? 3 : name.includes(w) ? 2 : 0), 0), item]);
  }
  return ranked.sort((a, b) => b[0] - a[0]).map(([, item]) => item);
}
