import type { Clock } from '../service/clock';

/** A symbol in a message names the nodes of ours that it has left: Node-RED copies it with the message, and no flow sees it. */
const mark = Symbol.for('advisor-texting.visits');

/** How often a message has come back to a node within a minute, and when that minute began. */
interface Returns {
  readonly count: number;
  readonly since: number;
}

/** By the id of the node. It is never changed, because messages share it. */
export type Visits = ReadonlyMap<string, Returns>;

type Marked = Record<PropertyKey, unknown>;

const noReturns: Returns = { count: 0, since: -Infinity };

export const visitsIn = (msg: object): Visits | undefined => {
  const visits = (msg as Marked)[mark];
  return visits instanceof Map ? (visits as Visits) : undefined;
};

export const setVisits = (msg: object, visits: Visits): void => {
  (msg as Marked)[mark] = visits;
};

/** The visits of a message that leaves a node. */
export const withVisit = (msg: object, node: string): Visits => {
  const visits = visitsIn(msg);
  return visits?.has(node) ? visits : new Map(visits).set(node, noReturns);
};

/** Counts a message that arrives at a node; undefined where it was never there before. */
export const countReturn = (
  msg: object,
  node: string,
  clock: Pick<Clock, 'now'>,
  period: number,
): Returns | undefined => {
  const visits = visitsIn(msg);
  const before = visits?.get(node);
  if (!before) return undefined;
  const now = clock.now();
  const isOver = now < before.since || now - before.since >= period;
  const returns = isOver ? { count: 1, since: now } : { count: before.count + 1, since: before.since };
  setVisits(msg, new Map(visits).set(node, returns));
  return returns;
};
