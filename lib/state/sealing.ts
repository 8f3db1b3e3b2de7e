import { deserialize, serialize } from 'node:v8';
import type { Table } from './store';

/** Encrypts records under the data key of their store. */
export interface Sealer {
  /** The name of the key; undefined when it cannot be unwrapped, and the store must not be opened. */
  readonly keyId: string | undefined;
  /**
   * The name is authenticated with the bytes, so that no record can stand in for another. The first 9 bytes of the
   * result name the key; the next 12 are a nonce, which never repeats.
   */
  seal(plain: Buffer, name: string): Buffer;
  /** Undefined, or a throw, when the bytes are damaged. */
  open(sealed: Buffer, name: string): Buffer | undefined;
  hash(text: string): string;
}

/** The place of a wrapped key. */
export interface KeyHolder {
  /** The document as this process knows it. */
  read(): unknown;
  /** The saved document, which another process may have written; undefined when it cannot be read. */
  reread?(): Promise<unknown>;
  /** `failed`: another attempt may succeed. `unkept`: the key lives only as long as the process. */
  write(document: object): Promise<'stored' | 'failed' | 'unkept'>;
}

const keyNameLength = 9;
const hashLength = 16;

/** The first byte of a record: the letter J for JSON (RFC 8259), the letter S for the serialization of V8. */
const json = 0x4a;
const structured = 0x53;
const structuredHead = Buffer.from([structured]);

/** Above this number of values, V8's format is cheaper than checking whether JSON keeps them all. */
const mostValues = 2000;
const deepest = 60;

/** Whether JSON gives the value back unchanged. Shared or cyclic parts exhaust `left` and count as changed. */
const survivesJson = (value: unknown): boolean => {
  let left = mostValues;
  const check = (item: unknown, depth: number): boolean => {
    if (--left < 0 || depth > deepest) return false;
    if (item === null || typeof item === 'string' || typeof item === 'boolean') return true;
    if (typeof item === 'number') return Number.isFinite(item) && !Object.is(item, -0);
    if (typeof item !== 'object') return false;
    if (Array.isArray(item)) {
      // A hole in an array is undefined here, and JSON makes it null.
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

/**
 * The parts that V8 can serialize. Functions and the like are left out, because one of them must not prevent its
 * record from being saved.
 */
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
 * JSON where it loses nothing, because it takes a sixth of the time; else V8's format, which also keeps dates, buffers,
 * maps and sets.
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

/** Encrypts values to bytes and decrypts them: a store's engine sees bytes alone. */
export class Sealing {
  constructor(private readonly sealer: Sealer) {}

  get keyId(): string | undefined {
    return this.sealer.keyId;
  }

  seal(table: Table, key: Buffer, value: unknown): Buffer {
    return this.sealer.seal(encode(value), recordName(table, key));
  }

  /** Undefined when the record is damaged. */
  open(table: Table, key: Buffer, sealed: Buffer): { readonly value: unknown } | undefined {
    try {
      const plain = this.sealer.open(sealed, recordName(table, key));
      return plain && { value: decode(plain) };
    } catch {
      return undefined;
    }
  }

  hash(text: string): Buffer {
    return Buffer.from(this.sealer.hash(text), 'base64url').subarray(0, hashLength);
  }
}

/** The name of a record, unique over all tables. */
export const recordName = (table: string, key: Buffer): string => `${table}/${key.toString('latin1')}`;

/** A part of the nonce, which changes with every seal. */
export const versionOf = (sealed: Buffer): number =>
  sealed.length >= keyNameLength + 6 ? sealed.readUIntBE(keyNameLength, 6) : 0;
