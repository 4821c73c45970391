/** Forms made from JSON Schema. */

import { add, button, fill, h } from './dom.js';
import { isObject, parse, stringify } from './json.js';
import { join, resolve, typeName, typeOf, validate } from './schema.js';

/**
 * A field edits one value.
 * @typedef {object} Field
 * @property {HTMLElement} el
 * @property {() => any} get undefined: no value, not sent
 * @property {(value: any) => void} set
 * @property {(path: string) => {path: string, message: string}[]} [unreadable] problems of text that is not a value
 * @property {(errors: {path: string, message: string}[], path: string) => {path: string, message: string}[]} show
 *   shows the messages that belong here, returns the others
 *
 * @typedef {object} About
 * @property {any} root the schema that resolves references
 * @property {string} name
 * @property {boolean} [required]
 * @property {number} depth
 * @property {(name: string, value: string, others: object) => Promise<string[]>} [suggest]
 * @property {boolean} [titles] label fields by their titles
 * @property {boolean} [prefill] defaults of optional fields are values, which are sent
 * @property {boolean} [bare] the label is only for screen readers
 * @property {boolean} [plain] without a description
 * @property {() => object} [others] the values of the other fields
 */

let lastID = 0;
const nextID = () => `f${++lastID}`;

/**
 * A form for the value of a schema.
 * @param {any} schema @param {{suggest?: About['suggest'], titles?: boolean, prefill?: boolean}} [options]
 */
export function createForm(schema, { suggest, titles, prefill } = {}) {
  const top = objectField(resolve(schema, schema), { root: schema, name: '', required: true, depth: 0, suggest, titles, prefill });
  const rest = h('p', { class: 'field-error', role: 'alert', hidden: true });
  const el = h('div', { class: 'form' }, top.el, rest);
  /** Shows messages next to their fields, and those without a field below. */
  let shown = [];
  const show = (errors) => {
    shown = errors;
    const others = top.show(errors, '');
    rest.hidden = others.length === 0;
    rest.textContent = others.map((e) => `${e.path || 'value'}: ${e.message}`).join('; ');
    return errors;
  };
  const problems = () => {
    const unreadable = top.unreadable('');
    const places = new Set(unreadable.map((e) => e.path));
    return [...unreadable, ...validate(schema, top.get() ?? {}, schema).filter((e) => !places.has(e.path))];
  };
  // A message goes as soon as its problem is solved. New ones come with the next check.
  for (const event of ['input', 'change', 'edited']) {
    el.addEventListener(event, () => {
      if (shown.length === 0) return;
      const left = problems();
      show(shown.filter((e) => left.some((l) => l.path === e.path && l.message === e.message)));
    });
  }
  return {
    el,
    isEmpty: top.isEmpty,
    get: () => top.get() ?? {},
    set: top.set,
    show,
    /** Shows and returns all problems. */
    check: () => show(problems()),
    focusError: () => el.querySelector('[aria-invalid="true"], .invalid input, .invalid select, .invalid textarea, .invalid button')?.focus(),
  };
}

/** @param {any} schema @param {About} about @returns {Field} */
function field(schema, about) {
  const s = resolve(schema, about.root);
  if ('const' in s && !s.enum && about.required) return fixedField(s, about);
  if (s.enum || 'const' in s) return choiceField(s, about);
  if (s.alternatives) return alternativesField(s, about);
  return (FIELDS[s.type] ?? jsonField)(s, about);
}

/** Returns the frame of a field: label, description, control, message. */
function frame(s, about, control, { group = false, action } = {}) {
  const id = nextID();
  const error = h('p', { class: 'field-error', id: `${id}-error`, hidden: true });
  const text = about.plain ? undefined : s.description;
  const help = text && h('p', { class: 'field-help', id: `${id}-help` }, text);
  const name = [
    h('span', { class: 'field-name' }, about.titles && s.title || about.name),
    about.required && h('span', { class: 'required', title: 'required' }, h('span', { 'aria-hidden': 'true' }, '*'), h('span', { class: 'sr-only' }, ' required')),
    h('span', { class: 'field-type' }, hint(s)),
  ];
  const described = [help && help.id, error.id].filter(Boolean).join(' ');
  const target = group ? null : control.matches('input, select, textarea') ? control : control.querySelector('input, select, textarea');
  if (target) {
    target.id ||= id;
    target.dataset.key = about.name;
    target.setAttribute('aria-describedby', described);
    if (about.required) target.setAttribute('aria-required', 'true');
  }
  const label = target ? h('label', { htmlFor: target.id, class: 'field-label' }, name) : h('legend', { class: 'field-label' }, name);
  const el = h(group ? 'fieldset' : 'div', {
    class: `field${group ? ' group' : ''}`, data: { field: about.name },
    'aria-describedby': group ? described : undefined, 'aria-label': group && about.bare ? about.name : undefined,
  },
    about.bare && group ? undefined : about.bare ? h('span', { class: 'sr-only' }, label) : group && action ? [label, h('div', { class: 'group-action' }, action)] : label, help, control, error);
  const show = (errors, path) => {
    const own = errors.filter((e) => e.path === path || e.path.startsWith(`${path}/`));
    error.hidden = own.length === 0;
    error.textContent = own.map((e) => (e.path === path ? e.message : `${e.path.slice(path.length + 1)}: ${e.message}`)).join('; ');
    el.classList.toggle('invalid', own.length > 0);
    target?.setAttribute('aria-invalid', String(own.length > 0));
    return errors.filter((e) => !own.includes(e));
  };
  return { el, show };
}

/** Type, limits and default, in small print. */
function hint(s) {
  const limits = s.minimum !== undefined && s.maximum !== undefined ? `${s.minimum} to ${s.maximum}`
    : s.minimum !== undefined ? `from ${s.minimum}` : s.maximum !== undefined ? `up to ${s.maximum}` : '';
  return [typeName(s), limits, s.nullable && 'or null', s.default !== undefined && s.default !== null && `default ${stringify(s.default)}`].filter(Boolean).join(' · ');
}

/** Returns a field with one text control. `read` converts the text into a value. */
function textual(s, about, control, read, write) {
  let explicit; // a value that looks empty: "" or null
  control.addEventListener('input', () => { explicit = undefined; });
  const { el, show } = frame(s, about, control.parentElement ?? control);
  const set = (value) => {
    explicit = value === '' || value === null ? { value } : undefined;
    control.value = value === undefined || value === null ? '' : write(value);
  };
  set(prefilled(s, about));
  return {
    el, set, show,
    get: () => (control.value !== '' ? read(control.value) : explicit ? explicit.value : s.nullable && about.required ? null : undefined),
    unreadable: () => [],
  };
}

/** Returns the value that a new field has. */
const prefilled = (s, about) => (about.required || about.prefill ? s.default : undefined);

/** Returns a field for the only value that is allowed. */
function fixedField(s, about) {
  const el = h('div', { class: 'field fixed', data: { field: about.name } },
    h('p', { class: 'field-label' }, h('span', { class: 'field-name' }, about.titles && s.title || about.name), h('code', {}, typeof s.const === 'string' ? s.const : stringify(s.const))),
    s.description && h('p', { class: 'field-help' }, s.description));
  let other; // a value that was set, although it is not allowed
  return { el, get: () => (other === undefined ? s.const : other), set: (value) => { other = stringify(value) === stringify(s.const) ? undefined : value; }, show: (errors) => errors, unreadable: () => [] };
}

const LONG = /body|content|text|message|description|prompt|code|sql|script|html|markdown|input|query|note|comment/i;
const INPUTS = { date: 'date', email: 'email', uri: 'url', password: 'password' };

function stringField(s, about) {
  const type = INPUTS[s.format] ?? 'text';
  const long = type === 'text' && !s.format && !about.suggest && (s.maxLength === undefined ? LONG.test(about.name) : s.maxLength > 120);
  const placeholder = s.default !== undefined && s.default !== null ? String(s.default) : s.format === 'date-time' ? '2026-01-31T09:30:00Z' : undefined;
  const control = long ? h('textarea', { rows: 1, placeholder, spellcheck: 'false' }) : h('input', { type, placeholder, autocomplete: 'off', spellcheck: 'false' });
  if (about.suggest || Array.isArray(s.examples)) suggestions(control, s.examples ?? [], about);
  return textual(s, about, control, (text) => text, String);
}

/** Suggests values while the user types: examples of the schema, and completions of the server. */
function suggestions(control, examples, about) {
  const list = h('datalist', { id: nextID() }, examples.map((value) => h('option', { value: String(value) })));
  control.setAttribute('list', list.id);
  h('div', { class: 'suggested' }, control, list);
  if (!about.suggest) return;
  let timer;
  let asked = 0;
  const ask = async () => {
    const turn = ++asked;
    const values = await about.suggest(about.name, control.value, about.others?.() ?? {});
    if (turn === asked) fill(list, values.map((value) => h('option', { value })));
  };
  for (const event of ['input', 'focus']) {
    control.addEventListener(event, () => {
      clearTimeout(timer);
      timer = setTimeout(ask, 200);
    });
  }
}

function numberField(s, about) {
  const placeholder = s.default === undefined || s.default === null ? undefined : String(s.default);
  const control = h('input', { type: 'text', inputmode: s.type === 'integer' ? 'numeric' : 'decimal', placeholder, autocomplete: 'off', class: 'narrow' });
  return textual(s, about, control, (text) => {
    if (/^\s*-?\d+\s*$/.test(text) && !Number.isSafeInteger(Number(text))) return BigInt(text.trim());
    return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text);
  }, String);
}

/** Returns a field for JSON, used where no other field fits. */
function jsonField(s, about) {
  const control = h('textarea', { rows: 2, class: 'code', spellcheck: 'false', placeholder: s.type ?? 'JSON' });
  const read = (text) => {
    try {
      return parse(text);
    } catch {
      return undefined;
    }
  };
  const f = textual(s, about, control, read, (value) => stringify(value, 2));
  f.unreadable = (path) => (control.value.trim() !== '' && read(control.value) === undefined ? [{ path, message: 'Not valid JSON; a text needs quotes' }] : []);
  return f;
}

function booleanField(s, about) {
  const group = nextID();
  const options = [...about.required ? [] : [['Not set', undefined]], ['True', true], ['False', false]];
  const radios = options.map(([, value]) => h('input', { type: 'radio', name: group, id: nextID(), data: { value: String(value) } }));
  const control = h('div', { class: 'segments' }, options.map(([text], i) => [radios[i], h('label', { htmlFor: radios[i].id }, text)]));
  const { el, show } = frame(s, about, control, { group: true });
  const set = (value) => radios.forEach((r, i) => { r.checked = options[i][1] === (value ?? undefined); });
  set(prefilled(s, about));
  return { el, show, set, get: () => options[radios.findIndex((r) => r.checked)]?.[1], unreadable: () => [] };
}

/** Returns a field for one of several values of any type. */
function choiceField(s, about) {
  const values = s.enum ?? [s.const];
  const names = s.enumNames ?? [];
  const none = s.default === undefined ? (about.required ? 'Choose…' : 'Not set') : 'Not set';
  const control = h('select', {}, h('option', { value: '' }, none),
    values.map((v, i) => h('option', { value: String(i) }, names[i] ?? (typeof v === 'string' ? v : stringify(v)))));
  const { el, show } = frame(s, about, control);
  const set = (value) => {
    const i = value === undefined ? -1 : values.findIndex((v) => stringify(v) === stringify(value));
    control.value = i < 0 ? '' : String(i);
  };
  set(prefilled(s, about) ?? (about.required && values.length === 1 ? values[0] : undefined));
  return { el, show, set, get: () => (control.value === '' ? undefined : values[Number(control.value)]), unreadable: () => [] };
}

/** Returns a field for one of several alternatives. */
function alternativesField(s, about) {
  const all = s.alternatives.map((a) => resolve(a, about.root));
  const chooser = h('select', { class: 'narrow', 'aria-label': `Kind of ${about.name || 'value'}` },
    !about.required && h('option', { value: '-1' }, 'Not set'),
    all.map((a, i) => h('option', { value: String(i) }, alternativeName(a, i))));
  const place = h('div', { class: 'alternative' });
  const { el, show } = frame(s, about, h('div', {}, chooser, place), { group: true });
  let inner;
  const choose = (i) => {
    chooser.value = String(i);
    inner = i < 0 ? undefined : field(all[i], { root: about.root, name: alternativeName(all[i], i), required: true, depth: about.depth + 1, bare: true });
    fill(place, inner?.el);
  };
  chooser.addEventListener('change', () => choose(Number(chooser.value)));
  const none = about.required ? 0 : -1;
  choose(none);
  return {
    el,
    get: () => inner?.get(),
    set(value) {
      if (value === undefined || value === null) return choose(none);
      const fits = all.findIndex((a) => validate(a, value, about.root).length === 0);
      const like = all.findIndex((a) => a.type === typeOf(value) || a.type === 'number' && typeOf(value) === 'integer');
      choose(Math.max(fits >= 0 ? fits : like, 0));
      inner.set(value);
    },
    unreadable: (path) => inner?.unreadable(path) ?? [],
    show: (errors, path) => show(inner ? inner.show(errors, path) : errors, path),
  };
}

function alternativeName(s, i) {
  const tag = Object.values(s.properties ?? {}).find((p) => isObject(p) && 'const' in p);
  return s.title ?? (tag ? String(tag.const) : undefined) ?? (typeName(s) || `Option ${i + 1}`);
}

function arrayField(s, about) {
  const items = resolve(s.items, about.root);
  if (s.prefixItems || Array.isArray(s.items)) return jsonField(s, about);
  if (items.enum?.length <= 12 && (s.uniqueItems || about.titles)) return checksField(s, items, about);
  /** @type {Field[]} */
  let rows = [];
  let present = Boolean(about.required);
  const isObjects = items.type === 'object' || Boolean(items.alternatives);
  const list = h('ol', { class: 'rows' });
  const redraw = (focus) => {
    list.hidden = rows.length === 0;
    fill(list, rows.map((row, i) => h('li', { class: isObjects ? 'row card' : 'row' }, isObjects && h('span', { class: 'row-number', 'aria-hidden': 'true' }, `${about.name} ${i + 1}`), row.el, h('div', { class: 'row-actions' },
      button('', () => move(i, -1), { kind: 'ghost small', symbol: 'up', label: `Move item ${i + 1} up`, disabled: i === 0 }),
      button('', () => move(i, 1), { kind: 'ghost small', symbol: 'down', label: `Move item ${i + 1} down`, disabled: i === rows.length - 1 }),
      button('', () => { rows.splice(i, 1); redraw(); }, { kind: 'ghost small', symbol: 'close', label: `Remove item ${i + 1}` })))));
    list.dispatchEvent(new Event('edited', { bubbles: true }));
    if (focus) rows.at(-1)?.el.querySelector('input, select, textarea, button')?.focus();
  };
  const move = (i, by) => {
    [rows[i], rows[i + by]] = [rows[i + by], rows[i]];
    redraw();
  };
  const append = (value) => {
    const row = field(items, { root: about.root, name: `${about.name} ${rows.length + 1}`, required: true, depth: about.depth + 1, bare: true, plain: true });
    if (value !== undefined) row.set(value);
    rows.push(row);
  };
  const more = button('Add item', () => { append(); redraw(true); }, { kind: 'small', symbol: 'plus' });
  const { el, show } = frame(s, about, h('div', {}, list, more), { group: true });
  const set = (value) => {
    present = value !== undefined || Boolean(about.required);
    rows = [];
    for (const v of Array.isArray(value) ? value : []) append(v);
    redraw();
  };
  set(prefilled(s, about));
  return {
    el, set,
    get: () => (rows.length > 0 ? rows.map((r) => r.get() ?? null) : present ? [] : undefined),
    unreadable: (path) => rows.flatMap((r, i) => r.unreadable(join(path, i))),
    show: (errors, path) => show(rows.reduce((left, r, i) => r.show(left, join(path, i)), errors), path),
  };
}

/** Returns a field for a set of values. */
function checksField(s, { enum: values, enumNames = [] }, about) {
  const boxes = values.map(() => h('input', { type: 'checkbox', id: nextID() }));
  const control = h('div', { class: 'checks' }, values.map((v, i) => h('span', { class: 'check' }, boxes[i], h('label', { htmlFor: boxes[i].id }, enumNames[i] ?? (typeof v === 'string' ? v : stringify(v))))));
  const { el, show } = frame(s, about, control, { group: true });
  const set = (list) => boxes.forEach((b, i) => { b.checked = Array.isArray(list) && list.includes(values[i]); });
  set(prefilled(s, about));
  const get = () => {
    const chosen = values.filter((_, i) => boxes[i].checked);
    return chosen.length > 0 || about.required ? chosen : undefined;
  };
  return { el, show, set, get, unreadable: () => [] };
}

/** Returns a field for an object: its properties, and rows for additional ones. An optional object is created on request. */
function objectField(s, about) {
  const names = Object.keys(s.properties ?? {});
  if (about.depth > 0 && names.length === 0 && !isObject(s.additionalProperties)) return jsonField({ ...s, type: 'object' }, about);
  const open = names.length === 0 ? s.additionalProperties !== false : isObject(s.additionalProperties) || s.additionalProperties === true;
  /** @type {Map<string, Field>} */
  const fields = new Map();
  let extras = {}; // members that were set but have no field
  let pairs = [];
  let made = false;
  const body = h('div', { class: about.depth > 0 ? 'nested' : 'fields' });
  const list = h('div', { class: 'pairs' });
  const drawPairs = () => fill(list, pairs.map((p) => p.el));

  const appendPair = (name = '', value) => {
    const key = h('input', { type: 'text', value: name, 'aria-label': 'Property name', placeholder: 'name', spellcheck: 'false' });
    const f = field(isObject(s.additionalProperties) ? s.additionalProperties : {}, { root: about.root, name: 'Value', depth: about.depth + 1, required: true, bare: true });
    if (value !== undefined) f.set(value);
    const remove = () => {
      pairs = pairs.filter((p) => p !== pair);
      drawPairs();
    };
    const pair = { key, field: f, el: h('div', { class: 'pair' }, key, f.el, button('', remove, { kind: 'ghost small', symbol: 'close', label: 'Remove property' })) };
    pairs.push(pair);
    drawPairs();
    return key;
  };
  const make = () => {
    made = true;
    const required = new Set(s.required ?? []);
    const others = (name) => Object.fromEntries([...fields].filter(([n]) => n !== name).map(([n, f]) => [n, f.get()]).filter(([, v]) => v !== undefined));
    for (const name of names) {
      fields.set(name, field(s.properties[name], { root: about.root, name, required: required.has(name), depth: about.depth + 1, suggest: about.suggest, titles: about.titles, prefill: about.prefill, others: () => others(name) }));
    }
    fill(body, [...fields.values()].map((f) => f.el),
      open && names.length === 0 && about.depth === 0 && h('p', { class: 'muted' }, 'No arguments are declared, but any may be given.'),
      open && [list, button('Add property', () => appendPair().focus(), { kind: 'small', symbol: 'plus' })]);
    toggle?.replaceChildren('Remove');
  };
  const drop = () => {
    made = false;
    fields.clear();
    pairs = [];
    extras = {};
    fill(body);
    fill(list);
    toggle?.replaceChildren('Set');
  };
  const toggle = about.depth === 0 || about.required ? undefined : h('button', { type: 'button', class: 'button small', 'aria-label': `Set or remove ${about.name}`, onclick: () => (made ? drop() : make()) }, 'Set');
  const outer = about.depth > 0 ? frame(s, about, body, { group: true, action: toggle }) : { el: body, show: (errors) => errors };
  if (!toggle) make();
  return {
    el: outer.el,
    isEmpty: names.length === 0 && !open,
    get() {
      if (!made) return undefined;
      const value = { ...extras };
      for (const [name, f] of fields) set(value, name, f.get());
      for (const p of pairs) if (p.key.value !== '') set(value, p.key.value, p.field.get());
      return value;
    },
    set(value) {
      drop();
      if (value === undefined && toggle) return;
      make();
      for (const [name, v] of Object.entries(isObject(value) ? value : {})) {
        if (fields.has(name)) fields.get(name).set(v);
        else if (open) appendPair(name, v);
        else set(extras, name, v);
      }
    },
    unreadable: (path) => [...fields].map(([n, f]) => [n, f]).concat(pairs.map((p) => [p.key.value, p.field])).flatMap(([n, f]) => f.unreadable(join(path, n))),
    show(errors, path) {
      for (const [name, f] of fields) errors = f.show(errors, join(path, name));
      for (const p of pairs) errors = p.field.show(errors, join(path, p.key.value));
      return outer.show(errors, path);
    },
  };
}

/** Sets a member with any name, even "__proto__". */
function set(object, name, value) {
  if (value !== undefined) Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

const FIELDS = { string: stringField, number: numberField, integer: numberField, boolean: booleanField, array: arrayField, object: objectField };

/** A text area for the whole value as JSON. */
export function createJSONEditor() {
  const area = h('textarea', { class: 'code json-editor', spellcheck: 'false', rows: 8, id: nextID(), data: { key: 'json' }, 'aria-label': 'Arguments as JSON' });
  const error = h('div', { class: 'field-error', role: 'alert', hidden: true });
  const show = (lines) => {
    error.hidden = lines.length === 0;
    fill(error, lines.map((l) => h('p', {}, l)));
  };
  const write = (text) => {
    area.value = text;
    show([]);
  };
  return {
    el: add(h('div', { class: 'json-edit' }), area, error),
    write,
    set: (value) => write(stringify(value, 2)),
    /** Returns the text, valid JSON or not. */
    text: () => area.value,
    /** Returns the value, or shows a message and returns undefined. */
    get() {
      try {
        const value = parse(area.value.trim() || '{}');
        if (!isObject(value)) throw new Error('arguments must be an object: {…}');
        show([]);
        return value;
      } catch (e) {
        show([`Not valid JSON: ${e.message}`]);
        area.focus();
        return undefined;
      }
    },
    show: (errors) => show(errors.map((e) => `${e.path.slice(1) || 'arguments'}: ${e.message}`)),
  };
}
