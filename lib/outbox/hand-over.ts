import { types } from 'node:util';
import { processMemory } from '../process-memory';
import type { Changed, Store } from '../state/store';
import type { Clock } from '../service/clock';

// Node-RED copies symbols with a message, and no flow sees them.

/** Names the outcome of a message. */
const outcomeMark = Symbol.for('advisor-texting.outcome');
/** Names the nodes of ours that a message has left, so that one that runs in a circle is noticed. */
const visitsMark = Symbol.for('advisor-texting.visits');

type Marked = Record<PropertyKey, unknown>;

export const noReturns = { count: 0, since: -Infinity };
/** How often a message came back to a node within a minute, and when that minute began. */
type Returns = Readonly<typeof noReturns>;

/** A node that a message leaves, and its environment and service. */
interface Origin {
  readonly id: string;
  readonly space?: string | undefined;
}

/** By node id. Never changed, because messages share it. */
export type Visits = ReadonlyMap<string, Returns & Pick<Origin, 'space'>>;

export const oneMore = (before: Returns, now: number, period: number): Returns => {
  const { count, since } = before;
  // A flow that forges the mark may put anything there.
  const isCounted = Number.isFinite(count) && Number.isFinite(since);
  const isOver = !isCounted || now < since || now - since >= period;
  return isOver ? { count: 1, since: now } : { count: count + 1, since };
};

export const visitsIn = (msg: object): Visits | undefined => {
  const visits = (msg as Marked)[visitsMark];
  return types.isMap(visits) ? (visits as Visits) : undefined;
};

export const setVisits = (msg: object, visits: Visits): void => {
  (msg as Marked)[visitsMark] = visits;
};

/** Counts a message that comes back to a node; undefined if it was never there before. */
export const countReturn = (
  msg: object,
  node: string,
  clock: Pick<Clock, 'now'>,
  period: number,
): Returns | undefined => {
  const visits = visitsIn(msg);
  const before = visits?.get(node);
  if (!before) return undefined;
  const returns = oneMore(before, clock.now(), period);
  setVisits(msg, new Map(visits).set(node, { ...returns, space: before.space }));
  return returns;
};

/** Whether a message comes back to a node that belonged to another service when the message first left it. */
export const leftOtherService = (msg: object, { id, space }: Origin): boolean => {
  const before = visitsIn(msg)?.get(id)?.space;
  return before !== undefined && space !== undefined && before !== space;
};

/** Saves something in one commit with an acceptance. */
type Save = (emitted: Changed) => Promise<void>;

/** Who offers an outcome. */
interface Giver {
  readonly store: Store;
  /** Saves that the outcome was emitted. */
  readonly emitted: (save?: Save) => void;
  /** Saves that this node has the outcome, while others are still to save it. */
  readonly taken: (node: string, save?: Save) => void;
  /** Leaves it to the next start, which emits it again. */
  readonly keep: () => void;
  /** A close waits for this promise. */
  readonly hold: (until: Promise<unknown>) => void;
}

/** Held by a node that has received an outcome, until it has called one of the functions. */
export interface Claim extends Pick<Giver, 'store' | 'hold'> {
  /**
   * The message is saved, or has left; with `save`, that saves it now. For the last receiver, the outcome counts as
   * emitted.
   */
  conclude(save?: Save): void;
  /** The message is not saved. */
  keep(): void;
}

interface Offer {
  readonly giver: Giver;
  /** It has left in a message, which may reach another node of ours. */
  isMarked: boolean;
  /** The number of our nodes that have received it and not saved it yet. */
  claims: number;
  /** The number of nodes that have not received it yet: of others than ours, it is not known. */
  awaited: number;
  /** The nodes that had saved it before a crash: for them, it is not emitted again. */
  readonly taken: string[];
  isKept: boolean;
}

const offers = processMemory('handOvers', new Map<number, Offer>());
const concluding = processMemory('handOvers', {
  lastOffer: 0,
  /** The outcomes that have arrived, by the tick in which they did, the last first. */
  arrived: [[]] as number[][],
  timer: undefined as NodeJS.Timeout | undefined,
});

/**
 * An outcome counts as emitted after so many ticks, 100 milliseconds at least, unless it has reached another node of ours.
 * A process that stands still loses one of them, not all: its messages are on their way meanwhile.
 */
const graceTicks = { count: 5, ms: 25 };

const conclude = (id: number, save?: Save): void => {
  const offer = offers.get(id);
  offers.delete(id);
  if (offer?.isKept) offer.giver.keep();
  else offer?.giver.emitted(save);
};

const concludeThese = (ids: readonly number[]): void => {
  for (const id of ids) {
    const offer = offers.get(id);
    if (!offer) continue;
    offer.awaited = 0;
    if (offer.claims === 0) conclude(id);
  }
};

const tick = (): void => {
  const { arrived } = concluding;
  arrived.unshift([]);
  const over = arrived.splice(graceTicks.count).flat();
  const isAny = arrived.some((ids) => ids.length > 0);
  concluding.timer = isAny ? setTimeout(tick, graceTicks.ms).unref() : undefined;
  concludeThese(over);
};

const concludeAll = (): void => {
  clearTimeout(concluding.timer);
  concluding.timer = undefined;
  const ids = concluding.arrived.flat();
  concluding.arrived = [[]];
  concludeThese(ids);
};

/**
 * When one node of ours accepts a message from another, it saves that in one commit with the other's *emitted*: a
 * crash leaves both or neither, so that a text behind a wait is not sent twice. Where their stores have no common commit,
 * *emitted* is saved after that. At any other node, an outcome counts as emitted a moment after it has arrived. Of several
 * receivers, each of ours that has saved it is noted, until the last has.
 */
export const handOver = {
  /** Called before an outcome leaves. */
  offer(giver: Giver, taken: readonly string[]): number {
    concluding.lastOffer += 1;
    const offer = { giver, isMarked: false, claims: 0, awaited: 0, taken: [...taken], isKept: false };
    offers.set(concluding.lastOffer, offer);
    return concluding.lastOffer;
  },
  /**
   * Called with each message that leaves a node for so many receivers: `received` is the one that it was made from, `id`
   * that of its outcome.
   */
  mark(msg: object, received: object, { id: node, space }: Origin, id?: number, receivers = 0): void {
    const visits = visitsIn(received);
    setVisits(msg, visits?.has(node) ? visits : new Map(visits).set(node, { ...noReturns, space }));
    const offer = id === undefined ? undefined : offers.get(id);
    if (!offer) return;
    offer.isMarked = true;
    offer.awaited += receivers;
    (msg as Marked)[outcomeMark] = id;
  },
  arrived(id: number): void {
    if (!offers.get(id)?.isMarked) {
      conclude(id);
      return;
    }
    concluding.arrived[0]?.push(id);
    concluding.timer ??= setTimeout(tick, graceTicks.ms).unref();
  },
  /** The messages did not arrive. */
  withdraw(id: number): void {
    offers.delete(id);
  },
  /** Called by the node of ours that receives a message; `taken` if the node had saved the outcome before a crash. */
  claim(msg: object, node: string): Claim | 'taken' | undefined {
    const id = (msg as Marked)[outcomeMark];
    if (id === undefined) return undefined;
    Reflect.deleteProperty(msg, outcomeMark);
    const offer = typeof id === 'number' ? offers.get(id) : undefined;
    if (!offer || typeof id !== 'number') return undefined;
    if (offer.awaited > 0) offer.awaited -= 1;
    const known = offer.taken.indexOf(node);
    if (known >= 0) {
      offer.taken.splice(known, 1);
      if (offer.claims + offer.awaited === 0) conclude(id);
      return 'taken';
    }
    offer.claims += 1;
    let isOpen = true;
    const end = (isKept: boolean, save?: Save): void => {
      if (!isOpen) return;
      isOpen = false;
      offer.claims -= 1;
      offer.isKept ||= isKept;
      const isLast = offer.claims + offer.awaited === 0;
      // What another could not save goes out again, but not to this node.
      if (!isKept && (offer.isKept || !isLast)) offer.giver.taken(node, save);
      if (isLast) conclude(id, save);
    };
    const { store, hold } = offer.giver;
    return { store, hold, conclude: (save) => end(false, save), keep: () => end(true) };
  },
  /** Called when a node closes: everything that has arrived counts as emitted now. */
  concludeAll,
};
