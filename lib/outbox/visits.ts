import type { Clock } from '../service/clock';

/**
 * Names the nodes of ours that a message has left, so that one that runs in a circle is noticed. Node-RED copies a symbol
 * with the message, and no flow sees it.
 */
const visitsMark = Symbol.for('advisor-texting.visits');

type Marked = Record<PropertyKey, unknown>;

/** How often a message came back to a node within a minute, and when that minute began. */
interface Returns {
  readonly count: number;
  readonly since: number;
}

/** By node id. Never changed, because messages share it. */
export type Visits = ReadonlyMap<string, Returns>;

export const noReturns: Returns = { count: 0, since: -Infinity };

export const oneMore = (before: Returns, now: number, period: number): Returns => {
  const isOver = now < before.since || now - before.since >= period;
  return isOver ? { count: 1, since: now } : { count: before.count + 1, since: before.since };
};

export const visitsIn = (msg: object): Visits | undefined => {
  const visits = (msg as Marked)[visitsMark];
  return visits instanceof Map ? (visits as Visits) : undefined;
};

export const setVisits = (msg: object, visits: Visits): void => {
  (msg as Marked)[visitsMark] = visits;
};

/** A message leaves a node; it was made from `received`. */
export const noteVisit = (msg: object, received: object, node: string): void => {
  const visits = visitsIn(received);
  setVisits(msg, visits?.has(node) ? visits : new Map(visits).set(node, noReturns));
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
  setVisits(msg, new Map(visits).set(node, returns));
  return returns;
};
