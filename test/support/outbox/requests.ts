import { hour } from '../../../lib/durations';
import type { OutboxItem } from '../../../lib/outbox/message-items';
import { Queue, type QueueHost } from '../../../lib/outbox/queue';
import { systemClock } from '../../../lib/service/clock';
import type { Store } from '../../../lib/state/store';

export type Host = QueueHost<OutboxItem, object, string>;
export type Requests = Queue<OutboxItem, object, string>;
type Options = ConstructorParameters<typeof Queue<OutboxItem, object, string>>[0];

/** What every host here does: an outcome is its own kind, or the reason for it; a fault fails the test. */
export const plainHost: Pick<Host, 'kindsOf' | 'outcomeFor' | 'held' | 'fault'> = {
  kindsOf: (outcome) => [outcome],
  outcomeFor: async (_item, reason) => reason,
  held: () => undefined,
  fault: (fault) => {
    throw fault;
  },
};

/** The outbox of a node that does and emits what the test says. */
export const requestsOn = (
  store: Store,
  host: Pick<Host, 'work' | 'emit'> & Partial<Host>,
  options: Partial<Options> = {},
): Requests =>
  new Queue({
    store,
    node: 'node',
    type: 'type',
    space: 'space',
    width: 16,
    resumeWithin: hour,
    clock: systemClock,
    host: { ...plainHost, ...host },
    ...options,
  });

/** Saves a list of so many, in one message. */
export const acceptMany = (outbox: Requests, count: number, onSaved?: () => void): void => {
  const items = Array.from({ length: count }, (_, index) => ({ index }));
  outbox.accept({ message: {}, shared: {}, items, count, onSaved }, undefined);
};

/** Saves a single one. */
export const acceptOne = (outbox: Requests, phone: string): void => {
  outbox.accept({ message: {}, shared: {}, items: [{ index: 0, phone }], count: 1 }, undefined);
};

/** Emits whose outcome it is, and the outcome. */
export const tellingWhom = (told: string[]) => ({
  emit: async (_job: unknown, { phone }: OutboxItem, { outcome }: { readonly outcome: string }) => {
    told.push(`${String(phone)} ${outcome}`);
    return true;
  },
});
