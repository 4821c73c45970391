/** Dialogs that change the config file: add a server, change its settings. */

import { ask } from '../api.js';
import { add, announce, button, duration, fill, h, number, plural } from '../dom.js';
import { poll } from '../session.js';
import { link } from '../state.js';

/** Returns a labeled control. */
function row(label, control, help) {
  control.id ||= `edit-${label.toLowerCase().replace(/\W+/g, '-')}`;
  const hint = help && h('p', { class: 'field-help', id: `${control.id}-help` }, help);
  if (hint) control.setAttribute('aria-describedby', hint.id);
  return h('div', { class: 'field' }, h('label', { class: 'field-label', htmlFor: control.id }, h('span', { class: 'field-name' }, label)), control, hint);
}

/** Opens a dialog with a form. submit returns whether the dialog may close. */
function openDialog(title, body, actions, submit) {
  const problem = h('p', { class: 'field-error pre', role: 'alert', hidden: true });
  const dialog = h('dialog', { class: 'dialog', 'aria-labelledby': 'edit-title', onclose: () => dialog.remove() });
  const attempt = async (f) => {
    problem.hidden = true;
    for (const b of dialog.querySelectorAll('footer button')) b.disabled = true;
    try {
      if (await f()) dialog.close();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.message;
    }
    for (const b of dialog.querySelectorAll('footer button')) b.disabled = false;
  };
  add(dialog, h('form', { novalidate: true, onsubmit: (event) => { event.preventDefault(); attempt(submit); } },
    h('header', {}, h('h2', { id: 'edit-title' }, title)), h('div', { class: 'dialog-body' }, body, problem),
    h('footer', {}, actions(attempt), button('Cancel', () => dialog.close()))));
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector('input, textarea, select')?.focus();
}

const primary = (text) => h('button', { type: 'submit', class: 'button primary' }, text);
const lines = (text) => text.split('\n').map((l) => l.trim()).filter(Boolean);

/**
 * Splits a command line into words as a shell does, except that Windows paths survive: a backslash escapes only a quote, white space
 * or a backslash, and a word may begin with the two of \\server\share.
 */
export function words(text) {
  const found = [];
  let word = null;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (!word && /^\\\\[\w.?-]+\\/.test(text.slice(i))) {
      word = '\\\\';
      i++;
    } else if (quote) {
      if (c === quote) quote = '';
      else if (c === '\\' && quote === '"' && '"\\'.includes(text[i + 1])) word += text[++i];
      else word += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= '';
    } else if (c === '\\' && /["'\\\s]/.test(text[i + 1] ?? '')) word = (word ?? '') + text[++i];
    else if (!/\s/.test(c)) word = (word ?? '') + c;
    else if (word !== null) {
      found.push(word);
      word = null;
    }
  }
  if (quote) throw new Error(`A ${quote} is not closed.`);
  return word === null ? found : [...found, word];
}

/** Reads lines of names and values. */
function pairs(text, separator, what) {
  return Object.fromEntries(lines(text).map((line) => {
    const at = line.indexOf(separator);
    if (at < 1) throw new Error(`${what} needs a name and a value: NAME${separator}VALUE`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

/** Opens the dialog that adds a server. */
export function showAddServer() {
  const field = (tag, props) => h(tag, { spellcheck: 'false', autocomplete: 'off', ...props });
  const name = field('input', { type: 'text', 'aria-required': 'true' });
  const target = field('input', { type: 'text', class: 'code', 'aria-required': 'true' });
  const environment = field('textarea', { rows: 2, class: 'code' });
  const description = field('input', { type: 'text' });
  const report = h('div', { role: 'status' });
  const isRemote = () => /^https?:\/\//i.test(target.value.trim());
  const entry = () => {
    if (name.value.trim() === '') throw new Error('The server needs a name.');
    if (target.value.trim() === '') throw new Error('The server needs a command or a URL.');
    const about = description.value.trim() ? { description: description.value.trim() } : {};
    if (isRemote()) {
      const headers = pairs(environment.value, ':', 'A header');
      return { url: target.value.trim(), ...Object.keys(headers).length > 0 && { headers }, ...about };
    }
    const [command, ...args] = words(target.value);
    const env = pairs(environment.value, '=', 'A variable');
    return { command, ...args.length > 0 && { args }, ...Object.keys(env).length > 0 && { env }, ...about };
  };
  const check = async () => {
    fill(report); // an earlier check is about other values
    const body = entry();
    fill(report, h('p', { class: 'muted' }, 'mcpx starts the server and lists its tools…'));
    try {
      const result = await ask('check', { server: name.value.trim() }, body);
      fill(report, checkReport(result));
      return result.state === 'ready';
    } catch (error) {
      fill(report);
      throw error;
    }
  };
  const save = async () => {
    await ask('add', { server: name.value.trim() }, entry());
    announce(`${name.value.trim()} is added`);
    await poll();
    location.hash = link(name.value.trim());
    return true;
  };
  openDialog('Add a server', [
    row('Name', name),
    row('Command or URL', target, 'For example: uvx mcp-server-time, or https://example.com/mcp'),
    row('Environment or headers', environment, 'One per line: NAME=VALUE for a command, NAME: VALUE for a URL. Write ${TOKEN} to read a secret from the environment of mcpx.'),
    row('Description', description, 'One line about the server, for the agent.'),
    report,
  ], (attempt) => [primary('Check and save'), button('Check', () => attempt(async () => { await check(); return false; })), button('Save anyway', () => attempt(save))],
  async () => (await check() ? save() : false));
}

function checkReport(r) {
  const secrets = r.secrets?.length > 0 && h('p', { class: 'advice' }, `The file would have what looks like a secret (${r.secrets.join(', ')}). Write a reference instead: \${NAME}.`);
  if (r.state === 'ready') return [h('p', { class: 'outcome ok' }, `Ready after ${duration(r.startup_ms ?? 0)}: ${plural(r.tools, 'tool')}, ${number(r.tokens)} tokens.`), secrets];
  return h('section', { class: 'trouble failed' }, h('p', { class: 'pre' }, h('strong', {}, r.reason || 'The server did not become ready.')), r.advice && h('p', { class: 'advice' }, h('b', {}, 'What to do: '), r.advice),
    r.stderr?.length > 0 && h('pre', { class: 'text stderr', tabIndex: 0 }, r.stderr.join('\n')), secrets);
}

/** Opens the dialog that changes a server's description, filters and time limits. */
export async function showSettings(server) {
  const { settings } = await ask('server', { server });
  const text = (value) => h('input', { type: 'text', value, spellcheck: 'false', autocomplete: 'off' });
  const area = (list) => h('textarea', { rows: 2, class: 'code', spellcheck: 'false', value: (list ?? []).join('\n') });
  const description = text(settings.description);
  const allow = area(settings.allow);
  const deny = area(settings.deny);
  const limits = Object.fromEntries(['startup_timeout', 'timeout', 'max_timeout'].map((key) => [key, text(settings[key])]));
  const save = async () => {
    const change = {};
    if (description.value.trim() !== settings.description) change.description = description.value.trim() || null;
    for (const [key, control] of Object.entries(limits)) if (control.value.trim() !== settings[key]) change[key] = control.value.trim() || null;
    const tools = { ...lines(allow.value).length > 0 && { allow: lines(allow.value) }, ...lines(deny.value).length > 0 && { deny: lines(deny.value) } };
    const before = { ...settings.allow?.length > 0 && { allow: settings.allow }, ...settings.deny?.length > 0 && { deny: settings.deny } };
    if (JSON.stringify(tools) !== JSON.stringify(before)) change.tools = Object.keys(tools).length > 0 ? tools : null;
    if (Object.keys(change).length > 0) await ask('change', { server }, change);
    announce(`${server} is saved`);
    await poll();
    return true;
  };
  openDialog(`Settings of ${server}`, [
    row('Description', description, 'One line about the server, for the agent.'),
    row('Show only these tools', allow, 'Names or globs such as get_*, one per line. Empty: all tools.'),
    row('Hide these tools', deny, 'Names or globs, one per line. Hidden tools cannot be called.'),
    row('Start-up limit', limits.startup_timeout, 'Time to connect and to list, for example 30s. Empty: the default.'),
    row('Limit of a call without progress', limits.timeout),
    row('Limit of a call in total', limits.max_timeout),
  ], () => primary('Save'), save);
}
