/** An MCP client over Streamable HTTP, like that of any agent. */

import { parse, stringify } from './json.js';

const VERSION = '2025-11-25';
const CAPABILITIES = { sampling: {}, elicitation: { form: {}, url: {} } };
const PATIENCE = 60_000; // to open a client session
const RECONNECT = [500, 1000, 2000, 5000, 15_000];

/** An error response of a server. */
export class RPCError extends Error {
  constructor({ code, message, data }) {
    super(message);
    Object.assign(this, { code, data });
  }
}

/** An HTTP response that is not an MCP response. */
export class HTTPError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Canceled extends Error {
  constructor() {
    super('Canceled');
  }
}

/**
 * @typedef {object} Hooks
 * @property {(method: string, params: any, about: {label?: string, signal: AbortSignal}) => Promise<any>} request what a server asks
 * @property {(method: string, params: any, label?: string) => void} notification
 * @property {(received: boolean, message: any) => void} [message] every message, in both directions
 * @property {() => void} opened a session stands, the first or a new one
 * @property {(again: boolean) => void} listening its stream stands, the first or, again, a new one: what it tells of is heard from now on
 */

export class Client {
  session = '';
  #url;
  #hooks;
  #version = '';
  #lastID = 0;
  #opening = null;
  #progress = new Map(); // progress token → callback
  #asked = new Map(); // id of a server's request → its AbortController
  #stream = null; // AbortController of the GET stream
  #posts = new AbortController(); // aborts all POSTs of a session that is closed
  #heard = ''; // the last session that had a stream

  /** @param {string} url @param {Hooks} hooks */
  constructor(url, hooks) {
    this.#url = url;
    this.#hooks = hooks;
  }

  get isOpen() {
    return this.#version !== '';
  }

  /** Opens a client session, once for all concurrent callers. */
  open() {
    this.#opening ??= this.#initialize().finally(() => { this.#opening = null; });
    return this.#opening;
  }

  async #initialize() {
    this.pause();
    this.#cancelPending();
    this.session = this.#version = '';
    const params = { protocolVersion: VERSION, capabilities: CAPABILITIES, clientInfo: { name: 'mcpx console', version: '1' } };
    const id = ++this.#lastID;
    const response = await this.#post({ jsonrpc: '2.0', id, method: 'initialize', params }, AbortSignal.timeout(PATIENCE)); // not aborted by close(), which must end this session
    const result = await this.#answer(response, id);
    this.session = response.headers.get('Mcp-Session-Id') ?? '';
    this.#version = result.protocolVersion;
    try {
      await this.notify('notifications/initialized');
    } catch (error) {
      this.close(); // do not keep a half-open session
      throw error;
    }
    if (this.session) this.#listen();
    this.#hooks.opened();
  }

  /**
   * Sends a request; an aborted signal cancels it at the server too.
   * @param {string} method @param {object} [params]
   * @param {{progress?: (p: any) => void, signal?: AbortSignal, label?: string}} [options]
   */
  async request(method, params = {}, { progress, signal, label } = {}) {
    if (signal?.aborted) throw new Canceled();
    const id = ++this.#lastID;
    if (progress) {
      params = { ...params, _meta: { ...params._meta, progressToken: id } };
      this.#progress.set(id, progress);
    }
    const call = this.#exchange({ jsonrpc: '2.0', id, method, params }, { label, signal }).finally(() => this.#progress.delete(id));
    if (!signal) return call;
    call.catch(() => {}); // nobody waits for it after a cancel
    return Promise.race([call, new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        if (this.isOpen) this.notify('notifications/cancelled', { requestId: id, reason: 'canceled in the console' }).catch(() => {});
        reject(new Canceled());
      });
    })]);
  }

  async notify(method, params) {
    await this.#post({ jsonrpc: '2.0', method, params });
  }

  /** Reads all pages of a list, as far as it is known: it does not wait for servers that start. */
  async list(method, member) {
    const all = [];
    for (let cursor, pages = 0; pages < 100; pages++) {
      const page = await this.request(method, { ...cursor && { cursor }, _meta: { 'mcpx/wait': false } });
      all.push(...page[member] ?? []);
      cursor = page.nextCursor;
      if (!cursor) break;
    }
    return all;
  }

  /** Closes the stream while the page is hidden: all pages of a browser share six connections. */
  pause() {
    this.#stream?.abort();
    this.#stream = null;
  }

  resume() {
    if (this.session && !this.#stream) this.#listen();
  }

  /** Ends the session, even while the page unloads. */
  close() {
    this.pause();
    this.#cancelPending();
    this.#posts.abort(new Canceled());
    this.#posts = new AbortController();
    if (this.session) fetch(this.#url, { method: 'DELETE', headers: this.#headers(), keepalive: true }).catch(() => {});
    this.session = this.#version = '';
  }

  /** Cancels the server requests of a session that ends: the next session reuses their IDs. */
  #cancelPending() {
    for (const asked of this.#asked.values()) asked.abort();
    this.#asked.clear();
  }

  async #exchange(message, { label, signal }, again = true) {
    await this.#opening; // wait for the new session
    if (signal?.aborted || !this.isOpen) throw new Canceled();
    const { session } = this;
    const response = await this.#post(message);
    if (response.status === 404 && session && again) { // the server has forgotten the session and done nothing
      if (this.session === session || this.#opening) await this.open(); // unless another request did so
      return this.#exchange(message, { label, signal }, false);
    }
    return this.#answer(response, message.id, label);
  }

  async #answer(response, id, label) {
    if (response.status === 202) throw new Canceled();
    for await (const m of messages(response)) {
      this.#hooks.message?.(true, m);
      if (m.method || m.id !== id && response.ok) this.#take(m, label);
      else if (m.error && response.ok) throw new RPCError(m.error);
      else if (m.error) throw new HTTPError(response.status, m.error.message);
      else return m.result;
    }
    throw new HTTPError(response.status, response.ok ? 'The connection ended before the response' : `HTTP ${response.status} ${response.statusText}`);
  }

  #headers() {
    return {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...this.session && { 'Mcp-Session-Id': this.session },
      ...this.#version && { 'Mcp-Protocol-Version': this.#version },
    };
  }

  #post(message, signal = this.#posts.signal) {
    this.#hooks.message?.(false, message);
    return fetch(this.#url, { method: 'POST', headers: this.#headers(), body: stringify(message), signal });
  }

  /** Keeps the stream open for messages that belong to no call. */
  async #listen() {
    this.pause(); // close the current one
    const stop = this.#stream = new AbortController();
    for (let failures = 0; !stop.signal.aborted;) {
      try {
        const response = await fetch(this.#url, { headers: this.#headers(), signal: stop.signal, cache: 'no-store' }); // otherwise it waits for the previous one
        if (response.status === 405) return; // the server offers no stream
        if (response.status === 404) return await this.open();
        if (!response.ok) throw new HTTPError(response.status, response.statusText);
        failures = 0;
        this.#hooks.listening(this.#heard === this.session);
        this.#heard = this.session;
        for await (const m of messages(response)) {
          this.#hooks.message?.(true, m);
          this.#take(m);
        }
      } catch {
        if (stop.signal.aborted) return;
      }
      await new Promise((done) => setTimeout(done, RECONNECT[Math.min(failures++, RECONNECT.length - 1)]));
    }
  }

  /** Handles a message that is not a response. */
  #take(m, label) {
    const { id, method, params } = m;
    if (!method) return;
    if (id !== undefined) this.#asks(id, method, params, label);
    else if (method === 'notifications/cancelled') this.#asked.get(params?.requestId)?.abort();
    else {
      if (method === 'notifications/progress') this.#progress.get(params?.progressToken)?.(params);
      this.#hooks.notification(method, params, label);
    }
  }

  async #asks(id, method, params, label) {
    const ended = new AbortController();
    this.#asked.set(id, ended);
    let reply;
    try {
      const result = method === 'ping' ? {} : await this.#hooks.request(method, params ?? {}, { label, signal: ended.signal });
      reply = { result };
    } catch (error) {
      reply = { error: { code: error.code ?? -32603, message: error.message } };
    }
    if (this.#asked.get(id) === ended) this.#asked.delete(id);
    if (!ended.signal.aborted) await this.#post({ jsonrpc: '2.0', id, ...reply }).catch(() => {});
  }
}

/** Yields the messages of a response: one JSON message, or those of an event stream. */
async function* messages(response) {
  if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    const text = await response.text();
    try {
      yield parse(text);
    } catch {
      throw new HTTPError(response.status, response.ok ? 'The response is not JSON' : text.slice(0, 300) || response.statusText);
    }
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    if (!value.includes('\n')) continue; // a long line arrives in many parts
    const lines = rest.split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(5));
      if (line === '' && data.length > 0) {
        yield parse(data.join('\n'));
        data = [];
      }
    }
  }
}
