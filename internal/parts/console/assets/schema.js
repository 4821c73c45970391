/** The part of JSON Schema that forms need. If in doubt, it accepts a value. */

import { isObject, stringify } from './json.js';

/** Appends a key to a JSON Pointer. */
export const join = (path, key) => `${path}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;

/** Returns the objects in a schema that an anchor names. Below an $id, anchors belong to another schema. */
function anchored(value, name) {
  if (typeof value !== 'object' || value === null) return [];
  const own = [value.$anchor, value.$dynamicAnchor].filter((n) => n === name).map(() => value);
  return own.concat(...Object.values(value).filter((v) => typeof v?.$id !== 'string').map((v) => anchored(v, name)));
}

/** Returns the target of a local $ref. */
function follow(ref, root) {
  if (typeof ref !== 'string' || !ref.startsWith('#')) return {};
  if (/^#[^/]/.test(ref)) {
    const found = anchored(root, ref.slice(1));
    return found.length === 1 ? found[0] : {};
  }
  let at = root;
  for (const part of ref.slice(1).split('/').slice(1)) at = at?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  return at ?? {};
}

const isNull = (s) => isObject(s) && (s.type === 'null' || s.const === null && 'const' in s);

/**
 * Simplifies a schema: follows references, merges allOf, moves null to `nullable`, and the other choices to
 * `alternatives`.
 */
export function resolve(schema, root, depth = 0) {
  if (!isObject(schema) || depth > 32) return {};
  if (schema.$ref) return resolve({ ...follow(schema.$ref, root), ...without(schema, '$ref') }, root, depth + 1);
  if (Array.isArray(schema.allOf)) {
    const parts = [without(schema, 'allOf'), ...schema.allOf].map((s) => resolve(s, root, depth + 1));
    return resolve(parts.reduce(merge, {}), root, depth + 1);
  }
  const list = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(list) && list.length > 0) {
    const rest = without(schema, 'anyOf', 'oneOf');
    const some = list.filter((s) => !isNull(s));
    const nullable = some.length < list.length || rest.nullable;
    if (some.length === 1) return { ...resolve({ ...without(resolve(some[0], root, depth + 1), ...Object.keys(rest)), ...rest }, root, depth + 1), nullable };
    const constants = some.map((s) => resolve(s, root, depth + 1));
    if (constants.every((s) => 'const' in s)) return { ...rest, nullable, enum: constants.map((s) => s.const), enumNames: constants.map((s) => s.title) };
    const base = isObject(rest.properties) ? { properties: rest.properties, required: rest.required, type: 'object' } : {};
    return { ...rest, nullable, alternatives: some.map((s) => merge(base, resolve(s, root, depth + 1))) };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((t) => t !== 'null');
    const nullable = types.length < schema.type.length;
    if (types.length <= 1) return { ...schema, type: types[0], nullable };
    return { ...without(schema, 'type'), nullable, alternatives: types.map((type) => ({ ...without(schema, 'description', 'title'), type })) };
  }
  return schema.type || !isObject(schema.properties) ? schema : { ...schema, type: 'object' };
}

const without = (object, ...keys) => Object.fromEntries(Object.entries(object).filter(([k]) => !keys.includes(k)));

function merge(a, b) {
  const merged = { ...a, ...b };
  if (a.properties || b.properties) merged.properties = { ...a.properties, ...b.properties };
  if (a.required || b.required) merged.required = [...new Set([...a.required ?? [], ...b.required ?? []])];
  return merged;
}

/** Returns the names of the arguments that a schema marks as secret. */
export const secretNames = (schema) => Object.entries(schema?.properties ?? {}).filter(([, p]) => p?.format === 'password' || p?.writeOnly === true).map(([name]) => name);

/** Returns arguments with a mask in place of secrets. */
export function maskSecrets(schema, args) {
  const names = secretNames(schema).filter((name) => Object.hasOwn(args, name));
  return names.length === 0 ? args : { ...args, ...Object.fromEntries(names.map((name) => [name, '***'])) };
}

export function typeOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint' || Number.isInteger(value)) return 'integer';
  return typeof value;
}

/** Returns a short name for the type of a schema. */
export function typeName(schema) {
  if (schema.alternatives) return 'one of several';
  if (schema.enum || 'const' in schema) return '';
  if (schema.type === 'array' && isObject(schema.items) && typeof schema.items.type === 'string') return `array of ${schema.items.type}s`;
  return [schema.type, schema.format].filter(Boolean).join(', ');
}

const article = (type) => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`);
const hasType = (value, type) => type === typeOf(value) || type === 'number' && typeOf(value) === 'integer';
const same = (a, b) => a === b || stringify(a) === stringify(b);

const FORMATS = {
  date: [/^\d{4}-\d\d-\d\d$/, 'a date: 2026-01-31'],
  'date-time': [/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/, 'a date and time: 2026-01-31T09:30:00Z'],
  email: [/^[^\s@]+@[^\s@]+$/, 'an e-mail address'],
  uri: [/^[a-z][a-z\d+.-]*:/i, 'a URI: https://example.com'],
};

/**
 * Returns the problems of a value.
 * @returns {{path: string, message: string}[]}
 */
export function validate(schema, value, root = schema, path = '', depth = 0) {
  if (schema === false) return [{ path, message: 'Not allowed' }];
  if (!isObject(schema) || depth > 64) return [];
  const inner = (s, v, p) => validate(s, v, root, p, depth + 1);
  const errors = schema.$ref ? inner(follow(schema.$ref, root), value, path) : [];
  const wrong = (message) => errors.push({ path, message });
  const types = [schema.type ?? []].flat();
  if (types.length > 0 && !types.some((t) => hasType(value, t))) {
    return [{ path, message: `Must be ${types.map(article).join(' or ')}` }];
  }
  if (schema.enum && !schema.enum.some((e) => same(e, value))) wrong(`Must be one of ${schema.enum.map((e) => stringify(e)).join(', ')}`);
  if ('const' in schema && !same(schema.const, value)) wrong(`Must be ${stringify(schema.const)}`);
  CHECKS[typeOf(value)]?.(schema, value, { wrong, inner, path, errors });
  for (const s of schema.allOf ?? []) errors.push(...inner(s, value, path));
  for (const list of [schema.anyOf, schema.oneOf]) {
    const results = (list ?? []).map((s) => inner(s, value, path));
    if (results.every((r) => r.length > 0)) errors.push(...results.sort((a, b) => a.length - b.length)[0] ?? []);
  }
  return errors;
}

const CHECKS = {
  string(s, value, { wrong }) {
    const length = [...value].length;
    if (length < s.minLength) wrong(s.minLength === 1 ? 'Must not be empty' : `At least ${s.minLength} characters, this has ${length}`);
    if (length > s.maxLength) wrong(`At most ${s.maxLength} characters, this has ${length}`);
    if (s.pattern && !matches(s.pattern, value)) wrong(`Must match ${s.pattern}`);
    const [pattern, what] = FORMATS[s.format] ?? [];
    if (pattern && !pattern.test(value)) wrong(`Must be ${what}`);
  },
  number(s, value, { wrong }) {
    if (value < s.minimum) wrong(`At least ${s.minimum}`);
    if (value > s.maximum) wrong(`At most ${s.maximum}`);
    if (value <= s.exclusiveMinimum) wrong(`More than ${s.exclusiveMinimum}`);
    if (value >= s.exclusiveMaximum) wrong(`Less than ${s.exclusiveMaximum}`);
    const quotient = s.multipleOf > 0 && Number(value) / s.multipleOf;
    if (quotient && Math.abs(quotient - Math.round(quotient)) > 1e-9) wrong(`A multiple of ${s.multipleOf}`);
  },
  integer(s, value, about) {
    CHECKS.number(s, value, about);
  },
  array(s, value, { wrong, inner, path, errors }) {
    if (value.length < s.minItems) wrong(`At least ${s.minItems} item${s.minItems === 1 ? '' : 's'}`);
    if (value.length > s.maxItems) wrong(`At most ${s.maxItems} item${s.maxItems === 1 ? '' : 's'}`);
    if (s.uniqueItems && new Set(value.map((v) => stringify(v))).size < value.length) wrong('No item twice');
    const first = s.prefixItems ?? (Array.isArray(s.items) ? s.items : []);
    value.forEach((v, i) => errors.push(...inner(i < first.length ? first[i] : Array.isArray(s.items) ? s.additionalItems : s.items, v, join(path, i))));
  },
  object(s, value, { wrong, inner, path, errors }) {
    for (const key of s.required ?? []) if (value[key] === undefined) errors.push({ path: join(path, key), message: 'Required' });
    for (const [key, v] of Object.entries(value)) {
      const named = Object.hasOwn(s.properties ?? {}, key);
      const patterns = Object.keys(s.patternProperties ?? {}).filter((p) => matches(p, key));
      if (named) errors.push(...inner(s.properties[key], v, join(path, key)));
      for (const p of patterns) errors.push(...inner(s.patternProperties[p], v, join(path, key)));
      if (named || patterns.length > 0) continue;
      if (s.additionalProperties === false) errors.push({ path: join(path, key), message: `There is no property "${key}"` });
      else errors.push(...inner(s.additionalProperties, v, join(path, key)));
    }
    const count = Object.keys(value).length;
    if (count < s.minProperties) wrong(`At least ${s.minProperties} properties`);
    if (count > s.maxProperties) wrong(`At most ${s.maxProperties} properties`);
  },
};

/** Patterns may use another dialect. Unreadable patterns match everything. */
function matches(pattern, text) {
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true;
  }
}
