import { endOf, key, nextKey, type Operation, type Table } from '../state/store';
import type { Input } from './storable-message';
import type { Visits } from './visits';

/** How an item ended, on record before it is told. */
export interface Ended<E> {
  readonly outcome: E;
  /** It has certainly not been told: the node was closing. */
  readonly untold?: true;
}

/** What holds for a whole job. It is rewritten with each outcome that is told, so the message is a record of its own. */
export interface JobRecord<I, O> {
  /** When it was accepted, by the store's time. */
  readonly at: number;
  /** The same by the environment's clock, where that is another: a simulator's can be moved. */
  readonly clockAt?: number;
  /** The environment and the service it was accepted for. */
  readonly space: string;
  /** The type of the node that accepted it. */
  readonly type: string;
  /** The start of the node that accepted it. */
  readonly life: string;
  readonly order: O;
  /** Items in all, duplicates included. */
  readonly count: number;
  /** How many outcomes of each kind were told. */
  readonly told: Readonly<Record<string, number>>;
  /** A job of one item is one record. */
  readonly single?: Single<I>;
}

interface Single<I> extends MessageRecord {
  readonly item: I;
  readonly begun?: true;
}

/** What a list held for each item lies in one record with the message: what they share is stored once. */
export interface MessageRecord extends Input {
  /** A part of the message could not be kept: a function, a connection. */
  readonly dropped?: boolean;
  /** The nodes that the message has left before, where there are any. */
  readonly visits?: Visits;
  /** For a long list, whose job record may not be written yet. */
  readonly order?: unknown;
}

/** The steps of the items of one page. */
export interface StepsRecord<E> {
  /** Items that are not to begin before a time. */
  readonly held?: readonly (readonly [index: number, notBefore: number])[];
  /** Items that were held until a time, and are no longer: their age counts from then. */
  readonly released?: readonly (readonly [index: number, notBefore: number])[];
  /** Items whose work was tried and delayed, and how often. */
  readonly delays?: readonly (readonly [index: number, count: number])[];
  readonly begun?: readonly number[];
  readonly ended?: readonly (readonly [index: number, ended: Ended<E>])[];
  readonly told?: readonly number[];
}

/** The number of items in one record. */
export const itemsPerPage = 100;
export const pageOf = (index: number): number => Math.floor(index / itemsPerPage);

/** What arrived before a reset never begins: everything, or what is for these numbers, of one job, or one item. */
export interface ResetRecord {
  readonly phones?: readonly string[];
  /** The arrival of the job. */
  readonly job?: Buffer;
  readonly index?: number;
}

/** Bytes of an arrival: they sort by time, then by count. */
export const arrivalLength = 12;

/** The first words of the keys of a node's records. */
export const recordKinds = [
  'job',
  'message',
  'items',
  'steps',
  'ended',
  'reset',
  'home',
  'open',
  'list',
  'held',
  'event-told',
  'event-first',
] as const;

/** The keys of one node's records. Those of each text are made from prefixes that are made once. */
export const layout = (node: string) => {
  const [jobs, messages, lists] = [key('job', node), key('message', node), key('list', node)];
  const [items, steps] = [key('items', node), key('steps', node)];
  const [allHeld, allEnded, resets] = [key('held', node), key('ended', node), key('reset', node)];
  return {
    jobs,
    job: (arrival: Buffer) => key(jobs, arrival),
    messages,
    message: (arrival: Buffer) => key(messages, arrival),
    allItems: (arrival: Buffer) => key(items, arrival),
    items: (arrival: Buffer, page: number) => key(items, arrival, page),
    steps: (arrival: Buffer, page: number) => key(steps, arrival, page),
    /** Keys of jobs with more than one item, by which they are found among all. */
    lists,
    list: (arrival: Buffer) => key(lists, arrival),
    /** Keys of held items, by the time until which they are held. */
    allHeld,
    held: (notBefore: number, arrival: Buffer, index: number) => key(allHeld, notBefore, arrival, index),
    /** Waits that have ended and are yet to be told. */
    allEnded,
    ended: (arrival: Buffer, index: number) => key(allEnded, arrival, index),
    resets,
    reset: (arrival: Buffer) => key(resets, arrival),
    /** The space this node works in. */
    home: key('home', node),
    /** How many waits are open. */
    open: key('open', node),
  };
};

export type Layout = ReturnType<typeof layout>;

/** The arrival in a key of `jobs` or `resets`, which ends with it. */
export const arrivalIn = (found: Buffer): Buffer => found.subarray(found.length - arrivalLength);

/** What a key of `ended` names. */
export const endedIn = (found: Buffer): { arrival: Buffer; index: number } => {
  const at = found.length - arrivalLength - 6;
  return { arrival: found.subarray(at, at + arrivalLength), index: found.readUIntBE(at + arrivalLength, 6) };
};

/** What a key of `held` names. */
export const heldIn = (found: Buffer): { notBefore: number; arrival: Buffer; index: number } => {
  const { arrival, index } = endedIn(found);
  return { notBefore: found.readUIntBE(found.length - arrivalLength - 12, 6), arrival, index };
};

/** The name of a job outside its outbox: its node and its arrival. */
export const jobKey = (node: string, arrival: Buffer): Buffer => key(node, arrival);

/** Reads the name of a job, or of an item. */
export const jobIn = (name: Buffer): { node: string; arrival: Buffer } => {
  const end = name.indexOf(0);
  return { node: name.toString('utf8', 0, end), arrival: name.subarray(end + 1, end + 1 + arrivalLength) };
};

/** The name of an item outside its outbox: its node, its arrival, its index. */
export const itemKey = (node: string, arrival: Buffer, index: number): Buffer => key(node, arrival, index);

export const itemIn = (item: Buffer): { node: string; arrival: Buffer; index: number } => {
  const job = jobIn(item);
  return { ...job, index: item.readUIntBE(item.indexOf(0) + 1 + arrivalLength, 6) };
};

/** Whether these bytes can be the name of a job: they may come from outside. */
export const isJobKey = (name: Buffer): boolean => {
  const end = name.indexOf(0);
  return end > 0 && name.length === end + 1 + arrivalLength;
};

/** Whether these bytes can be the name of an item. */
export const isItemKey = (name: Buffer): boolean => isJobKey(name.subarray(0, -6));

export const removalsOf = (table: Table, keys: Layout, arrival: Buffer, count: number): Operation[] => {
  const removed = [keys.job(arrival), keys.steps(arrival, 0)];
  if (count > 1) {
    removed.push(keys.message(arrival), keys.list(arrival));
    for (let page = 0; page * itemsPerPage < count; page++) {
      removed.push(keys.items(arrival, page));
      if (page > 0) removed.push(keys.steps(arrival, page));
    }
  }
  return removed.map((remove) => ({ table, remove }));
};

/** The keys after `last`, within the range of `prefix`. */
export const after = (prefix: Buffer, last: Buffer | undefined): { from: Buffer; to: Buffer } => ({
  from: last ? nextKey(last) : prefix,
  to: endOf(prefix),
});
