/** A client of MCP over Streamable HTTP: the same that any agent speaks. */

import { parse, stringify } from './json.js';

const VERSION = '2025-11-25';
const CAPABILITIES = { sampling: {}, elicitation: { form: {}, url: {} } };
const PATIENCE = 60_000; // for a session to open
const RECONNECT = [500, 1000, 2000, 5000, 15_000];

/** What a server answers in place of a result. */
export class RPCError extends Error {
  constructor({ code, message, data }) {
    super(message);
    Object.assign(this, { code, data });
  }
}

/** An answer that is no answer of MCP. */
export class HTTPError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Cancelled extends Error {
  constructor() {
    super('Cancelled');
  }
}

/**
 * @typedef {object} Hooks
 * @property {(method: string, params: any, about: {label?: string, signal: AbortSignal}) => Promise<any>} request what a server asks
 * @property {(method: string, params: any, label?: string) => void} notification
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
  #progress = new Map(); // progress token → who hears of it
  #asked = new Map(); // id of a server's request → its AbortController
  #stream = null; // AbortController of the standing stream
  #posts = new AbortController(); // of all that is posted: a session that is closed knows no more of it
  #heard = ''; // the session that had a stream last

  /** @param {string} url @param {Hooks} hooks */
  constructor(url, hooks) {
    this.#url = url;
    this.#hooks = hooks;
  }

  get isOpen() {
    return this.#version !== '';
  }

  /** Opens a session, once for all who ask at the same time. */
  open() {
    this.#opening ??= this.#initialize().finally(() => { this.#opening = null; });
    return this.#opening;
  }

  async #initialize() {
    this.pause();
    this.#withdraw();
    this.session = this.#version = '';
    const params = { protocolVersion: VERSION, capabilities: CAPABILITIES, clientInfo: { name: 'mcpx console', version: '1' } };
    const id = ++this.#lastID;
    const response = await this.#post({ jsonrpc: '2.0', id, method: 'initialize', params }, AbortSignal.timeout(PATIENCE)); // close() leaves it alone, or nobody would end the session
    const result = await this.#answer(response, id);
    this.session = response.headers.get('Mcp-Session-Id') ?? '';
    this.#version = result.protocolVersion;
    try {
      await this.notify('notifications/initialized');
    } catch (error) {
      this.close(); // half open is not open
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
    if (signal?.aborted) throw new Cancelled();
    const id = ++this.#lastID;
    if (progress) {
      params = { ...params, _meta: { ...params._meta, progressToken: id } };
      this.#progress.set(id, progress);
    }
    const call = this.#exchange({ jsonrpc: '2.0', id, method, params }, { label, signal }).finally(() => this.#progress.delete(id));
    if (!signal) return call;
    call.catch(() => {}); // after a cancel nobody waits for it
    return Promise.race([call, new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        if (this.isOpen) this.notify('notifications/cancelled', { requestId: id, reason: 'cancelled in the console' }).catch(() => {});
        reject(new Cancelled());
      });
    })]);
  }

  async notify(method, params) {
    await this.#post({ jsonrpc: '2.0', method, params });
  }

  /** Reads a list to its last page. */
  async list(method, member) {
    const all = [];
    for (let cursor, pages = 0; pages < 100; pages++) {
      const page = await this.request(method, cursor ? { cursor } : {});
      all.push(...page[member] ?? []);
      cursor = page.nextCursor;
      if (!cursor) break;
    }
    return all;
  }

  /** Gives the stream's connection back while nobody looks: all pages of a browser share six. */
  pause() {
    this.#stream?.abort();
    this.#stream = null;
  }

  resume() {
    if (this.session && !this.#stream) this.#listen();
  }

  /** Ends the session, also while the page goes away. */
  close() {
    this.pause();
    this.#withdraw();
    this.#posts.abort(new Cancelled());
    this.#posts = new AbortController();
    if (this.session) fetch(this.#url, { method: 'DELETE', headers: this.#headers(), keepalive: true }).catch(() => {});
    this.session = this.#version = '';
  }

  /** What the session asked that ends here is not asked any more: the next one has the same ids for other questions. */
  #withdraw() {
    for (const asked of this.#asked.values()) asked.abort();
    this.#asked.clear();
  }

  async #exchange(message, { label, signal }, again = true) {
    await this.#opening; // between two sessions it would be of none
    if (signal?.aborted || !this.isOpen) throw new Cancelled();
    const { session } = this;
    const response = await this.#post(message);
    if (response.status === 404 && session && again) { // forgotten: nothing was done yet
      if (this.session === session || this.#opening) await this.open(); // unless another request has done so
      return this.#exchange(message, { label, signal }, false);
    }
    return this.#answer(response, message.id, label);
  }

  async #answer(response, id, label) {
    if (response.status === 202) throw new Cancelled();
    for await (const m of messages(response)) {
      if (m.method || m.id !== id && response.ok) this.#take(m, label);
      else if (m.error && response.ok) throw new RPCError(m.error);
      else if (m.error) throw new HTTPError(response.status, m.error.message);
      else return m.result;
    }
    throw new HTTPError(response.status, response.ok ? 'The connection ended before the answer came' : `HTTP ${response.status} ${response.statusText}`);
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
    return fetch(this.#url, { method: 'POST', headers: this.#headers(), body: stringify(message), signal });
  }

  /** Keeps the stream open for what belongs to no call. */
  async #listen() {
    this.pause(); // there is one
    const stop = this.#stream = new AbortController();
    for (let failures = 0; !stop.signal.aborted;) {
      try {
        const response = await fetch(this.#url, { headers: this.#headers(), signal: stop.signal, cache: 'no-store' }); // or it waits for the one before it
        if (response.status === 405) return; // there is none to have
        if (response.status === 404) return await this.open();
        if (!response.ok) throw new HTTPError(response.status, response.statusText);
        failures = 0;
        this.#hooks.listening(this.#heard === this.session);
        this.#heard = this.session;
        for await (const m of messages(response)) this.#take(m);
      } catch {
        if (stop.signal.aborted) return;
      }
      await new Promise((done) => setTimeout(done, RECONNECT[Math.min(failures++, RECONNECT.length - 1)]));
    }
  }

  /** Takes what a server says by itself. */
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

/** The messages of an answer: one of JSON, or those of an event stream. */
async function* messages(response) {
  if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    const text = await response.text();
    try {
      yield parse(text);
    } catch {
      throw new HTTPError(response.status, response.ok ? 'The answer is not JSON' : text.slice(0, 300) || response.statusText);
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
    if (!value.includes('\n')) continue; // a long line comes in many parts
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
