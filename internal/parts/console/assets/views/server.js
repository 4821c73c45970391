/** One server: its state, how it runs, and what it offers. */

import { ask } from '../api.js';
import { announce, button, clock, copyButton, dateTime, duration, fill, firstLine, h, number, plural, short } from '../dom.js';
import { stringify } from '../json.js';
import { poll } from '../session.js';
import { isFailing, needsPerson, stateClass } from '../states.js';
import { itemLink, itemsOf, link, mayControl, mayEdit, on, serverNamed, state } from '../state.js';
import { showSettings } from './edit.js';
import { confirm, crumbs, empty, figures, overviewCrumb, stateMark, tell } from './parts.js';

const TABS = { tools: ['Tools', ['tools']], prompts: ['Prompts', ['prompts']], resources: ['Resources', ['resources', 'templates']] };
const FILTERED = 20; // shorter lists need no filter

export function server(main, route, signal) {
  document.title = `${route.server} · mcpx`;
  const tab = TABS[route.kind] ? route.kind : 'tools';
  const top = h('div', {});
  const about = h('div', {});
  const body = h('div', {});
  fill(main, top, about, body);
  drawAbout(about, route.server, signal);
  let listed;
  const drawBody = () => {
    const now = stringify([serverNamed(route.server)?.state, Object.entries(state.items).map(([kind, all]) => all && itemsOf(route.server, kind))]);
    if (now === listed) return; // keep the elements, so that a click hits its target
    listed = now;
    const s = serverNamed(route.server);
    fill(body, s && s.state !== 'disabled' && [tabs(s, tab), lists(s, tab)]);
  };
  let shown;
  const draw = () => {
    const now = JSON.stringify([state.status === null, serverNamed(route.server), mayEdit()]);
    if (now === shown) return; // nothing here has changed: keep open parts open
    shown = now;
    const isOpen = top.querySelector('.stderr-box')?.open;
    fill(top, head(route.server));
    const box = top.querySelector('.stderr-box');
    if (box) box.open = isOpen === true; // keep it open when lines are added
    drawBody();
  };
  on('status', draw, signal);
  on('items', drawBody, signal);
  const ticking = setInterval(() => {
    const line = top.querySelector('.retry');
    if (line) line.textContent = retry(serverNamed(route.server));
  }, 1000);
  signal.addEventListener('abort', () => clearInterval(ticking));
  draw();
}

function head(name) {
  const s = serverNamed(name);
  if (!s) return state.status ? empty('No such server', `The profile ${state.profile} has no server named ${name}.`) : empty('Connecting…', 'Loading the servers from mcpx.');
  return [
    crumbs(overviewCrumb(), [s.name]),
    h('div', { class: 'head' }, h('div', { class: 'title' }, h('h1', {}, s.name), stateMark(s), h('span', { class: 'spring' }), actions(s)), s.description && h('p', { class: 'lead' }, s.description)),
    s.state !== 'ready' && trouble(s),
    figures(['Transport', s.transport], ['Start-up', s.startup_ms === undefined ? '–' : duration(s.startup_ms)], ['Tools', s.tools], ['Tokens', short(s.tokens), 'in full']),
    !isFailing(s) && stderr(s),
  ];
}

/** Returns the buttons that change whether the server runs. */
function actions(s) {
  const isRunning = s.state === 'ready' || s.state === 'starting';
  const isUsable = mayControl() && s.state !== 'disabled' && s.state !== 'failed'; // with a config that can work
  return h('div', { class: 'title-actions' },
    isUsable && s.state !== 'stopped' && button('Restart', () => act(s, 'restart', 'is restarting'), { kind: 'small', symbol: 'restart', data: { key: 'restart' } }),
    isUsable && (isRunning || isFailing(s) || needsPerson(s)) && button('Stop', () => stop(s), { kind: 'small', symbol: 'stop', data: { key: 'stop' } }),
    isUsable && (s.state === 'stopped' || s.state === 'idle') && button('Start', () => act(s, 'start', 'is starting'), { kind: 'small', symbol: 'play', data: { key: 'start' } }),
    mayEdit() && button('Edit', () => showSettings(s.name), { kind: 'small', symbol: 'edit', data: { key: 'edit' } }),
    mayEdit() && (s.state === 'disabled'
      ? button('Enable', () => act(s, 'enable', 'is enabled'), { kind: 'small', data: { key: 'enable' } })
      : button('Disable', () => disable(s), { kind: 'small', data: { key: 'disable' } })));
}

/** Does something with the server, and shows the new state at once. */
async function act(s, action, done) {
  try {
    await ask(action, { server: s.name }, {});
    announce(`${s.name} ${done}`);
  } catch (error) {
    await tell(`${s.name} did not change`, error.message);
  }
  await poll();
}

async function stop(s) {
  if (await confirm(`Stop ${s.name}?`, 'Calls that it works on fail. It stays stopped until somebody starts it here, or mcpx is restarted.', 'Stop it')) await act(s, 'stop', 'is stopped');
}

async function disable(s) {
  if (await confirm(`Disable ${s.name}?`, 'mcpx writes that to the config file and stops the server.', 'Disable it')) await act(s, 'disable', 'is disabled');
}

const REASONS = {
  idle: 'The server does not run. A call starts it.', starting: 'The server is starting.', stopped: 'The server is stopped.',
  disabled: 'The config file disables this server.',
};

/** Returns why a server is not ready, what to do, and the time of the next try. */
function trouble(s) {
  return h('section', { class: `trouble ${stateClass(s)}`, role: 'status' },
    h('p', { class: 'pre' }, h('strong', {}, s.reason || REASONS[s.state] || 'The server is not there.')),
    s.advice && h('p', { class: 'advice' }, h('b', {}, 'What to do: '), s.advice),
    needsPerson(s) && signInLink(s.name, s.state === 'needs more access' ? 'Allow more access' : 'Sign in'),
    s.state === 'idle' && s.listed_at && h('p', { class: 'muted' }, `Listed on ${dateTime(s.listed_at)}.`),
    (s.retry_at || s.state === 'starting' && isFailing(s)) && h('p', { class: 'retry muted' }, retry(s)),
    s.state === 'waiting' && !s.retry_at && h('p', { class: 'muted' }, 'The next call tries again.'),
    isFailing(s) && s.stderr?.length > 0 && h('pre', { class: 'text stderr', tabIndex: 0, 'aria-label': 'Latest lines of stderr' }, s.stderr.join('\n')));
}

/** Returns a link to the page where a person signs in to the server. */
const signInLink = (name, text) => h('p', {}, h('a', { class: 'button primary', target: '_blank', rel: 'noopener', data: { key: 'sign in' },
  href: `${location.origin}${location.pathname}signin/${encodeURIComponent(state.profile)}/${encodeURIComponent(name)}` }, text));

async function signOut(name) {
  if (!await confirm(`Sign out of ${name}?`, 'mcpx forgets the tokens of this server, and revokes them where that is possible.', 'Sign out')) return;
  const response = await fetch(`signout/${encodeURIComponent(state.profile)}/${encodeURIComponent(name)}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, signal: AbortSignal.timeout(30_000) }).catch(() => undefined);
  if (!response?.ok) await tell('You are still signed in', `mcpx could not sign out of ${name}.`);
  await poll();
}

/** Returns who is signed in, with what access and until when. */
function signInFacts(name, s) {
  if (!s?.signed_in) return s && 'no';
  const until = s.expires && `the token is valid until ${dateTime(s.expires)}${s.renews ? ', and mcpx renews it' : ''}`;
  return [[s.account && `as ${s.account}`, s.issuer && `at ${s.issuer}`, s.scopes?.length > 0 && `access: ${s.scopes.join(', ')}`, until].filter(Boolean).join('; ') || 'yes', ' ',
    button('Sign out', () => signOut(name), { kind: 'small', data: { key: 'sign out' } })];
}

/** Returns what has changed since a person approved the server. */
function reviewSection(name, text, review) {
  const accept = async () => {
    if (!await confirm('Accept these changes?', `mcpx writes ${name} to its lock file as it is now. Agents can then use what has changed.`, 'Accept')) return;
    await ask('accept', { server: name }, { id: review.id }).catch((error) => tell('Nothing was accepted', error.message));
    await poll();
  };
  return h('section', { class: 'trouble attention', 'aria-label': 'Review' }, h('p', {}, h('strong', {}, text)), h('pre', { class: 'text stderr', tabIndex: 0 }, review.text),
    mayEdit() && review.id && h('p', {}, button('Accept', accept, { data: { key: 'accept' } })));
}

function retry(s) {
  const left = Math.ceil((Date.parse(s?.retry_at ?? '') - Date.now()) / 1000);
  return left > 0 ? `Next try in ${left} s, at ${clock(s.retry_at)}; a call tries at once.` : 'Trying again now…';
}

function stderr(s) {
  return s.stderr?.length > 0 && h('details', { class: 'stderr-box' }, h('summary', {}, 'Latest lines of stderr'), h('pre', { class: 'text stderr', tabIndex: 0 }, s.stderr.join('\n')));
}

/** Draws how the server runs. It is read again when the server has started or its config has changed. */
function drawAbout(place, name, signal) {
  let read;
  const draw = async () => {
    const s = serverNamed(name);
    const now = JSON.stringify([s?.state, s?.listed_at, s?.description, s?.review]);
    if (!s || now === read) return;
    read = now;
    const details = await ask('server', { server: name }).catch(() => null);
    if (signal.aborted || now !== read || !details) return;
    const isOpen = place.querySelector('.instructions')?.open;
    fill(place, details.review && reviewSection(name, s.review ?? 'Something waits for review.', details.review), aboutList(name, details));
    if (isOpen) place.querySelector('.instructions').open = true;
  };
  on('status', draw, signal);
  draw();
}

function aboutList(name, d) {
  const pairs = (values) => Object.keys(values ?? {}).length > 0 && h('span', { class: 'pairs-line' }, Object.entries(values).map(([key, value]) => h('code', {}, `${key}=${value}`)));
  const code = (text) => text && h('div', { class: 'address' }, h('code', { class: 'pre' }, text), copyButton(() => text, 'Copy'));
  const rows = [
    ['Command', code(d.command)], ['URL', code(d.url)],
    ['Environment', pairs(d.env)], ['Headers', pairs(d.headers)],
    ['Software', [d.software, d.revision && `MCP ${d.revision}`].filter(Boolean).join(' · ')],
    ['Signed in', signInFacts(name, d.sign_in)],
    ['Sessions', { client: 'one for each client', user: 'one for each caller' }[d.isolation]], ['Start', d.start === 'lazy' && 'on first use'],
    ['Instructions', d.instructions && instructions(d.instructions)],
  ];
  return h('dl', { class: 'about' }, rows.filter(([, value]) => value).map(([key, value]) => h('div', {}, h('dt', {}, key), h('dd', {}, value))));
}

function instructions(text) {
  if (text.length < 200 && !text.includes('\n')) return h('p', { class: 'pre' }, text);
  return h('details', { class: 'instructions' }, h('summary', {}, `${firstLine(text).slice(0, 160)}…`), h('p', { class: 'pre' }, text));
}

function tabs(s, chosen) {
  return h('div', { class: 'tabs', role: 'navigation', 'aria-label': `What ${s.name} has` }, Object.entries(TABS).map(([id, [text, kinds]]) => {
    const isRead = kinds.every((k) => state.items[k] !== null);
    const count = isRead ? kinds.reduce((n, k) => n + itemsOf(s.name, k).length, 0) : s[id];
    return h('a', { class: 'tab', href: link(s.name, id), data: { key: `tab ${id}` }, 'aria-current': id === chosen ? 'page' : undefined }, text, h('span', { class: 'tab-count' }, number(count)));
  }));
}

function lists(s, tab) {
  const kinds = TABS[tab][1];
  const groups = kinds.map((k) => [k, itemsOf(s.name, k)]).filter(([, list]) => list.length > 0);
  if (groups.length > 0) return groups.map(([kind, list]) => [kind === 'templates' && h('h2', { class: 'list-title' }, 'Templates'), itemList(kind, list)]);
  if (s.state === 'ready' && kinds.some((k) => state.items[k] === null)) return h('p', { class: 'empty' }, 'Reading the list…');
  return empty(`No ${tab}`, s.state === 'ready' ? `This server has no ${tab}.` : s.listed_at ? `This server listed no ${tab}.` : 'They appear when the server is ready.');
}

/** Returns the items of one kind, with a filter if there are many. */
function itemList(kind, list) {
  const items = h('div', { class: 'items', data: { list: kind } });
  const draw = (words) => fill(items, list.filter((i) => words.every((w) => `${i.name} ${i.raw.title ?? ''} ${i.raw.description ?? ''}`.toLowerCase().includes(w))).map(itemRow));
  draw([]);
  if (list.length < FILTERED) return items;
  const filter = h('input', { type: 'search', placeholder: `Filter ${plural(list.length, kind.slice(0, -1))}`, 'aria-label': `Filter ${kind}`, data: { key: `filter ${kind}` }, oninput: () => draw(filter.value.toLowerCase().split(/\s+/).filter(Boolean)) });
  return [h('div', { class: 'filters' }, filter), items];
}

const itemRow = (i) => h('a', { class: 'item', href: itemLink(i), data: { key: itemLink(i) } },
  h('span', { class: 'item-name' }, i.name), h('span', { class: 'item-note' }, note(i)), h('span', { class: 'item-text' }, firstLine(i.raw.description) || i.raw.title || (i.name === i.key ? '' : i.key)));

function note(i) {
  if (i.kind === 'tools') return i.raw.annotations?.readOnlyHint ? 'read-only' : i.raw.annotations?.destructiveHint ? 'destructive' : '';
  if (i.kind === 'prompts') return i.raw.arguments?.length > 0 ? plural(i.raw.arguments.length, 'argument') : '';
  return i.raw.mimeType ?? '';
}
