import { randomBytes } from 'node:crypto';
import { orMake, processMemory } from '../process-memory';
import { key, keysUnder, type Store, type Table } from '../state/store';
import type { Problem } from '../service/errors';
import type { Visits } from './hand-over';
import type { Outcome } from './outcome';
import type { Input } from './storable-message';

/** Records stand still; the timetable moves, and has its own table. */
export const records: Table = 'work';
export const timetable: Table = 'wait';

export const queueKinds = ['item', 'due', 'list', 'message', 'counts', 'cancel', 'home', 'wait'] as const;

/** One recipient of a message, or one contact, group or id. */
export interface ItemData {
  readonly index: number;
  readonly phone?: string;
  /** For an item without a number. */
  readonly memberId?: number | string;
  /** The person's name in the message, for the sidebar. */
  readonly name?: string;
  /** In place of the message's advisor. */
  readonly advisor?: string;
  /** The same number and text again in the list: carried out once, and emitted with this one. */
  readonly duplicates?: readonly { readonly index: number }[];
  /** Why nothing can be done for the item. */
  readonly wrong?: Problem;
}

export interface Shared {
  readonly advisor: string;
  /** Nothing is sent: each item leaves as if it were. */
  readonly dryRun?: true;
  /** Set for waits, which have a turn again and again, at any age, and never start. In milliseconds. */
  readonly pace?: { readonly pollEvery: number; readonly thenEvery: number };
  /** Set when an array came in: the id of its sequence, and the list's place in the message. */
  readonly list?: { readonly id: string; readonly at?: readonly (string | number)[] };
}

/** What all items of a message share. */
export interface SharedRecord<S extends Shared = Shared> {
  /** When the message was accepted, by the store's time. */
  readonly at: number;
  /** The same by the environment's clock, if it differs: a simulator's can be moved. */
  readonly clockAt?: number;
  /** The environment and its service. */
  readonly space: string;
  readonly type: string;
  readonly startId: string;
  readonly shared: S;
  /** Items in all, duplicates included. */
  readonly count: number;
}

/** A list is written in parts: its record first, and again at the end, as complete. */
export interface ListRecord<S extends Shared = Shared> extends SharedRecord<S> {
  readonly isComplete: boolean;
}

/** The entries of a list are in one record with the message: what they share is stored once. */
export interface MessageRecord extends Input {
  /** A part of the message could not be kept: a function, a connection. */
  readonly dropped?: boolean;
  readonly visits?: Visits;
}

/** The last known consent status of a number; null if unknown. */
export interface Seen {
  readonly memberId: number | string | null;
  readonly state: string | null;
  /** As the service writes it. */
  readonly lastChanged: unknown;
}

/** Finished and certainly not emitted, or perhaps emitted. */
export type ItemState = 'accepted' | 'started' | 'finished' | 'emitting';

export interface ItemRecord<D extends ItemData = ItemData, S extends Shared = Shared> {
  readonly state: ItemState;
  readonly item: D;
  readonly delays?: number;
  /** The time until which it is or was held; its age counts from then. */
  readonly notBefore?: number;
  readonly seen?: Seen;
  readonly outcome?: Outcome;
  /** The nodes that have saved the outcome, while others are still to save it. */
  readonly taken?: readonly string[];
  /** For an item that came alone; a message of more than a kilobyte has its own record. */
  readonly single?: SharedRecord<S> & { readonly message?: MessageRecord };
}

/** Emitted outcomes by kind. */
export type Counts = Readonly<Record<string, number>>;

/** Cancels what arrived before: everything, or what is for these numbers, of one list, or one item. */
export interface CancelRecord {
  readonly phones?: readonly string[];
  /** The arrival of the list. */
  readonly list?: Buffer;
  readonly index?: number;
}

/** Single messages, then one lane for each power of ten of a list's length; the last is for held items. */
const listLanes = 7;
export const heldLane = listLanes + 1;
/** Waits have as many lanes: their first looks take turns as texts do, all others come by time. */
const firstWaitLane = heldLane + 1;
export const laterLane = firstWaitLane + heldLane;
export const laneFor = (count: number, isWait: boolean): number =>
  (count === 1 ? 0 : Math.min(Math.ceil(Math.log10(count)), listLanes)) + (isWait ? firstWaitLane : 0);

/** Bytes of an arrival: they sort by time, then by count. */
export const arrivalLength = 12;
const timeLength = 6;
export const indexLength = 6;

/** By database: each has a clock of its own. */
const lastArrivals = processMemory(
  'arrivals',
  new WeakMap<object, { time: number; sequence: number; tag: Buffer }>(),
);

/** Unique, and in the order of arrival: by the store's time, then by count. */
export const newArrival = (store: Store): Buffer => {
  const now = store.now();
  const first = () => ({ time: 0, sequence: 0, tag: randomBytes(3) });
  const last = orMake(lastArrivals, store.engine.commits, first);
  if (now > last.time) {
    last.time = now;
    last.sequence = 0;
  }
  last.sequence += 1;
  const bytes = Buffer.allocUnsafe(arrivalLength);
  bytes.writeUIntBE(last.time, 0, 6);
  bytes.writeUIntBE(last.sequence, 6, 3);
  last.tag.copy(bytes, 9);
  return bytes;
};

/** An arrival that sorts before everything that arrives after the time `at`. */
export const arrivalAt = (at: number): Buffer => {
  const bytes = randomBytes(arrivalLength);
  bytes.writeUIntBE(at, 0, 6);
  return bytes;
};

/** The keys of one node's records. */
export const keysOf = (node: string) => {
  const [items, lists, messages] = [key('item', node), key('list', node), key('message', node)];
  const waits = key('wait', node);
  const [dues, counts, cancels] = [key('due', node), key('counts', node), key('cancel', node)];
  return {
    items,
    itemsOf: (arrival: Buffer) => key(items, arrival),
    /** Waits have a kind of their own, so that they can be counted. */
    waits,
    waitsOf: (arrival: Buffer) => key(waits, arrival),
    item: (arrival: Buffer, index: number, isWait: boolean) => key(isWait ? waits : items, arrival, index),
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

export interface Place {
  readonly arrival: Buffer;
  readonly index: number;
  readonly isWait: boolean;
}

/** What a key of the timetable says. */
export const dueIn = (found: Buffer): Place & { readonly lane: number; readonly time: number } => {
  const at = found.length - arrivalLength - indexLength - timeLength;
  const lane = found.readUInt8(at - 1);
  return { lane, isWait: lane >= firstWaitLane, time: found.readUIntBE(at, timeLength), ...itemAt(found) };
};

/** The number or the member that an item is for. */
export type Subject = { readonly phone: string } | { readonly memberId: number | string };

/** Waits by their number or member, waits by the member seen for their number, and held items. */
type IndexKind = 'number' | 'member' | 'held';

const subjectLength = 16;
/** Bytes of a hash: enough to tell the advisors of one number apart. */
const advisorLength = 8;

/** The first bytes of an index, in the order of arrival for each subject and advisor. */
export const indexOf = (
  store: Store,
  kind: IndexKind,
  space: string,
  subject?: Subject,
  advisor?: string,
): Buffer => {
  const parts: Buffer[] = [];
  if (subject)
    parts.push(
      store.hash('phone' in subject ? `phone\n${subject.phone}` : `member\n${String(subject.memberId)}`),
    );
  if (advisor !== undefined) parts.push(store.hash(`advisor\n${advisor}`).subarray(0, advisorLength));
  return key(kind, space, ...parts);
};

export type Indexed = ReturnType<typeof indexedIn>;

/** An item of any node, from the key of an index; `group` is the same for all items of a subject and an advisor. */
export const indexedIn = (found: Buffer) => {
  const space = found.indexOf(0) + 1;
  const group = found.indexOf(0, space) + 1 + subjectLength + advisorLength;
  const end = group + arrivalLength + indexLength;
  return {
    group: found.subarray(0, group),
    node: found.toString('utf8', end, found.length - 1),
    ...itemAt(found.subarray(0, end)),
  };
};

/** The keys of a wait or a held item in the indexes. */
export const indexKeysOf = (
  store: Store,
  node: string,
  { space, shared }: Pick<SharedRecord, 'space' | 'shared'>,
  arrival: Buffer,
  { phone, memberId, index, advisor = shared.advisor }: ItemData,
  isWait: boolean,
  seen: Seen | undefined,
): Buffer[] => {
  const at = (kind: IndexKind, subject: Subject): Buffer =>
    key(indexOf(store, kind, space, subject, advisor), arrival, index, node);
  if (phone === undefined) return isWait && memberId !== undefined ? [at('number', { memberId })] : [];
  if (!isWait) return [at('held', { phone })];
  const known = seen?.memberId ?? undefined;
  return [at('number', { phone }), ...(known === undefined ? [] : [at('member', { memberId: known })])];
};

export async function* indexedUnder(store: Store, prefix: Buffer, limit: number): AsyncGenerator<Indexed[]> {
  for await (const found of keysUnder(store, timetable, prefix, limit)) yield found.map(indexedIn);
}
