/** The console: routes, keys, theme. */

import { button, fill, h } from './dom.js';
import { openProfile, poll, watch } from './session.js';
import { prepared } from './runs.js';
import { emit, on, save, profiles, state } from './state.js';
import { showShortcuts } from './views/asked.js';
import { call } from './views/call.js';
import { history } from './views/history.js';
import { log } from './views/log.js';
import { overview } from './views/overview.js';
import { empty } from './views/parts.js';
import { resource, template } from './views/resource.js';
import { server } from './views/server.js';
import { sidebar } from './views/sidebar.js';
import { tokens } from './views/tokens.js';

const byID = (id) => document.getElementById(id);
const PAGES = { '': overview, '~tokens': tokens, '~history': history };
const ITEMS = { tools: call, prompts: call, resources: resource, templates: template };

// Routes: #/profile, #/profile/~page, #/profile/server, #/profile/server/kind and #/profile/server/kind/name.

let route = {};
let leave = new AbortController();

function parseRoute() {
  let parts = [];
  try {
    parts = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  } catch { /* an address nobody made here */ }
  const [profile = '', second = '', kind, name] = parts;
  return second.startsWith('~') || second === '' ? { profile, page: second } : { profile, server: second, kind, name };
}

function show() {
  route = parseRoute();
  leave.abort();
  leave = new AbortController();
  byID('sidebar').classList.remove('open');
  const main = byID('main');
  const names = profiles();
  if (names.length > 0) {
    const wanted = names.includes(route.profile) ? route.profile : route.profile === '' ? names.find((n) => n === 'default') ?? names[0] : '';
    if (!wanted) return void fill(main, empty('No such profile', `mcpx serves ${names.join(', ')}.`));
    if (wanted !== state.profile) openProfile(wanted).catch(() => {}); // the banner shows the error
  }
  const view = route.server === undefined ? PAGES[route.page] ?? overview : route.name ? ITEMS[route.kind] ?? server : server;
  view(main, route, leave.signal);
  main.scrollTop = 0;
  emit('route');
}

// The state of the connection.

function banner() {
  const texts = {
    offline: 'mcpx does not answer. Trying again…',
    unauthorized: 'mcpx wants a token. Reload the page and enter it as the password, with any name.',
    failed: state.problem,
  };
  const text = texts[state.connection];
  fill(byID('banner'), text && h('div', { class: 'banner' }, h('span', {}, text), state.connection !== 'offline' && button('Reload', () => location.reload(), { kind: 'small' })));
}

// Theme: the system's, light or dark.

const THEMES = ['system', 'light', 'dark'];
const themeName = () => document.documentElement.dataset.theme ?? 'system';

function toggleTheme() {
  const next = THEMES[(THEMES.indexOf(themeName()) + 1) % THEMES.length];
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  save('mcpx.theme', next);
}

// Keys.

function keydown(event) {
  if (!event.key || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const typing = event.target.matches?.('input:not([type=radio], [type=checkbox]), textarea, select');
  const search = byID('search');
  if (event.key === 'Escape') byID('sidebar').classList.remove('open');
  if (event.key.startsWith('Arrow') && (!typing || event.target === search)) return void move(event);
  if (typing) return;
  const action = { '/': () => { byID('sidebar').classList.add('open'); search.focus(); search.select(); }, '?': showShortcuts, l: () => toggleLog() }[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
}

/** Moves the focus to the link above or below in the same list. */
function move(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const list = event.target === byID('search') ? document.querySelector('.nav-list') : event.target.closest('[data-list]');
  if (!by || !list) return;
  const links = [...list.querySelectorAll('a, .history-name')];
  const next = links[links.indexOf(event.target) + by];
  event.preventDefault();
  if (next) next.focus();
  else if (by < 0 && list.classList.contains('nav-list')) byID('search').focus();
}

const toggleLog = log(byID('log'));
sidebar(byID('sidebar'), { current: () => route, toggleTheme, themeName, showShortcuts });
fill(byID('topbar'), button('', () => byID('sidebar').classList.toggle('open'), { kind: 'ghost', symbol: 'menu', label: 'Servers and search' }), h('a', { class: 'brand', href: '#/' }, 'mcpx'));
byID('skip').addEventListener('click', () => byID('main').focus());
addEventListener('hashchange', () => {
  for (const address of prepared.keys()) if (address !== location.hash) prepared.delete(address); // the user left it before it was complete
  const from = document.activeElement;
  show();
  // The focused element is gone, or was a link to this view: focus the view.
  if (document.activeElement === document.body || from.matches('#search, .nav-item')) byID('main').focus({ preventScroll: true });
});
addEventListener('keydown', keydown);
on('connection', banner);

fill(byID('main'), empty('Connecting…', 'Loading the servers from mcpx.'));
on('status', () => { if (!state.profile && profiles().length > 0) show(); });
await poll();
if (!state.profile) show();
watch();
