import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  randomFillSync,
} from 'node:crypto';
import { deserialize, serialize } from 'node:v8';

/** Gives the data key of a store; undefined when it cannot be unwrapped, and the store must not be opened. */
export interface Sealer {
  readonly key: DataKey | undefined;
  /** The key is new and could not be saved yet: what is encrypted with it would be lost with the process. */
  readonly isUnsaved?: boolean;
}

/** The place of a wrapped key. */
export interface KeyHolder {
  /** The saved document, which another process may have written. */
  read(): unknown;
  /**
   * False when it could not be written: another attempt may succeed. With `isFirst`, a document that another process has
   * written meanwhile stays, and is read instead. With `isUnprotected`, whoever reads the document has the key.
   */
  write(document: object, isFirst: boolean, isUnprotected: boolean): Promise<boolean>;
}

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

/**
 * Encrypted bytes: version (1), key id (8), nonce (12), tag (16), ciphertext. The name of a record is its associated
 * data, so that one record cannot replace another.
 */
const version = 1;
const idLength = 8;
const nonceLength = 12;
const tagLength = 16;
const nonceAt = 1 + idLength;
const tagAt = nonceAt + nonceLength;
const headLength = tagAt + tagLength;

/** The first bytes of an HMAC that are used. */
const hashLength = 16;

export type DataKey = ReturnType<typeof dataKey>;

const derive = (secret: string | Buffer, salt: Buffer | string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, purpose, 32));

/** `id` has 16 hex digits. */
export const dataKey = (id: string, bytes: Buffer) => ({
  id,
  bytes,
  // On newer versions of Node, making a cipher from bytes takes ten times as long as from a `KeyObject`.
  secret: createSecretKey(bytes),
  hashSecret: createSecretKey(derive(bytes, '', 'advisor-texting hashed keys')),
});

export const newDataKey = (): DataKey => dataKey(randomBytes(idLength).toString('hex'), randomBytes(32));

const nonces = Buffer.alloc(256 * nonceLength);
let nextNonce = nonces.length;

/** Copies a random nonce; many are generated at once. */
const copyNonce = (into: Buffer, at: number): Buffer => {
  if (nextNonce === nonces.length) {
    randomFillSync(nonces);
    nextNonce = 0;
  }
  nonces.copy(into, at, nextNonce, nextNonce + nonceLength);
  nextNonce += nonceLength;
  return into.subarray(at, at + nonceLength);
};

const seal = (key: DataKey, plain: Buffer, name: string): Buffer => {
  const sealed = Buffer.allocUnsafe(headLength + plain.length);
  sealed[0] = version;
  sealed.write(key.id, 1, idLength, 'hex');
  const nonce = copyNonce(sealed, nonceAt);
  const cipher = createCipheriv('aes-256-gcm', key.secret, nonce);
  cipher.setAAD(Buffer.from(name));
  cipher.update(plain).copy(sealed, headLength);
  // In GCM, the last step adds no bytes; it computes the tag.
  cipher.final();
  cipher.getAuthTag().copy(sealed, tagAt);
  return sealed;
};

/** Undefined when the bytes are damaged, were stored under another name, or have another key. */
const unseal = (key: DataKey, sealed: Buffer, name: string): Buffer | undefined => {
  const isOurs = sealed.length >= headLength && sealed[0] === version;
  if (!isOurs || sealed.toString('hex', 1, nonceAt) !== key.id) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(nonceAt, tagAt));
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(sealed.subarray(tagAt, headLength));
  try {
    const plain = decipher.update(sealed.subarray(headLength));
    // In GCM, the last step adds no bytes; it checks the tag.
    decipher.final();
    return plain;
  } catch {
    return undefined;
  }
};

/** Encrypts values to bytes and decrypts them: a store's engine sees bytes alone. */
export interface Sealing {
  seal(table: string, key: Buffer, value: unknown): Buffer;
  /** Undefined when the record is damaged. */
  open(table: string, key: Buffer, sealed: Buffer): { readonly value: unknown } | undefined;
  /** A hash of 16 bytes, for personal data in a key. */
  hash(text: string): Buffer;
}

export const sealingWith = (sealer: Sealer): Sealing => {
  const unlocked = (): DataKey => {
    if (!sealer.key) throw new Error('the data key cannot be unwrapped');
    return sealer.key;
  };
  return {
    seal: (table, key, value) => seal(unlocked(), encode(value), recordName(table, key)),
    open(table, key, sealed) {
      try {
        const plain = unseal(unlocked(), sealed, recordName(table, key));
        return plain && { value: decode(plain) };
      } catch {
        return undefined;
      }
    },
    hash: (text) => createHmac('sha256', unlocked().hashSecret).update(text).digest().subarray(0, hashLength),
  };
};

export type Wrapped = ReturnType<typeof wrap>;

const wrappingKey = (secret: string, salt: string, id: string): DataKey =>
  dataKey(id, derive(secret, Buffer.from(salt, 'base64'), 'advisor-texting data key'));

export const wrap = (key: DataKey, secret: string) => {
  const salt = randomBytes(16).toString('base64');
  return { salt, sealed: seal(wrappingKey(secret, salt, key.id), key.bytes, key.id).toString('base64') };
};

export const unwrap = (id: string, wrapped: Wrapped, secret: string): DataKey | undefined => {
  const bytes = unseal(wrappingKey(secret, wrapped.salt, id), Buffer.from(wrapped.sealed, 'base64'), id);
  return bytes && dataKey(id, bytes);
};

/** The name of a record, unique over all tables. */
export const recordName = (table: string, key: Buffer): string => `${table}/${key.toString('latin1')}`;

/** A part of the nonce, which changes with every seal. */
export const versionOf = (sealed: Buffer): number =>
  sealed.length >= nonceAt + 6 ? sealed.readUIntBE(nonceAt, 6) : 0;
