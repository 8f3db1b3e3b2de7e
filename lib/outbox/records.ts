import { randomBytes } from 'node:crypto';
import { processMemory } from '../process-memory';
import { endOf, key, nextKey, type Store, type Table } from '../state/store';
import type { Input } from './storable-message';
import type { Visits } from './visits';

/** The table of everything that stands still; the timetable, which moves, has one of its own. */
export const records: Table = 'work';
export const timetable: Table = 'wait';

/** The first words of the keys of a node's records. */
export const queueKinds = ['item', 'due', 'list', 'message', 'counts', 'cancel', 'home', 'parked'] as const;

/** What all items of a message share. */
export interface SharedRecord<O> {
  /** When the message was accepted, by the store's time. */
  readonly at: number;
  /** The same by the environment's clock, where that is another: a simulator's can be moved. */
  readonly clockAt?: number;
  /** The environment and the service it was accepted for. */
  readonly space: string;
  /** The type of the node that accepted it. */
  readonly type: string;
  /** The start of the node that accepted it. */
  readonly startId: string;
  readonly shared: O;
  /** Items in all, duplicates included. */
  readonly count: number;
}

/** A list is written in parts: its record first, and once more, as complete, at the end. */
export interface ListRecord<O> extends SharedRecord<O> {
  readonly isComplete: boolean;
}

/** What a list held for each item lies in one record with the message: what they share is stored once. */
export interface MessageRecord extends Input {
  /** A part of the message could not be kept: a function, a connection. */
  readonly dropped?: boolean;
  /** The nodes that the message has left before, where there are any. */
  readonly visits?: Visits;
}

/** Finished and certainly not emitted, or perhaps emitted. */
export type ItemState = 'accepted' | 'started' | 'finished' | 'emitting';

export interface ItemRecord<I, O, E> {
  readonly state: ItemState;
  readonly item: I;
  /** How often its work was tried and delayed. */
  readonly delays?: number;
  /** The time until which it is or was held; its age counts from then. */
  readonly notBefore?: number;
  readonly outcome?: E;
  /** For an item that came alone; a message of more than a kilobyte has a record of its own. */
  readonly single?: SharedRecord<O> & { readonly message?: MessageRecord };
}

/** Outcomes that were emitted, by kind. */
export type Counts = Readonly<Record<string, number>>;

/** What arrived before it is cancelled: everything, or what is for these numbers, of one list, or one item. */
export interface CancelRecord {
  readonly phones?: readonly string[];
  /** The arrival of the list. */
  readonly list?: Buffer;
  readonly index?: number;
}

/** Bytes of an arrival: they sort by time, then by count. */
export const arrivalLength = 12;
const timeLength = 6;
const indexLength = 6;

const processTag = randomBytes(3);
const last = processMemory('arrivals', { time: 0, sequence: 0 });

/** Unique, and in the order of arrival: by the store's time, then by count. */
export const newArrival = (now: number): Buffer => {
  if (now > last.time) {
    last.time = now;
    last.sequence = 0;
  }
  last.sequence += 1;
  const bytes = Buffer.allocUnsafe(arrivalLength);
  bytes.writeUIntBE(last.time, 0, 6);
  bytes.writeUIntBE(last.sequence, 6, 3);
  processTag.copy(bytes, 9);
  return bytes;
};

/** An arrival that sorts before whatever arrives after the time `at`. */
export const arrivalAt = (at: number): Buffer => {
  const bytes = randomBytes(arrivalLength);
  bytes.writeUIntBE(at, 0, 6);
  return bytes;
};

/** The keys of one node's records. Those of each item are made from prefixes that are made once. */
export const keysOf = (node: string) => {
  const [items, lists, messages] = [key('item', node), key('list', node), key('message', node)];
  const [dues, counts, cancels] = [key('due', node), key('counts', node), key('cancel', node)];
  return {
    items,
    itemsOf: (arrival: Buffer) => key(items, arrival),
    item: (arrival: Buffer, index: number) => key(items, arrival, index),
    /** Items that wait to be ended from outside: they have no turn. */
    allParked: key('parked', node),
    parkedOf: (arrival: Buffer) => key('parked', node, arrival),
    parked: (arrival: Buffer, index: number) => key('parked', node, arrival, index),
    dues,
    lane: (lane: number) => key(dues, Buffer.of(lane)),
    due: (lane: number, time: number, arrival: Buffer, index: number) =>
      key(dues, Buffer.of(lane), time, arrival, index),
    lists,
    list: (arrival: Buffer) => key(lists, arrival),
    messages,
    message: (arrival: Buffer) => key(messages, arrival),
    counts: (arrival: Buffer) => key(counts, arrival),
    cancels,
    cancel: (arrival: Buffer) => key(cancels, arrival),
    /** The type and the space that this node works in. */
    home: key('home', node),
  };
};

export type QueueKeys = ReturnType<typeof keysOf>;

/** The arrival in a key that ends with it. */
export const arrivalIn = (found: Buffer): Buffer => found.subarray(found.length - arrivalLength);

/** What the key of an item names, at the end of the key. */
export const itemAt = (found: Buffer): { arrival: Buffer; index: number } => {
  const at = found.length - arrivalLength - indexLength;
  return {
    arrival: found.subarray(at, at + arrivalLength),
    index: found.readUIntBE(at + arrivalLength, indexLength),
  };
};

/** The time in a key of the timetable. */
export const dueAt = (found: Buffer): number =>
  found.readUIntBE(found.length - arrivalLength - indexLength - timeLength, timeLength);

/** The name of a list outside its queue: its node and its arrival. */
export const listName = (node: string, arrival: Buffer): Buffer => key(node, arrival);

/** The name of an item outside its queue: its node, its arrival, its index. */
export const itemName = (node: string, arrival: Buffer, index: number): Buffer => key(node, arrival, index);

/** Reads the name of a list, or of an item. */
export const listIn = (name: Buffer): { node: string; arrival: Buffer } => {
  const end = name.indexOf(0);
  return { node: name.toString('utf8', 0, end), arrival: name.subarray(end + 1, end + 1 + arrivalLength) };
};

export const itemIn = (name: Buffer): { node: string; arrival: Buffer; index: number } => {
  const list = listIn(name);
  return { ...list, index: name.readUIntBE(name.indexOf(0) + 1 + arrivalLength, indexLength) };
};

/** Whether these bytes can be the name of a list: they may come from outside. */
export const isListName = (name: Buffer): boolean => {
  const end = name.indexOf(0);
  return end > 0 && name.length === end + 1 + arrivalLength;
};

/** Whether these bytes can be the name of an item. */
export const isItemName = (name: Buffer): boolean => isListName(name.subarray(0, -indexLength));

/** The keys of the items for a number, of all nodes and advisors: they are waited for, or held. */
export const numbersOf = (store: Store, space: string, phone: string): Buffer =>
  key('number', space, store.hash(`phone\n${phone}`));

export const numberKey = (
  store: Store,
  space: string,
  phone: string,
  node: string,
  arrival: Buffer,
  index: number,
): Buffer => key(numbersOf(store, space, phone), arrival, index, node);

/** The node and the item in the key of a number, after its prefix. */
export const numberedIn = (
  found: Buffer,
  prefix: Buffer,
): { node: string; arrival: Buffer; index: number } => {
  const rest = found.subarray(prefix.length);
  const end = arrivalLength + indexLength;
  return { ...itemAt(rest.subarray(0, end)), node: rest.toString('utf8', end, rest.length - 1) };
};

/** The keys after `last`, within the range of `prefix`. */
export const after = (prefix: Buffer, last: Buffer | undefined): { from: Buffer; to: Buffer } => ({
  from: last ? nextKey(last) : prefix,
  to: endOf(prefix),
});
