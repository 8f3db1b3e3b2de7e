import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  randomFillSync,
  type KeyObject,
} from 'node:crypto';

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

export interface DataKey {
  /** 16 hex digits. */
  readonly id: string;
  readonly bytes: Buffer;
}

export const newDataKey = (): DataKey => ({
  id: randomBytes(idLength).toString('hex'),
  bytes: randomBytes(32),
});

const secrets = new WeakMap<DataKey, KeyObject>();

/** On newer versions of Node, making a cipher from bytes takes ten times as long as from a `KeyObject`. */
const secretOf = (key: DataKey): KeyObject => {
  const secret = secrets.get(key) ?? createSecretKey(key.bytes);
  secrets.set(key, secret);
  return secret;
};

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

export const seal = (key: DataKey, plain: Buffer, name: string): Buffer => {
  const sealed = Buffer.allocUnsafe(headLength + plain.length);
  sealed[0] = version;
  sealed.write(key.id, 1, idLength, 'hex');
  const nonce = copyNonce(sealed, nonceAt);
  const cipher = createCipheriv('aes-256-gcm', secretOf(key), nonce);
  cipher.setAAD(Buffer.from(name));
  cipher.update(plain).copy(sealed, headLength);
  // In GCM, the last step adds no bytes; it computes the tag.
  cipher.final();
  cipher.getAuthTag().copy(sealed, tagAt);
  return sealed;
};

/** Undefined when the bytes are damaged, were stored under another name, or have another key. */
export const unseal = (key: DataKey, sealed: Buffer, name: string): Buffer | undefined => {
  const isOurs = sealed.length >= headLength && sealed[0] === version;
  if (!isOurs || sealed.toString('hex', 1, nonceAt) !== key.id) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', secretOf(key), sealed.subarray(nonceAt, tagAt));
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

const hashSecrets = new WeakMap<DataKey, KeyObject>();

const hashSecretOf = (key: DataKey): KeyObject => {
  const derive = (): Buffer =>
    Buffer.from(hkdfSync('sha256', key.bytes, '', 'advisor-texting hashed keys', 32));
  const secret = hashSecrets.get(key) ?? createSecretKey(derive());
  hashSecrets.set(key, secret);
  return secret;
};

/** A hash of fixed length for personal data in a key, such as a phone number. */
export const keyedHash = (key: DataKey, value: string): string =>
  createHmac('sha256', hashSecretOf(key)).update(value).digest('base64url');

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
