import { createHash } from 'node:crypto';
import { keyedHash, seal, unseal, type DataKey } from '../../../lib/auth/cipher';
import type { Sealer } from '../../../lib/state/sealing';

/** Encrypts as the vault does, under a key made from a word; the keys of other words are unavailable. */
export const sealerOf = (word: string): Sealer => {
  const bytes = createHash('sha256').update(word).digest();
  const key: DataKey = { id: bytes.toString('hex', 0, 8), bytes };
  return {
    keyId: key.id,
    seal: (plain, name) => seal(key, plain, name),
    open: (sealed, name) => unseal(key, sealed, name),
    hash: (text) => keyedHash(key, text),
  };
};
