/** Calls: running, finished, and in the history. */

import { announce, duration } from './dom.js';
import { stringify } from './json.js';
import { Canceled } from './mcp.js';
import { secretNames } from './schema.js';
import { request } from './session.js';
import { emit, itemLink, remember, state } from './state.js';

/** A browser has six connections to a server. One stays free to cancel calls. */
const AT_ONCE = 4;

const METHODS = {
  tools: (item, args) => ['tools/call', { name: item.key, arguments: args }],
  prompts: (item, args) => ['prompts/get', Object.keys(args).length > 0 ? { name: item.key, arguments: args } : { name: item.key }],
  resources: (item) => ['resources/read', { uri: item.key }],
};

/** @type {Map<string, Run>} the last call of each thing, by its address */
const last = new Map();
const running = new Set();

/**
 * @typedef {object} Run
 * @property {import('./state.js').Item} item @property {object} args
 * @property {'running' | 'ok' | 'error' | 'failed' | 'cancelled'} outcome error: the server says so; failed: there is no result
 * @property {number} began @property {number} ms @property {any} [result] @property {Error} [error] @property {any} [progress]
 * @property {number} size @property {() => void} cancel
 */

export const lastRun = (item) => last.get(itemLink(item));

/** Calls a tool, gets a prompt or reads a resource. Emits 'run' on every change. @returns {Run} */
export function start(item, args = {}) {
  const stop = new AbortController();
  const run = { item, args, outcome: 'running', began: Date.now(), ms: 0, size: 0, cancel: () => stop.abort() };
  last.delete(itemLink(item));
  last.set(itemLink(item), run);
  if (last.size > 50) last.delete([...last].find(([, { outcome }]) => outcome !== 'running')[0]);
  emit('run', run);
  perform(run, stop.signal);
  return run;
}

async function perform(run, signal) {
  const { item } = run;
  const begin = performance.now();
  const profile = state.profile;
  try {
    if (running.size >= AT_ONCE) throw new Error(`${AT_ONCE} calls are under way already; cancel one of them first`);
    running.add(run);
    const [method, params] = METHODS[item.kind](item, run.args);
    const progress = (p) => {
      run.progress = p;
      emit('run', run);
    };
    run.result = await request(method, params, { signal, progress, label: `${item.server}/${item.name}` });
    run.size = (stringify(run.result) ?? '').length;
    run.outcome = run.result?.isError ? 'error' : 'ok';
  } catch (error) {
    run.error = error;
    run.outcome = error instanceof Canceled ? 'cancelled' : 'failed';
  }
  running.delete(run);
  run.ms = performance.now() - begin;
  announce(`${item.name}: ${OUTCOMES[run.outcome]} after ${duration(run.ms)}`);
  emit('run', run);
  remember({
    at: run.began, schema: profile || state.profile, server: item.server, kind: item.kind, name: item.name, key: item.key, arguments: withoutSecrets(item, run.args),
    outcome: run.outcome, ms: Math.round(run.ms), ...run.error ? { error: run.error.message } : { result: run.result },
  });
}

/** Returns the arguments without those that the schema marks as secret. */
function withoutSecrets({ raw }, args) {
  const secrets = secretNames(raw.inputSchema);
  return Object.fromEntries(Object.entries(args).filter(([name]) => !secrets.includes(name)));
}

export const OUTCOMES = { running: 'Running', ok: 'Success', error: 'Tool error', failed: 'Failed', cancelled: 'Canceled' };

/** The arguments for the next view of an item, and whether to run it at once. */
export const prepared = new Map();
