import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import type { Sealer } from '../../lib/state/embedded';

/** AES-256-GCM under a key made from a word, as the vault does it with a key of its own. */
export const sealerOf = (word: string): Sealer => {
  const key = createHash('sha256').update(word).digest();
  return {
    seal(plain, name) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]);
    },
    open(sealed, name) {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12)).setAAD(Buffer.from(name));
      decipher.setAuthTag(sealed.subarray(12, 28));
      return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]);
    },
    hash: (text) => createHmac('sha256', key).update(text).digest('base64url'),
  };
};
