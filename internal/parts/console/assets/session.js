/** The page's client session with mcpx: its lists, their changes, and its state. */

import { Canceled, Client, HTTPError, RPCError } from './mcp.js';
import { maskSecrets } from './schema.js';
import { isFailing, stateName } from './states.js';
import { emit, note, once, recordMessage, profiles, servers, state } from './state.js';
import { answer } from './views/asked.js';

const POLL = 2000;
const BUILTIN = 'mcpx'; // its tools are listed in flat mode, but the page itself shows their results
const REST = 30_000; // a page that is hidden longer closes its stream
const LISTS = { // by kind: method, member of the result, key of an item
  tools: ['tools/list', 'tools', 'name'],
  prompts: ['prompts/list', 'prompts', 'name'],
  resources: ['resources/list', 'resources', 'uri'],
  templates: ['resources/templates/list', 'resourceTemplates', 'uriTemplate'],
};

/** @type {Client | null} */
let client = null;
let lastStatus = '';

/** Sends a request on the session of the current profile. */
export async function request(method, params, options) {
  while (!state.profile) await new Promise((resolve) => once('status', resolve)); // the page has just opened
  const { profile } = state;
  if (!client?.isOpen) await openProfile(profile);
  if (state.profile !== profile) throw new Canceled(); // the user has changed the profile
  return client.request(method, params, options);
}

/** Opens the session of a profile and closes the previous one. */
export async function openProfile(profile) {
  if (state.profile !== profile || !client) {
    client?.close();
    const mine = client = new Client(`mcp/${encodeURIComponent(profile)}?expose=flat`, {
      request: answer,
      notification,
      message: (received, message) => recordMessage(received, received ? message : withoutSecrets(message)),
      opened: () => (mine === client ? opened() : mine.close()), // the user may have changed the profile
      listening: (again) => { if (mine === client) listening(again); },
    });
    state.profile = profile;
    state.items = { tools: null, prompts: null, resources: null, templates: null };
    state.subscriptions.clear();
    emit('status');
    emit('items');
  }
  const mine = client;
  try {
    await mine.open();
  } catch (error) {
    lost(error, mine);
    throw error;
  }
}

/** Reads all lists when a session is open. */
function opened() {
  connected('open');
  note({ kind: 'session', from: 'mcpx', text: `session opened for the profile ${state.profile}` });
  reloadAll();
  if (state.level) client.request('logging/setLevel', { level: state.level }).catch(() => {});
}

/** Subscribes again when the stream is open, and reads resources that may have changed without it. */
function listening(again) {
  for (const [uri, { session }] of state.subscriptions) if (session !== client.session) resubscribe(uri);
  if (again) reloadAll();
}

const reloadAll = () => Object.keys(LISTS).forEach(reload);
const reloading = new Map(); // kind → whether to read it again

/** Reads a list. Calls during that time cause one more read. */
async function reload(kind) {
  if (reloading.has(kind)) return void reloading.set(kind, true);
  const [method, member, id] = LISTS[kind];
  const from = client;
  do {
    reloading.set(kind, false);
    try {
      const list = await from.list(method, member);
      if (from === client) {
        state.items[kind] = list.filter((raw) => typeof raw?.[id] === 'string').map((raw) => item(kind, raw, raw[id])).filter((i) => i.server !== BUILTIN);
        emit('items', kind);
      }
    } catch (error) {
      if (from === client) {
        state.items[kind] ??= [];
        emit('items', kind);
      }
      lost(error, from);
    }
  } while (reloading.get(kind) && from === client);
  reloading.delete(kind);
  if (from !== client && client.isOpen) reload(kind);
}

/** @returns {import('./state.js').Item} */
function item(kind, raw, key) {
  const meta = raw._meta ?? {};
  const own = kind === 'tools' || kind === 'prompts' ? meta['mcpx/name'] ?? key : raw.name ?? key;
  const server = meta['mcpx/server'] ?? servers()[0]?.name ?? '';
  const mark = `[${server}] `; // the prefix of tool descriptions in flat mode
  const description = typeof raw.description === 'string' && raw.description.startsWith(mark) ? raw.description.slice(mark.length) : raw.description;
  return { kind, key, name: own, server, raw: { ...raw, description } };
}

/** Returns a message without the arguments that the tool's schema marks as secret. */
function withoutSecrets(message) {
  const args = message.method === 'tools/call' && message.params.arguments;
  const tool = args && state.items.tools?.find((i) => i.key === message.params.name);
  return tool ? { ...message, params: { ...message.params, arguments: maskSecrets(tool.raw.inputSchema, args) } } : message;
}

function notification(method, params = {}, label) {
  const short = method.replace('notifications/', '');
  if (method === 'notifications/message') {
    const text = typeof params.data === 'string' ? params.data : JSON.stringify(params.data, (_, v) => (typeof v === 'bigint' ? String(v) : v));
    note({ kind: 'log', level: params.level, from: params.logger ?? label, text });
  } else if (method === 'notifications/progress') {
    const of = params.total === undefined ? '' : ` of ${params.total}`;
    note({ kind: 'progress', from: label, text: [`${params.progress}${of}`, params.message].filter(Boolean).join(': ') });
  } else {
    note({ kind: 'notice', from: label, text: params.uri ? `${short} ${params.uri}` : short });
  }
  const list = /^notifications\/(tools|prompts|resources)\/list_changed$/.exec(method)?.[1];
  if (list) reload(list);
  if (list === 'resources') reload('templates');
  if (method !== 'notifications/resources/updated') return;
  if (subscribing.has(params.uri)) subscribing.set(params.uri, subscribing.get(params.uri) + 1);
  if (state.subscriptions.has(params.uri)) {
    const before = state.subscriptions.get(params.uri);
    state.subscriptions.set(params.uri, { ...before, count: before.count + 1, at: Date.now() });
    emit('updated', params.uri);
  }
}

const subscribing = new Map(); // URI → updates that arrived before the response

export async function subscribe(uri) {
  const mine = client;
  subscribing.set(uri, subscribing.get(uri) ?? 0);
  try {
    await request('resources/subscribe', { uri });
    if (mine !== client) return; // the user has changed the profile
    state.subscriptions.set(uri, { count: subscribing.get(uri) ?? state.subscriptions.get(uri)?.count ?? 0, at: Date.now(), session: mine.session });
  } finally {
    subscribing.delete(uri);
  }
  note({ kind: 'notice', from: 'mcpx', text: `subscribed to ${uri}` });
  emit('subscriptions');
  if (state.subscriptions.get(uri).count > 0) emit('updated', uri);
}

/** Subscribes to a resource again on a new stream, and counts an update: it may have changed in between. */
async function resubscribe(uri) {
  const mine = client;
  const isOld = () => mine !== client || !state.subscriptions.has(uri); // another profile, or no longer subscribed
  try {
    await mine.request('resources/subscribe', { uri });
    if (isOld()) return;
    state.subscriptions.get(uri).session = mine.session;
    note({ kind: 'notice', from: 'mcpx', text: `subscribed again to ${uri}` });
  } catch (error) {
    if (isOld()) return;
    state.subscriptions.delete(uri);
    note({ kind: 'notice', level: 'warning', from: 'mcpx', text: `no longer subscribed to ${uri}: ${error.message}` });
    emit('subscriptions');
  }
}

export async function unsubscribe(uri) {
  await request('resources/unsubscribe', { uri });
  state.subscriptions.delete(uri);
  emit('subscriptions');
}

/** Returns completions for an argument; none if the server has none. */
export async function complete(ref, name, value, others) {
  try {
    const context = Object.keys(others).length > 0 ? { context: { arguments: others } } : {};
    const result = await request('completion/complete', { ref, argument: { name, value }, ...context });
    return (result.completion?.values ?? []).slice(0, 100);
  } catch {
    return [];
  }
}

let leveling = Promise.resolve();

/** Sets the level of log messages. The last choice is sent last. */
export async function setLevel(chosen) {
  const level = state.level = chosen || 'debug';
  leveling = leveling.catch(() => {}).then(() => request('logging/setLevel', { level }));
  await leveling;
  note({ kind: 'session', from: 'mcpx', text: `log messages from level ${level} on` });
}

function connected(connection, problem = '') {
  if (state.connection === connection && state.problem === problem) return;
  Object.assign(state, { connection, problem });
  emit('connection');
}

/** Reports a failure, unless it belongs to a profile that is no longer shown. */
function lost(error, of = client) {
  if (of !== client || error instanceof Canceled) return;
  if (error instanceof RPCError) return note({ kind: 'session', level: 'error', from: 'mcpx', text: error.message });
  if (!(error instanceof HTTPError)) return connected('offline'); // fetch gives no details
  connected(error.status === 401 ? 'unauthorized' : 'failed', error.message);
}

/** Reads the state of the upstreams while the page is visible. */
export async function watch() {
  for (;;) {
    if (document.visibilityState === 'visible') await poll();
    await new Promise((done) => setTimeout(done, POLL));
  }
}

let polls = 0;

export async function poll() {
  const turn = ++polls;
  try {
    const response = await fetch('status', { signal: AbortSignal.timeout(10_000) });
    const text = await response.text();
    if (!response.ok) throw new HTTPError(response.status, response.status === 401 ? 'a token is needed' : text.slice(0, 300));
    if (turn !== polls) return; // a newer response has arrived
    if (text !== lastStatus) {
      const before = state.status;
      lastStatus = text;
      state.status = JSON.parse(text);
      compare(before);
      emit('status');
    }
  } catch (error) {
    if (turn === polls) lost(error);
    return;
  }
  const mine = profiles().includes(state.profile) ? client : null;
  if (!mine || state.connection === 'open' && mine.isOpen) return;
  await (mine.isOpen ? mine.request('ping').then(found) : mine.open()).catch((error) => lost(error, mine));
}

/** After an interruption, repeats the failed reads. */
function found() {
  connected('open');
  reloadAll();
}

/** Logs state changes of servers, and reads their lists again. */
function compare(before) {
  const old = new Map((before?.schemas?.[state.profile] ?? []).map((s) => [s.name, s]));
  let changed = false;
  for (const now of servers()) {
    const was = old.get(now.name);
    if (!was) continue;
    if (was.state !== now.state && !(isFailing(was) && isFailing(now))) {
      note({ kind: 'state', level: isFailing(now) ? 'warning' : 'info', from: now.name, text: `${stateName(was)} → ${stateName(now)}${now.reason ? `: ${now.reason}` : ''}` });
    }
    changed ||= was.state !== now.state || ['tools', 'prompts', 'resources', 'listed_at'].some((k) => was[k] !== now[k]);
  }
  if (changed && client?.isOpen) reloadAll();
}

let resting;
document.addEventListener('visibilitychange', () => {
  clearTimeout(resting);
  if (document.visibilityState === 'hidden') resting = setTimeout(() => client?.pause(), REST);
  else {
    client?.resume();
    poll();
  }
});
addEventListener('pagehide', () => client?.close());
addEventListener('pageshow', (event) => { if (event.persisted && client) openProfile(state.profile).catch(() => {}); });
