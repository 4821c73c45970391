/** The overview: the servers, and the address for agents. */

import { announce, button, copyButton, duration, fill, h, number, plural, short } from '../dom.js';
import { poll } from '../session.js';
import { byNeed, grouped, isFailing, needsPerson, stateClass, stateGroup } from '../states.js';
import { link, mayEdit, on, servers, state } from '../state.js';
import { showAddServer } from './edit.js';
import { empty, figures, stateMark } from './parts.js';

const FILTERED = 6; // fewer servers need no filter

/** The columns of the table: name, value to sort by, and whether it is a figure. Servers that need help come first by default. */
const COLUMNS = [
  ['Server', (s) => s.name.toLowerCase()], ['State', null], ['Transport', (s) => s.transport],
  ['Start-up', (s) => s.startup_ms ?? -1, true], ['Tools', (s) => s.tools, true], ['Prompts', (s) => s.prompts, true], ['Resources', (s) => s.resources, true], ['Tokens', (s) => s.tokens, true],
];

/** What the person has chosen, kept while the page is open. */
const chosen = { words: '', state: '', column: 'State', descending: false };

export function overview(main, _, signal) {
  document.title = `${state.profile} · mcpx`;
  const top = h('div', {});
  const bar = h('div', { class: 'filters' });
  const list = h('div', {});
  const end = h('div', {});
  fill(main, top, bar, list, end);
  let drawn = '';
  const drawList = () => fill(list, state.status && listed(drawList));
  const draw = () => {
    const now = JSON.stringify([state.profile, state.status]);
    if (now === drawn) return; // keep the elements, so that a click hits its target
    drawn = now;
    if (!state.status) return void fill(top, empty('Connecting…', 'Loading the servers from mcpx.'));
    fill(top, head());
    drawFilters(bar, drawList);
    drawList();
    fill(end, footer());
  };
  on('status', draw, signal);
  draw();
}

function head() {
  const all = servers().filter((s) => s.state !== 'disabled');
  const { without = 0, with: withMCPX = 0 } = state.status.context?.[state.profile] ?? {};
  const count = (name) => all.filter((s) => s.state === name).length;
  const failing = all.filter(isFailing).length;
  const starting = all.filter((s) => stateGroup(s) === 'Starting').length;
  const signIn = all.filter(needsPerson).length;
  const notes = [failing > 0 && `${number(failing)} failed`, signIn > 0 && `${number(signIn)} need${signIn === 1 ? 's' : ''} sign-in`, starting > 0 && `${number(starting)} starting`, count('idle') > 0 && `${number(count('idle'))} idle`].filter(Boolean);
  return [
    h('div', { class: 'head' }, h('h1', {}, 'Overview'), h('p', { class: 'lead' }, `Profile ${state.profile}, served by mcpx ${state.status.version}.`)),
    configProblem(),
    figures(
      ['Servers ready', `${count('ready')} of ${all.length}`, notes.join(', ')],
      ['Tools', all.reduce((n, s) => n + s.tools, 0)],
      ['Tokens with mcpx', withMCPX, `of ${number(without)}`],
      ['Clients', Math.max(state.status.sessions, 1), 'this page included'], // the status may be older than this page's session
    ),
  ];
}

const footer = () => [
  h('div', { class: 'actions' }, mayEdit() && button('Add a server', () => showAddServer(), { symbol: 'plus' }), mayEdit() && button('Reload the config', reload, { symbol: 'restart' })),
  connection(),
];

function connection() {
  const address = `${location.origin}${location.pathname}mcp/${encodeURIComponent(state.profile)}`;
  return h('section', { class: 'connect' }, h('h2', {}, 'Connect an agent'), h('p', { class: 'muted' }, 'Streamable HTTP, with two tools in place of all:'),
    h('div', { class: 'address' }, h('code', {}, address), copyButton(() => address, 'Copy the address')));
}

/** Returns why the newest config file is not in use. */
function configProblem() {
  const problem = state.status.config?.problem;
  return problem && h('section', { class: 'trouble failed', role: 'status' },
    h('p', {}, h('strong', {}, 'The config file has changed, but is not in use.')), h('pre', { class: 'text stderr', tabIndex: 0 }, problem));
}

/** Applies the config file again. A problem with it is in the status. */
async function reload() {
  const response = await fetch('reload', { method: 'POST', headers: { 'Content-Type': 'application/json' }, signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
  announce(response?.ok ? 'The config is reloaded' : 'The config is not reloaded');
  await poll();
}

/** Draws the filters: words and states. The text field stays the same element while it is used. */
function drawFilters(bar, redraw) {
  const groups = grouped(servers());
  bar.hidden = servers().length < FILTERED;
  if (!groups.some(([group]) => group === chosen.state)) chosen.state = '';
  const words = bar.querySelector('input') ?? h('input', { type: 'search', value: chosen.words, placeholder: 'Filter servers', 'aria-label': 'Filter servers by name, description or reason', oninput: () => {
    chosen.words = words.value;
    redraw();
  } });
  const chip = (text, group, count) => h('button', { type: 'button', class: 'chip', data: { key: `state ${group}` }, 'aria-pressed': String(chosen.state === group), onclick: () => {
    chosen.state = group;
    drawFilters(bar, redraw);
    redraw();
  } }, text, h('span', { class: 'tab-count' }, number(count)));
  const chips = bar.querySelector('.chips') ?? h('div', { class: 'chips', role: 'group', 'aria-label': 'State' });
  fill(chips, chip('All', '', servers().length), groups.map(([group, all]) => chip(group, group, all.length)));
  if (!chips.isConnected) bar.append(words, chips);
}

/** Returns the servers that the filters leave, sorted. */
function visible() {
  const words = chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
  const left = byNeed(servers()).filter((s) => (!chosen.state || stateGroup(s) === chosen.state)
    && words.every((w) => `${s.name} ${s.description ?? ''} ${s.reason ?? ''} ${s.review ?? ''} ${s.transport}`.toLowerCase().includes(w)));
  const value = COLUMNS.find(([name]) => name === chosen.column)[1];
  if (value) left.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
  return chosen.descending ? left.reverse() : left;
}

function listed(redraw) {
  if (servers().length === 0) return empty('No servers', mayEdit() ? 'Add one here, or to the config file.' : 'Add some to the config file, then reload it or start mcpx again.');
  const shown = visible();
  if (shown.length === 0) return empty('No server matches', `None of the ${plural(servers().length, 'server')} matches the filter.`);
  return table(shown, redraw);
}

function table(shown, redraw) {
  const heading = ([name, , isFigure]) => h('th', { scope: 'col', class: isFigure ? 'num' : undefined, 'aria-sort': chosen.column !== name ? undefined : chosen.descending ? 'descending' : 'ascending' },
    h('button', { type: 'button', class: 'sort', data: { key: `sort ${name}` }, onclick: () => {
      Object.assign(chosen, chosen.column === name ? { descending: !chosen.descending } : { column: name, descending: Boolean(isFigure) });
      redraw();
    } }, name));
  return h('div', { class: 'table-scroll' }, h('table', { class: 'servers', data: { list: 'table' } },
    h('thead', {}, h('tr', {}, COLUMNS.map(heading))), h('tbody', {}, shown.map(row))));
}

function row(s) {
  const cell = (name, ...content) => h('td', { data: { name } }, content);
  const figure = (name, value, unit = name.toLowerCase()) => h('td', { class: 'num', data: { name, unit } }, value);
  const one = (n, word) => (n === 1 ? word : `${word}s`);
  return h('tr', { class: stateClass(s) },
    cell('Server', h('a', { href: link(s.name), data: { key: `row ${s.name}` }, class: 'row-link' }, s.name),
      (isFailing(s) || needsPerson(s)) && s.reason ? h('p', { class: 'reason' }, s.reason) : s.description && h('p', { class: 'muted' }, s.description),
      s.review && h('p', { class: 'reason review' }, s.review)),
    cell('State', stateMark(s)),
    cell('Transport', s.transport),
    figure('Start-up', s.startup_ms === undefined ? '–' : duration(s.startup_ms)),
    figure('Tools', number(s.tools), one(s.tools, 'tool')),
    figure('Prompts', number(s.prompts), one(s.prompts, 'prompt')),
    figure('Resources', number(s.resources), one(s.resources, 'resource')),
    figure('Tokens', short(s.tokens), one(s.tokens, 'token')));
}
