import type { Trouble, Warn } from '../consent/trouble';
import type { Tools } from './flow-node';
import type { Words } from './words';

const sentences: Readonly<Record<Trouble, (words: Words, reason: string) => string>> = {
  unsettled: (words, reason) => words.say('warning.unsettled', { reason }),
  notRemoved: (words, reason) => words.say('warning.notRemoved', { reason }),
  notPacked: (words, reason) => words.say('warning.notPacked', { reason }),
};

/** Says in the debug sidebar and the log what went wrong with waits on disk. */
export const warnOfWaits =
  ({ node, words }: Pick<Tools, 'node' | 'words'>): Warn =>
  (trouble, fault) => {
    node.warn(sentences[trouble](words, fault instanceof Error ? fault.message : String(fault)));
  };
