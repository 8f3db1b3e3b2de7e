import { deserialize, serialize } from 'node:v8';
import { storable } from './messages';

/** The letter J, then JSON; the letter S, then what V8 makes of it. */
const json = 0x4a;
const structured = 0x53;
const structuredHead = Buffer.from([structured]);

/** A tree with more values than this is cheaper to hand to V8 than to look through first. */
const mostValues = 2000;

/** Whether JSON gives the value back as it was; a shared or cyclic part runs out of `left` and so counts as not. */
const survivesJson = (value: unknown): boolean => {
  let left = mostValues;
  const check = (item: unknown, depth: number): boolean => {
    if (--left < 0 || depth > 60) return false;
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return true;
    if (typeof item === 'number') return Number.isFinite(item) && !Object.is(item, -0);
    if (typeof item !== 'object') return false;
    if (Array.isArray(item)) return item.every((inner) => check(inner, depth + 1));
    if (Object.getPrototypeOf(item) !== Object.prototype) return false;
    for (const key in item) {
      const inner = (item as Record<string, unknown>)[key];
      if (inner !== undefined && !check(inner, depth + 1)) return false;
    }
    return true;
  };
  return check(value, 0);
};

/** A function somewhere in the record of a recipient must not keep its message, and others with it, off the disk. */
const structuredOf = (value: unknown): Buffer => {
  try {
    return serialize(value);
  } catch {
    return serialize(storable({ value }).copy['value']);
  }
};

/**
 * JSON where it loses nothing, because it takes a sixth of the time; V8's own format, which also keeps dates, buffers,
 * maps and sets, for the rest.
 */
export const encode = (value: unknown): Buffer =>
  survivesJson(value)
    ? Buffer.from(`J${JSON.stringify(value)}`)
    : Buffer.concat([structuredHead, structuredOf(value)]);

export const decode = (bytes: Buffer): unknown => {
  if (bytes[0] === json) return JSON.parse(bytes.toString('utf8', 1));
  if (bytes[0] === structured) return deserialize(bytes.subarray(1));
  throw new Error('a record in a format this version does not know');
};
