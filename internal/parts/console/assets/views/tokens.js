/** The token cost of the tools, without mcpx and with it. */

import { fill, h, number } from '../dom.js';
import { link, on, servers, state } from '../state.js';
import { crumbs, empty, overviewCrumb } from './parts.js';

export function tokens(main, _, signal) {
  document.title = 'Tokens · mcpx';
  const draw = () => fill(main, content());
  on('status', draw, signal);
  draw();
}

function content() {
  const { without = 0, with: withMCPX = 0 } = state.status?.context?.[state.profile] ?? {};
  const costs = servers().filter((s) => s.listed_at).sort((a, b) => b.tokens - a.tokens);
  const unknown = servers().filter((s) => !s.listed_at && s.state !== 'disabled').map((s) => s.name);
  const head = [crumbs(overviewCrumb(), ['Tokens']), h('div', { class: 'head' }, h('h1', {}, 'Tokens'), h('p', { class: 'lead' }, 'What tool definitions take of an agent’s context before it has done anything.'))];
  if (without === 0) return [head, empty('Nothing to compare yet', 'No server has listed its tools so far.')];
  const saved = 1 - withMCPX / without;
  return [
    head,
    h('section', { class: 'compare', 'aria-label': 'Without and with mcpx' },
      bar('Without mcpx', without, without, 'plain', 'every tool in full'),
      bar('With mcpx', withMCPX, without, 'accent', 'inspect and exec'),
      h('p', { class: 'saved' }, saved > 0
        ? [h('strong', {}, `${(saved * 100).toFixed(saved > 0.99 ? 1 : 0)} % less`), ` – ${number(without - withMCPX)} tokens saved in every conversation.`]
        : 'With so few tools, listing them in full costs less.')),
    h('h2', {}, 'By server'),
    h('div', { class: 'bars', data: { list: 'tokens' } }, costs.map((s) => bar(h('a', { href: link(s.name), data: { key: `bar ${s.name}` } }, s.name), s.tokens, costs[0].tokens, 'plain', s.tools === 1 ? '1 tool' : `${number(s.tools)} tools`))),
    unknown.length > 0 && h('p', { class: 'muted' }, `Not counted, because no tools are known: ${unknown.join(', ')}.`),
    h('p', { class: 'muted fine' }, 'Counted exactly, as models of the o200k family do. “mcpx tokens” shows the same figures.'),
  ];
}

function bar(name, value, most, kind, note) {
  const part = h('span', { class: `bar ${kind}` });
  part.style.setProperty('--part', `${most > 0 ? Math.max(value / most * 100, value > 0 ? 0.4 : 0) : 0}%`);
  return h('div', { class: 'bar-row' }, h('span', { class: 'bar-name' }, name, h('small', {}, note)),
    h('span', { class: 'bar-track', 'aria-hidden': 'true' }, part), h('span', { class: 'bar-value' }, number(value)));
}
