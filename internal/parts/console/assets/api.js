/** Requests to mcpx besides MCP: what only the console shows and does. */

import { parse, stringify } from './json.js';
import { state } from './state.js';

const PATIENCE = 90_000; // the check of a new server may take a minute

/**
 * Sends a request about the current profile; with a body it is a POST.
 * @param {string} route @param {Record<string, string>} [query] @param {any} [body]
 * @returns {Promise<any>} the JSON of the response, null if it has none
 */
export async function ask(route, query = {}, body = undefined) {
  const url = `console/${encodeURIComponent(state.profile)}/${route}?${new URLSearchParams(query)}`;
  const options = body === undefined ? {} : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: stringify(body) };
  const response = await fetch(url, { ...options, signal: AbortSignal.timeout(PATIENCE) });
  const text = await response.text();
  if (response.ok) return text ? parse(text) : null;
  let message = `HTTP ${response.status}`;
  try {
    message = parse(text).error.message;
  } catch { /* not from mcpx */ }
  throw new Error(message);
}
