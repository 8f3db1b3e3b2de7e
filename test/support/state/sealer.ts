import { createHash } from 'node:crypto';
import { dataKey, type Sealer } from '../../../lib/state/sealing';

/** A data key made from a word; two words have the same id only if it is given. */
export const sealerOf = (word: string, id?: string): Sealer => {
  const bytes = createHash('sha256').update(word).digest();
  return { key: dataKey(id ?? bytes.toString('hex', 0, 8), bytes) };
};
