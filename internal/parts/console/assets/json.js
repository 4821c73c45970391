/** JSON that keeps integers above 2^53 exact, as BigInt. */

/** @param {string} text */
export function parse(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => {
    const exact = typeof value !== 'number' || Number.isSafeInteger(value) || !/^-?\d+$/.test(context?.source ?? '');
    return exact ? value : BigInt(context.source);
  });
}

/** @param {unknown} value @param {number} [indent] */
export function stringify(value, indent) {
  return JSON.stringify(value, (_, v) => {
    if (typeof v !== 'bigint') return v;
    return JSON.rawJSON ? JSON.rawJSON(String(v)) : Number(v);
  }, indent);
}

/** Returns the JSON object or array in a text; undefined for any other text. */
export function parseComposite(text) {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

export const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v);
