import { deserialize, serialize } from 'node:v8';
import type { Table } from './store';

/** Seals records with the runtime's key. */
export interface Sealer {
  /**
   * The name is bound to the bytes, so that no record can stand in for another. The first 9 bytes of what comes out name
   * the key; the 12 after them are a nonce, which never comes twice.
   */
  seal(plain: Buffer, name: string): Buffer;
  /** Undefined, or a throw, when the bytes are damaged or of a key that is not at hand. */
  open(sealed: Buffer, name: string): Buffer | undefined;
  hash(text: string): string;
}

const keyNameLength = 9;
const hashLength = 16;

/** The letter J, then JSON; the letter S, then what V8 makes of it. */
const json = 0x4a;
const structured = 0x53;
const structuredHead = Buffer.from([structured]);

/** A tree with more values than this is cheaper to hand to V8 than to look through first. */
const mostValues = 2000;
const deepest = 60;

/** Whether JSON gives the value back as it was; a shared or cyclic part runs out of `left` and so counts as not. */
const survivesJson = (value: unknown): boolean => {
  let left = mostValues;
  const check = (item: unknown, depth: number): boolean => {
    if (--left < 0 || depth > deepest) return false;
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return true;
    if (typeof item === 'number') return Number.isFinite(item) && !Object.is(item, -0);
    if (typeof item !== 'object') return false;
    if (Array.isArray(item)) {
      // A hole in an array is undefined here, which JSON does not keep.
      for (const inner of item) if (!check(inner, depth + 1)) return false;
      return true;
    }
    if (Object.getPrototypeOf(item) !== Object.prototype || 'toJSON' in item) return false;
    for (const key in item) {
      const inner = (item as Record<string, unknown>)[key];
      if (key === '__proto__' || (inner !== undefined && !check(inner, depth + 1))) return false;
    }
    return true;
  };
  return check(value, 0);
};

/** What V8 can copy; functions and the like are left out, for one of them must not keep its record off the disk. */
const copyable = (value: unknown, path: readonly object[] = []): unknown => {
  try {
    serialize(value);
    return value;
  } catch {
    if (typeof value !== 'object' || value === null || path.includes(value) || path.length > deepest)
      return undefined;
    const inside = [...path, value];
    if (Array.isArray(value)) return value.map((item: unknown) => copyable(item, inside) ?? null);
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, item]) => [key, copyable(item, inside)] as const)
        .filter(([, item]) => item !== undefined),
    );
  }
};

/**
 * JSON where it loses nothing, because it takes a sixth of the time; V8's own format, which also keeps dates, buffers,
 * maps and sets, for the rest.
 */
export const encode = (value: unknown): Buffer =>
  survivesJson(value)
    ? Buffer.from(`J${JSON.stringify(value)}`)
    : Buffer.concat([structuredHead, serialize(copyable(value))]);

export const decode = (bytes: Buffer): unknown => {
  if (bytes[0] === json) return JSON.parse(bytes.toString('utf8', 1));
  if (bytes[0] === structured) return deserialize(bytes.subarray(1));
  throw new Error('a record in a format this version does not know');
};

/** Values in, sealed bytes out, and back: an engine sees bytes alone. */
export class Sealing {
  private readonly sealer: Sealer;
  private readonly keysAtHand = new Set<string>();
  /** A record was found whose key is not at hand. */
  sawLocked = false;

  constructor(sealer: Sealer) {
    this.sealer = sealer;
  }

  seal(table: Table, key: Buffer, value: unknown): Buffer {
    return this.sealer.seal(encode(value), recordName(table, key));
  }

  /** Undefined when the record cannot be read; `isLocked` tells whether that may change. */
  open(table: Table, key: Buffer, sealed: Buffer): { readonly value: unknown } | undefined {
    try {
      const plain = this.sealer.open(sealed, recordName(table, key));
      if (!plain) return undefined;
      this.keysAtHand.add(keyNameOf(sealed));
      return { value: decode(plain) };
    } catch {
      return undefined;
    }
  }

  /** Sealed with a key that is not at hand, as after a start with another credential secret: it may come back. */
  isLocked(sealed: Buffer): boolean {
    if (sealed.length < keyNameLength || this.keysAtHand.has(keyNameOf(sealed))) return false;
    this.keysAtHand.add(keyNameOf(this.sealer.seal(Buffer.alloc(0), '')));
    const isLocked = !this.keysAtHand.has(keyNameOf(sealed));
    this.sawLocked ||= isLocked;
    return isLocked;
  }

  hash(text: string): Buffer {
    return Buffer.from(this.sealer.hash(text), 'base64url').subarray(0, hashLength);
  }
}

/** A record's name among those of all tables. */
export const recordName = (table: string, key: Buffer): string => `${table}/${key.toString('latin1')}`;
const keyNameOf = (sealed: Buffer): string => sealed.toString('latin1', 0, keyNameLength);

/** A part of the nonce: it changes with every seal. */
export const versionOf = (sealed: Buffer): number =>
  sealed.length >= keyNameLength + 6 ? sealed.readUIntBE(keyNameLength, 6) : 0;
