import type { Operation, Store } from '../state/store';
import {
  records,
  type Counts,
  type ItemRecord,
  type ListRecord,
  type MessageRecord,
  type QueueKeys,
  type SharedRecord,
} from './records';
import { liveMessages, storable, type Input } from './storable-message';
import { setVisits } from './visits';

/** One recipient of a message, or one contact, group or id. */
export interface OutboxItem {
  readonly index: number;
  /** The number that the item is for, as `reset` names it. */
  readonly phone?: string;
  /** The member that the item is for, where it has no number. */
  readonly memberId?: number | string;
  /** The item's own advisor, in place of the message's. */
  readonly advisor?: string;
  /** Places of the same number and text again in the list: they are carried out once, and emitted with their original. */
  readonly duplicates?: readonly { readonly index: number }[];
}

/** A message and its items, as a node accepts them. */
export interface Batch<I extends OutboxItem, O> {
  readonly message: Record<string, unknown>;
  readonly shared: O;
  /** Duplicates are not among them: their originals name them. */
  readonly items: readonly I[];
  /** Duplicates included. */
  readonly count: number;
  /** What the list held for each item, by index. */
  readonly entries?: readonly unknown[] | undefined;
  /** Called as the message is saved: what this call saves is in the same commit. */
  readonly onSaved?: (() => void) | undefined;
}

const weightOf = ({ duplicates }: OutboxItem): number => 1 + (duplicates?.length ?? 0);

/** The kind under which the duplicates of an outcome are counted once more. */
export const duplicatesOf = (kind: string): string => `duplicates ${kind}`;

const countIn = (
  counts: Record<string, number>,
  kinds: readonly string[],
  item: OutboxItem,
  sign: 1 | -1 = 1,
): void => {
  const add = (kind: string, by: number): void => {
    counts[kind] = (counts[kind] ?? 0) + by * sign;
  };
  for (const kind of kinds) add(kind, weightOf(item));
  if (item.duplicates) add(duplicatesOf(kinds[0] ?? ''), item.duplicates.length);
};

/** Bytes: a longer message of a single item has a record of its own, so that its steps do not write it again. */
const longestInline = 1024;

/** What the items of a message share, while one of them is in memory: two copies would write over each other's counts. */
export class MessageItems<O> {
  /** Unique in this process. */
  readonly name: string;
  /** How many of its items are in memory. */
  users = 0;
  /** What the node keeps with the message. */
  attachment: unknown;
  /** About the number of bytes of a new message. */
  bytes = 0;
  /** The outcomes that have left; `saved` are those whose removal is in the store. */
  private readonly emitted: Record<string, number>;
  private readonly saved: Record<string, number>;
  private original: Input | undefined;
  private message: MessageRecord | undefined;
  private loading: Promise<void> | undefined;
  private isMissing = false;
  /** The message has a record of its own. */
  private hasOwnMessage = true;
  private isMessageNew = false;
  private isListNew = false;
  private areCountsNew = false;

  private constructor(
    private readonly keys: QueueKeys,
    readonly arrival: Buffer,
    public record: ListRecord<O>,
    /** It came as a list. */
    readonly isList: boolean,
    counts: Counts,
  ) {
    this.name = keys.list(arrival).toString('latin1');
    this.emitted = { ...counts };
    this.saved = { ...counts };
  }

  static accepted<I extends OutboxItem, O>(
    keys: QueueKeys,
    arrival: Buffer,
    batch: Batch<I, O>,
    about: Omit<SharedRecord<O>, 'shared' | 'count'>,
    isComplete: boolean,
  ): MessageItems<O> {
    const { message, entries, shared, count } = batch;
    const made = new MessageItems<O>(keys, arrival, { ...about, shared, count, isComplete }, count > 1, {});
    const { dropped, bytes, ...stored } = storable({ message, entries });
    made.bytes = bytes;
    made.message = dropped ? { ...stored, dropped } : stored;
    made.original = { message, entries };
    made.hasOwnMessage = made.isList || bytes > longestInline;
    made.isMessageNew = made.hasOwnMessage;
    made.isListNew = made.isList;
    if (dropped) liveMessages.keep(made.name, made.original);
    return made;
  }

  static ofSingle<O>(
    keys: QueueKeys,
    arrival: Buffer,
    { message, ...record }: NonNullable<ItemRecord<unknown, O, unknown>['single']>,
  ): MessageItems<O> {
    const made = new MessageItems<O>(keys, arrival, { ...record, isComplete: true }, false, {});
    made.message = message;
    made.hasOwnMessage = message === undefined;
    return made;
  }

  /** Undefined when the record of the list is missing. */
  static async ofList<O>(
    store: Store,
    keys: QueueKeys,
    arrival: Buffer,
  ): Promise<MessageItems<O> | undefined> {
    const [list, counts] = await Promise.all([
      store.get<ListRecord<O>>(records, keys.list(arrival)),
      store.get<Counts>(records, keys.counts(arrival)),
    ]);
    return list && new MessageItems<O>(keys, arrival, list.value, true, counts?.value ?? {});
  }

  /** Items whose outcomes have not left yet, duplicates included. */
  get remaining(): number {
    return this.record.count - (this.emitted['total'] ?? 0);
  }

  get isOver(): boolean {
    return (this.saved['total'] ?? 0) >= this.record.count;
  }

  /** The part of a single item's record that a list has in its own. */
  get single(): NonNullable<ItemRecord<unknown, O, unknown>['single']> {
    const { isComplete: _, ...record } = this.record;
    return { ...record, ...(this.message && !this.hasOwnMessage && { message: this.message }) };
  }

  /** Reads the message, where it is not in memory. */
  load(store: Store): Promise<void> | undefined {
    if (this.message || this.isMissing) return undefined;
    this.loading ??= store.get<MessageRecord>(records, this.keys.message(this.arrival)).then((found) => {
      this.message = found?.value;
      this.isMissing = !this.message;
    });
    return this.loading;
  }

  /**
   * The original message while this process has it, else the stored one; `dropped` means that parts could not be
   * stored.
   */
  get input(): Input & { readonly dropped: boolean } {
    const live = this.original ?? liveMessages.get(this.name);
    if (live) return { ...live, dropped: false };
    const { message = {}, entries, dropped = false, visits } = this.message ?? {};
    if (visits) setVisits(message, visits);
    return { message, entries, dropped };
  }

  /** Counts an outcome that leaves; gives all that have left by then. */
  countEmitted(item: OutboxItem, kinds: readonly string[]): Counts {
    countIn(this.emitted, [...kinds, 'total'], item);
    return this.emitted;
  }

  /** Takes `countEmitted` back: the outcome did not arrive. */
  uncountEmitted(item: OutboxItem, kinds: readonly string[]): void {
    countIn(this.emitted, [...kinds, 'total'], item, -1);
  }

  /** The outcome has left for good. */
  countSaved(item: OutboxItem, kinds: readonly string[]): void {
    countIn(this.saved, [...kinds, 'total'], item);
    this.areCountsNew = true;
  }

  complete(): void {
    this.record = { ...this.record, isComplete: true };
    this.isListNew = true;
  }

  /** The operations to write now. */
  operations(): Operation[] {
    const { keys, arrival, record, isList } = this;
    const put = (at: Buffer, value: unknown): Operation => ({ table: records, put: at, value });
    const remove = (at: Buffer): Operation => ({ table: records, remove: at });
    if (this.isOver) {
      liveMessages.forget(this.name);
      if (!isList) return this.hasOwnMessage ? [remove(keys.message(arrival))] : [];
      return [keys.list(arrival), keys.message(arrival), keys.counts(arrival)].map(remove);
    }
    const operations: Operation[] = [];
    if (this.isMessageNew) operations.push(put(keys.message(arrival), this.message));
    if (this.isListNew) operations.push(put(keys.list(arrival), record));
    if (this.areCountsNew && isList) operations.push(put(keys.counts(arrival), { ...this.saved }));
    this.isMessageNew = this.isListNew = this.areCountsNew = false;
    return operations;
  }
}
