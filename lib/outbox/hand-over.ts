import { processMemory } from '../process-memory';

/** A symbol in a message names its outcome: Node-RED copies it with the message, and no flow sees it. */
const mark = Symbol.for('advisor-texting.outcome');

type Marked = Record<PropertyKey, unknown>;

interface Offer {
  /** Saves that the outcome was emitted. */
  readonly emitted: () => void;
  /** Nodes of ours that have received it and not saved it yet. */
  claims: number;
}

const offers = processMemory('handOvers', new Map<string, Offer>());
/** Outcomes that have arrived and will count as emitted, unless another node of ours claims them first. */
const concluding = processMemory('handOvers', {
  lastOffer: 0,
  arrived: [] as string[],
  timer: undefined as NodeJS.Timeout | undefined,
});

/** Milliseconds within which an outcome may reach another node of ours before it counts as emitted. */
const grace = 100;

const conclude = (id: string): void => {
  const offer = offers.get(id);
  if (!offer) return;
  offers.delete(id);
  offer.emitted();
};

const concludeAll = (): void => {
  clearTimeout(concluding.timer);
  concluding.timer = undefined;
  const due = concluding.arrived;
  concluding.arrived = [];
  for (const id of due) if (offers.get(id)?.claims === 0) conclude(id);
};

/**
 * * When one node of ours accepts a message from another, it saves that in one commit with the other's *emitted*: a
 * crash leaves both or neither, so that a text behind a wait is not sent twice. At any other node, an outcome counts as
 * emitted a moment after it has arrived.
 */
export const handOver = {
  /** Called before a message leaves; the messages of one outcome share an offer. */
  offer(msg: object, emitted: () => void, shared?: string): string {
    if (shared === undefined) concluding.lastOffer += 1;
    const id = shared ?? String(concluding.lastOffer);
    if (shared === undefined) offers.set(id, { emitted, claims: 0 });
    (msg as Marked)[mark] = id;
    return id;
  },
  /** The message has reached the nodes that it was for. */
  arrived(id: string): void {
    concluding.arrived.push(id);
    concluding.timer ??= setTimeout(concludeAll, grace).unref();
  },
  /** The message did not arrive: nobody can claim it any more. */
  withdraw(id: string): void {
    offers.delete(id);
  },
  /** Called by the node of ours that receives a message; it calls the result once, when the message is saved. */
  claim(msg: object): (() => void) | undefined {
    const id = (msg as Marked)[mark];
    if (id === undefined) return undefined;
    Reflect.deleteProperty(msg, mark);
    const offer = typeof id === 'string' ? offers.get(id) : undefined;
    if (!offer || typeof id !== 'string') return undefined;
    offer.claims += 1;
    return () => {
      offer.claims -= 1;
      if (offer.claims === 0) conclude(id);
    };
  },
  /** Called as a node closes: everything that has arrived counts as emitted now. */
  concludeAll,
};
