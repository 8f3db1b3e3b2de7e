import { hour } from '../../../lib/durations';
import { handOver, type Claim } from '../../../lib/outbox/hand-over';
import type { Item, QueuedMessage } from '../../../lib/outbox/item';
import { Queue, type QueueOptions, type Reason } from '../../../lib/outbox/queue';
import type { Counts, ItemData, Shared } from '../../../lib/outbox/records';
import { systemClock } from '../../../lib/service/clock';
import type { Store } from '../../../lib/state/store';

export interface Told<E> {
  readonly outcome: E;
  readonly repeated: boolean;
  readonly offer: number | undefined;
  /** Those of the same message that have left, this one included. */
  readonly counts: Counts;
  readonly isLast: boolean;
}

/** What a node does, with outcomes as a test likes them. */
export interface NodeHost<D extends ItemData, S extends Shared, E> {
  work(item: Item<D, S>): Promise<E | undefined>;
  outcomeFor(item: Item<D, S>, reason: Reason): Promise<E>;
  emit(message: QueuedMessage<S>, data: D, told: Told<E>): Promise<boolean>;
  kindsOf(outcome: E): readonly string[];
  fault(fault: unknown): void;
}

/** The same as a queue takes it. */
export const hosted = <D extends ItemData, S extends Shared, E>(
  host: NodeHost<D, S, E>,
): Pick<QueueOptions<D, S>, 'service' | 'work' | 'emit' | 'changed' | 'fault'> => ({
  service: {
    client: () => {
      throw new Error('nothing is asked of the service');
    },
  },
  work: async (item, reason) => {
    const payload = await (reason ? host.outcomeFor(item, reason) : host.work(item));
    return payload === undefined ? undefined : { port: 0, payload };
  },
  emit: (item, { payload }, offer) => {
    const outcome = payload as E;
    const counts = item.count(host.kindsOf(outcome));
    const isLast = item.message.remaining === 0;
    return host.emit(item.message, item.data, { outcome, repeated: item.isRepeated, offer, counts, isLast });
  },
  changed: () => undefined,
  fault: (fault) => host.fault(fault),
});

export type Host = NodeHost<ItemData, Shared, string>;
export type Requests = Queue;

/** What every host here does: an outcome is its own kind, or the reason for it; a fault fails the test. */
export const plainHost: Pick<Host, 'kindsOf' | 'outcomeFor' | 'fault'> = {
  kindsOf: (outcome) => [outcome],
  outcomeFor: async (_item, reason) => reason,
  fault: (fault) => {
    throw fault;
  },
};

export const nobodys: Shared = { advisor: '' };

/** The outbox of a node that does and emits what the test says. */
export const requestsOn = (
  store: Store,
  host: Pick<Host, 'work' | 'emit'> & Partial<Host>,
  options: Partial<QueueOptions<ItemData, Shared>> = {},
): Requests =>
  new Queue({
    store,
    node: 'node',
    type: 'type',
    space: 'space',
    width: 16,
    resumeWithin: hour,
    clock: systemClock,
    ...hosted({ ...plainHost, ...host }),
    ...options,
  });

/** Saves a list of so many, in one message. */
export const acceptMany = (outbox: Requests, count: number, claim?: Claim): void => {
  const items = Array.from({ length: count }, (_, index) => ({ index }));
  outbox.accept({}, { shared: nobodys, items, count }, undefined, claim);
};

/** Saves a single one. */
export const acceptOne = (outbox: Requests, phone: string, shared = nobodys): void => {
  outbox.accept({}, { shared, items: [{ index: 0, phone }], count: 1 });
};

/** Emits whose outcome it is, and the outcome. */
export const tellingWhom = (told: string[]) => ({
  emit: async (_job: unknown, { phone }: ItemData, { outcome }: { readonly outcome: string }) => {
    told.push(`${String(phone)} ${outcome}`);
    return true;
  },
});

/** What a node of ours gets with a message that it has not saved before. */
export const claimOf = (msg: object, node = 'next'): Claim | undefined => {
  const claim = handOver.claim(msg, node);
  if (claim === 'taken') throw new Error('it was saved before');
  return claim;
};
