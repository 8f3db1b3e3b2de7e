import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

/**
 * Sealed bytes: version (1), key id (8), nonce (12), tag (16), ciphertext. The name of a record is its associated data, so
 * that one record cannot be put in the place of another.
 */
const version = 1;
const idLength = 8;
const nonceLength = 12;
const tagLength = 16;
const headLength = 1 + idLength + nonceLength + tagLength;

export interface DataKey {
  /** 16 hex digits. */
  readonly id: string;
  readonly bytes: Buffer;
}

export const newDataKey = (): DataKey => ({
  id: randomBytes(idLength).toString('hex'),
  bytes: randomBytes(32),
});

export const seal = (key: DataKey, plain: Buffer, name: string): Buffer => {
  const nonce = randomBytes(nonceLength);
  const cipher = createCipheriv('aes-256-gcm', key.bytes, nonce);
  cipher.setAAD(Buffer.from(name));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([
    Buffer.from([version]),
    Buffer.from(key.id, 'hex'),
    nonce,
    cipher.getAuthTag(),
    body,
  ]);
};

/** The id of the key that sealed these bytes; undefined when they were not sealed here. */
export const keyIdOf = (sealed: Buffer): string | undefined =>
  sealed.length >= headLength && sealed[0] === version
    ? sealed.subarray(1, 1 + idLength).toString('hex')
    : undefined;

/** Undefined when the bytes are damaged, moved to another name, or of another key. */
export const unseal = (key: DataKey, sealed: Buffer, name: string): Buffer | undefined => {
  if (keyIdOf(sealed) !== key.id) return undefined;
  const nonceAt = 1 + idLength;
  const tagAt = nonceAt + nonceLength;
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, sealed.subarray(nonceAt, tagAt));
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(sealed.subarray(tagAt, headLength));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(headLength)), decipher.final()]);
  } catch {
    return undefined;
  }
};

/** A fixed-length stand-in for a key that is itself personal, such as a phone number. */
export const keyedHash = (key: DataKey, value: string): string =>
  createHmac('sha256', Buffer.from(hkdfSync('sha256', key.bytes, '', 'advisor-texting hashed keys', 32)))
    .update(value)
    .digest('base64url');

export interface Wrapped {
  readonly salt: string;
  readonly sealed: string;
}

const wrappingKey = (secret: string, salt: string, id: string): DataKey => ({
  id,
  bytes: Buffer.from(hkdfSync('sha256', secret, Buffer.from(salt, 'base64'), 'advisor-texting data key', 32)),
});

export const wrap = (key: DataKey, secret: string): Wrapped => {
  const salt = randomBytes(16).toString('base64');
  return { salt, sealed: seal(wrappingKey(secret, salt, key.id), key.bytes, key.id).toString('base64') };
};

export const unwrap = (id: string, wrapped: Wrapped, secret: string): DataKey | undefined => {
  const bytes = unseal(wrappingKey(secret, wrapped.salt, id), Buffer.from(wrapped.sealed, 'base64'), id);
  return bytes && { id, bytes };
};
