/** The overview: the servers, and the address for agents. */

import { announce, button, copyButton, duration, fill, h, number, short } from '../dom.js';
import { poll } from '../session.js';
import { link, on, servers, state } from '../store.js';
import { empty, figures, stateMark } from './parts.js';

export function overview(main, _, signal) {
  document.title = `${state.schema} · mcpx`;
  let drawn = '';
  const draw = () => {
    const now = JSON.stringify([state.schema, state.status]);
    if (now !== drawn) fill(main, content());
    drawn = now;
  };
  on('status', draw, signal);
  draw();
}

function content() {
  const all = servers();
  if (!state.status) return empty('Connecting…', 'Loading the servers from mcpx.');
  const { without = 0, with: withMCPX = 0 } = state.status.context?.[state.schema] ?? {};
  const ready = all.filter((s) => s.state === 'ready').length;
  const idle = all.filter((s) => s.state === 'idle').length;
  const address = `${location.origin}${location.pathname}mcp/${encodeURIComponent(state.schema)}`;
  return [
    h('div', { class: 'head' }, h('h1', {}, 'Overview'), h('p', { class: 'lead' }, `Schema ${state.schema}, served by mcpx ${state.status.version}.`)),
    configProblem(),
    figures(
      ['Servers ready', `${ready} of ${all.length}`, idle > 0 && `${number(idle)} idle`],
      ['Tools', all.reduce((n, s) => n + s.tools, 0)],
      ['Tokens with mcpx', withMCPX, `of ${number(without)}`],
      ['Clients', Math.max(state.status.sessions, 1), 'this page included'], // the status may be older than this page's session
    ),
    all.length === 0 ? empty('No servers', 'Add some to the config file, then reload it or start mcpx again.') : table(all),
    state.status.config?.reload && h('div', { class: 'actions' }, button('Reload the config', reload)),
    h('section', { class: 'connect' }, h('h2', {}, 'Connect an agent'), h('p', { class: 'muted' }, 'Streamable HTTP, with two tools in place of all:'),
      h('div', { class: 'address' }, h('code', {}, address), copyButton(() => address, 'Copy the address'))),
  ];
}

/** Returns why the newest config file is not in use. */
function configProblem() {
  const problem = state.status.config?.problem;
  return problem && h('section', { class: 'trouble', role: 'status' },
    h('p', {}, h('strong', {}, 'The config file has changed, but is not in use.')), h('pre', { class: 'text stderr', tabIndex: 0 }, problem));
}

/** Applies the config file again. A problem with it is in the status. */
async function reload() {
  const response = await fetch('reload', { method: 'POST', signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
  announce(response?.ok ? 'The config is reloaded' : 'The config is not reloaded');
  await poll();
}

function table(all) {
  const cell = (name, ...content) => h('td', { data: { name } }, content);
  const figure = (name, value) => h('td', { class: 'num', data: { name } }, value);
  return h('div', { class: 'table-scroll' }, h('table', { class: 'servers', data: { list: 'table' } },
    h('thead', {}, h('tr', {}, ['Server', 'State', 'Transport', 'Start-up', 'Tools', 'Prompts', 'Resources', 'Tokens'].map((n, i) => h('th', { scope: 'col', class: i > 2 ? 'num' : undefined }, n)))),
    h('tbody', {}, all.map((s) => h('tr', {},
      cell('Server', h('a', { href: link(s.name), data: { key: `row ${s.name}` }, class: 'row-link' }, s.name),
        s.reason && s.state !== 'ready' ? h('p', { class: 'reason' }, s.reason) : s.description && h('p', { class: 'muted' }, s.description)),
      cell('State', stateMark(s)),
      cell('Transport', s.transport),
      figure('Start-up', s.startup_ms === undefined ? '–' : duration(s.startup_ms)),
      figure('Tools', number(s.tools)),
      figure('Prompts', number(s.prompts)),
      figure('Resources', number(s.resources)),
      figure('Tokens', short(s.tokens)))))));
}
