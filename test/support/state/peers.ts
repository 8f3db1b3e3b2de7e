import type { Peers } from '../../../lib/state/store';

/** The peers of a process that shares its store and has met no other. */
export const peers = (own: Partial<Peers> = {}): Peers => ({
  processName: 'this process',
  part: '1',
  isLost: false,
  isElsewhere: false,
  others: () => [],
  isAlive: () => Promise.resolve(false),
  isInDoubt: () => false,
  tellHolder: () => Promise.resolve(),
  tellOthers: () => Promise.resolve(),
  carryOut: () => Promise.resolve(),
  onNews: () => () => undefined,
  ...own,
});
