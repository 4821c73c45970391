/** The servers, and the search over everything they offer. */

import { ask } from '../api.js';
import { button, fill, firstLine, h, icon, plural } from '../dom.js';
import { grouped, isFailing, needsPerson } from '../states.js';
import { itemLink, itemNamed, link, on, profiles, servers, state } from '../state.js';
import { facts, stateMark } from './parts.js';

const FOUND = 60;
const SERVERS_FOUND = 5;
const DENSE = 25; // with more servers, each has one line
const SEARCH_PAUSE = 150; // ms without a key before mcpx is asked
const KINDS = { tools: 'Tool', prompts: 'Prompt', resources: 'Resource', templates: 'Template' };

export function sidebar(element, { current, toggleTheme, themeName, showShortcuts }) {
  const search = h('input', {
    type: 'search', id: 'search', placeholder: 'Search', 'aria-label': 'Search tools, prompts and resources of all servers',
    autocomplete: 'off', spellcheck: 'false', oninput: () => { askSoon(); draw(); },
    onkeydown: (event) => {
      if (event.key === 'Enter') list.querySelector('a')?.click();
      if (event.key === 'Escape') {
        search.value = '';
        draw();
      }
    },
  });
  const chooser = h('select', { id: 'profile', 'aria-label': 'Profile', onchange: () => { location.hash = `#/${encodeURIComponent(chooser.value)}`; } });
  const profileRow = h('div', { class: 'profile-row' }, h('label', { htmlFor: 'profile' }, 'Profile'), chooser);
  const list = h('div', { class: 'nav-list', data: { list: 'servers' } });
  const foot = h('div', { class: 'nav-foot' });
  const theme = button('', () => { toggleTheme(); drawTheme(); }, { kind: 'ghost', symbol: 'auto', label: 'Theme' });
  const drawTheme = () => {
    const name = themeName();
    theme.replaceChildren(icon({ light: 'sun', dark: 'moon', system: 'auto' }[name]));
    theme.title = `Theme: ${name}`;
    theme.setAttribute('aria-label', `Theme: ${name}. Change it`);
  };

  let related = { query: '', hits: [] }; // what mcpx's own search finds
  let timer;
  /** Asks mcpx for related tools when the person stops typing. */
  const askSoon = () => {
    clearTimeout(timer);
    const query = search.value.trim();
    if (!query) return;
    timer = setTimeout(async () => {
      const hits = await ask('search', { q: query }).catch(() => []);
      if (search.value.trim() !== query) return;
      related = { query, hits };
      draw();
    }, SEARCH_PAUSE);
  };

  let offered = '';
  const drawChooser = (names) => {
    const now = JSON.stringify([names, state.profile]);
    if (now === offered) return; // it may be open
    offered = now;
    profileRow.hidden = names.length < 2;
    fill(chooser, names.map((n) => h('option', { value: n, selected: n === state.profile }, n)));
  };
  let drawn = '';
  const draw = () => {
    const names = profiles();
    const now = JSON.stringify([names, state.profile, servers(), current(), search.value, search.value && [related, Object.values(state.items).map((l) => l?.length)]]);
    if (now === drawn) return; // keep the elements, so that a click hits its target
    drawn = now;
    drawChooser(names);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    list.classList.toggle('dense', servers().length > DENSE);
    fill(list, words.length > 0 ? results(words) : serverGroups());
    const here = current();
    fill(foot, [['home', 'Overview', []], ['chart', 'Tokens', ['~tokens']], ['history', 'History', ['~history']]].map(([symbol, text, to]) =>
      h('a', { href: link(...to), data: { key: text }, class: 'nav-link', 'aria-current': (here.page ?? '') === (to[0] ?? '') && !here.server ? 'page' : undefined }, icon(symbol), text)));
  };
  const serverGroups = () => {
    const groups = grouped(servers());
    if (groups.length === 0) return h('p', { class: 'nav-note' }, state.status ? 'This profile has no servers.' : 'Connecting…');
    if (groups.length === 1) return [h('h2', { class: 'nav-title' }, 'Servers'), groups[0][1].map(serverLink)];
    return groups.map(([title, all]) => [h('h2', { class: 'nav-title' }, title, h('span', { class: 'nav-count' }, all.length)), all.map(serverLink)]);
  };
  const serverLink = (s) => h('a', { class: 'nav-server', href: link(s.name), data: { key: s.name }, 'aria-current': current().server === s.name ? 'page' : undefined },
    h('span', { class: 'nav-name' }, s.name), stateMark(s), h('span', { class: `nav-facts${needsHelp(s) ? ' keep' : ''}` }, needsHelp(s) ? s.reason ?? '' : facts(s).join(' · ')));
  const needsHelp = (s) => isFailing(s) || needsPerson(s);
  const itemLinkOf = (i) => h('a', { class: 'nav-item', href: itemLink(i), data: { key: itemLink(i) } },
    h('span', { class: 'nav-name' }, i.name), h('span', { class: 'nav-kind' }, KINDS[i.kind]), h('span', { class: 'nav-facts' }, `${i.server} · ${firstLine(i.raw.description) || i.key}`));
  const results = (words) => {
    const matching = servers().filter((s) => words.every((w) => s.name.toLowerCase().includes(w))).slice(0, SERVERS_FOUND);
    const found = find(words);
    const isAsked = related.query === search.value.trim();
    const others = isAsked ? related.hits.map((hit) => itemNamed(hit.server, 'tools', hit.tool)).filter((i) => i && !found.includes(i)) : [];
    const count = found.length > FOUND ? `First ${FOUND} of ${found.length}` : found.length;
    const title = found.length > 0 ? `${count} found` : others.length > 0 || matching.length > 0 ? '' : isAsked ? 'Nothing found' : 'Searching…';
    return [
      matching.length > 0 && [h('h2', { class: 'nav-title' }, plural(matching.length, 'server')), matching.map(serverLink)],
      title && h('h2', { class: 'nav-title' }, title),
      found.slice(0, FOUND).map(itemLinkOf),
      others.length > 0 && [h('h2', { class: 'nav-title' }, 'Related tools'), others.map(itemLinkOf)],
    ];
  };

  fill(element,
    h('div', { class: 'nav-head' }, h('a', { class: 'brand', href: '#/' }, h('img', { src: 'assets/icon.svg', alt: '', width: 20, height: 20 }), 'mcpx'),
      h('span', { class: 'spring' }), button('', showShortcuts, { kind: 'ghost wide-only', symbol: 'keyboard', label: 'Keyboard shortcuts' }), theme),
    profileRow, h('div', { class: 'search' }, icon('search'), search, h('kbd', {}, '/')), list, foot);
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
