/** The state of the page, and its subscribers. */

import { parse, stringify } from './json.js';

/**
 * @typedef {{kind: Kind, key: string, name: string, server: string, raw: any}} Item something an upstream has
 * @typedef {'tools' | 'prompts' | 'resources' | 'templates'} Kind
 */
export const state = {
  connection: 'connecting', // open, offline, unauthorized, failed
  problem: '',
  status: null, // the last response of /status
  profile: '',
  /** @type {Record<Kind, Item[] | null>} null: not known yet */
  items: { tools: null, prompts: null, resources: null, templates: null },
  /** @type {Map<string, {count: number, at: number}>} by URI */
  subscriptions: new Map(),
  log: [],
  messages: [], // of this page's session
  level: '', // of log messages; empty: each server decides
  history: [],
};

const listeners = new Map();

/** Calls f on every change of a topic until the signal is aborted. */
export function on(topic, f, signal) {
  const set = listeners.get(topic) ?? new Set();
  listeners.set(topic, set.add(f));
  signal?.addEventListener('abort', () => set.delete(f));
}

/** Calls f on the next change. */
export function once(topic, f) {
  const done = new AbortController();
  on(topic, (detail) => { done.abort(); f(detail); }, done.signal);
}

export function emit(topic, detail) {
  for (const f of [...listeners.get(topic) ?? []]) f(detail);
}

export const profiles = () => Object.keys(state.status?.schemas ?? {});
/** Returns the servers of the profile, those that the config disables at the end. */
export const servers = () => [...state.status?.schemas[state.profile] ?? [], ...(state.status?.disabled?.[state.profile] ?? []).map(disabled)];
const disabled = (s) => ({ ...s, state: 'disabled', tools: 0, prompts: 0, resources: 0, tokens: 0 });
/** Reports whether the page may change the config. */
export const mayEdit = () => state.status?.config?.reload === true;
/** Reports whether the page may stop and start servers, and see their messages. */
export const mayControl = () => state.status?.config?.control === true;
export const serverNamed = (name) => servers().find((s) => s.name === name);
export const itemsOf = (server, kind) => (state.items[kind] ?? []).filter((i) => i.server === server);
export const itemNamed = (server, kind, name) => (state.items[kind] ?? []).find((i) => i.server === server && (i.name === name || i.key === name));

/** Returns the address of a view: link('time', 'tools', 'get_time'). */
export const link = (...parts) => `#/${[state.profile, ...parts].map(encodeURIComponent).join('/')}`;
export const itemLink = (i) => link(i.server, i.kind, i.kind === 'tools' || i.kind === 'prompts' ? i.name : i.key);

// The log.

const LOG_LENGTH = 1000;

/** @param {{kind: string, level?: string, from?: string, text: string}} entry */
export function note(entry) {
  const line = { at: Date.now(), ...entry };
  state.log.push(line);
  if (state.log.length > LOG_LENGTH) state.log.splice(0, state.log.length - LOG_LENGTH);
  emit('log', line);
}

// The JSON-RPC messages of this page's session.

const MESSAGES_LENGTH = 300;
const MESSAGE_LENGTH = 16_384;

/** Records a message that the page has sent or received. @param {boolean} received @param {any} message */
export function recordMessage(received, message) {
  const text = stringify(message) ?? '';
  state.messages.push({ at: Date.now(), received, text: text.length > MESSAGE_LENGTH ? `${text.slice(0, MESSAGE_LENGTH)}…` : text, bytes: text.length });
  if (state.messages.length > MESSAGES_LENGTH) state.messages.splice(0, state.messages.length - MESSAGES_LENGTH);
  emit('messages');
}

// Data kept in the browser. If storage is full or forbidden, it is kept until the page closes.

const HISTORY = 'mcpx.history';
const HISTORY_LENGTH = 200;
const RESULT_LENGTH = 8192;

export function load(key, otherwise) {
  try {
    return parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Reports whether the text is stored. */
export function save(key, text) {
  try {
    localStorage.setItem(key, text);
    return true;
  } catch {
    return false;
  }
}

let isStored = true; // whether the whole history is stored

export function setHistory(entries) {
  state.history = entries.slice(0, HISTORY_LENGTH);
  let n = state.history.length;
  while (!(isStored = save(HISTORY, stringify(state.history.slice(0, n)))) && n > 0) n = Math.floor(n / 2);
  isStored &&= n === state.history.length;
  emit('history');
}

/** Adds a call to the history. It keeps only the start of a long result. */
export function remember(entry) {
  const text = stringify(entry.result) ?? '';
  const result = text.length > RESULT_LENGTH ? { cut: true, beginning: text.slice(0, RESULT_LENGTH) } : entry.result;
  setHistory([{ ...entry, result }, ...isStored ? remembered() : state.history]); // another page may have added a call
}

function remembered() {
  const stored = load(HISTORY, []);
  return Array.isArray(stored) ? stored.filter((e) => e && typeof e.name === 'string' && typeof e.kind === 'string') : [];
}

state.history = remembered();
addEventListener('storage', ({ key }) => { // another page of this browser has added a call
  if (key !== HISTORY) return;
  state.history = remembered();
  emit('history');
});
