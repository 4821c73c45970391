/** The token cost of the tools, without mcpx and with it. */

import { estimate, fill, h, number } from '../dom.js';
import { link, on, servers, state } from '../store.js';
import { crumbs, empty, overviewCrumb } from './parts.js';

export function tokens(main, _, signal) {
  document.title = 'Tokens · mcpx';
  const draw = () => fill(main, content());
  on('status', draw, signal);
  draw();
}

function content() {
  const { estimated_without: without = 0, estimated_with: withMCPX = 0 } = state.status?.context?.[state.schema] ?? {};
  const costs = [...servers()].sort((a, b) => b.estimated_tokens - a.estimated_tokens);
  const head = [crumbs(overviewCrumb(), ['Tokens']), h('div', { class: 'head' }, h('h1', {}, 'Tokens'), h('p', { class: 'lead' }, 'What tool definitions take of an agent’s context before it has done anything.'))];
  if (without === 0) return [head, empty('Nothing to compare yet', 'No server has listed its tools so far.')];
  const saved = 1 - withMCPX / without;
  return [
    head,
    h('section', { class: 'compare', 'aria-label': 'Without and with mcpx' },
      bar('Without mcpx', without, without, 'plain', 'every tool in full'),
      bar('With mcpx', withMCPX, without, 'accent', 'inspect and exec'),
      h('p', { class: 'saved' }, saved > 0
        ? [h('strong', {}, `${(saved * 100).toFixed(saved > 0.99 ? 1 : 0)} % less`), ` – ${estimate(without - withMCPX)} tokens saved in every conversation.`]
        : 'With so few tools, listing them in full costs less.')),
    h('h2', {}, 'By server'),
    h('div', { class: 'bars', data: { list: 'tokens' } }, costs.map((s) => bar(h('a', { href: link(s.name), data: { key: `bar ${s.name}` } }, s.name), s.estimated_tokens, costs[0].estimated_tokens, 'plain', s.tools === 1 ? '1 tool' : `${number(s.tools)} tools`))),
    h('p', { class: 'muted fine' }, '~ marks estimates of o200k_base tokens. “mcpx tokens” counts exactly.'),
  ];
}

function bar(name, value, most, kind, note) {
  const part = h('span', { class: `bar ${kind}` });
  part.style.setProperty('--part', `${most > 0 ? Math.max(value / most * 100, value > 0 ? 0.4 : 0) : 0}%`);
  return h('div', { class: 'bar-row' }, h('span', { class: 'bar-name' }, name, h('small', {}, note)),
    h('span', { class: 'bar-track', 'aria-hidden': 'true' }, part), h('span', { class: 'bar-value' }, estimate(value)));
}
