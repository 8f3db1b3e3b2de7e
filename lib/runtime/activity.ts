import { randomBytes } from 'node:crypto';
import { consentOf } from '../consent/consent';
import type { Wait } from '../consent/waits';
import type { QueueReader } from '../outbox/queue-reader';
import { itemIn, jobIn } from '../outbox/records';
import { systemClock } from '../service/clock';
import type { Problem } from '../service/errors';
import { endOf, key, type Store } from '../state/store';
import type { Environment } from './environment';
import type { NodeName, WaitItem, QueueItem, ListItem, Failure, Listed } from './activity-items';

export type { WaitItem, QueueItem, ListItem, Failure, Listed } from './activity-items';

export interface Asked {
  readonly page: number;
  readonly pageSize: number;
  /** A number, or some of its digits; empty means all. */
  readonly phone?: string;
  readonly advisor?: string;
}

interface Outbox {
  readonly reader: QueueReader<{ readonly index: number; readonly phone?: string }>;
  cancel(job: Buffer, index?: number): Promise<boolean>;
}

/** What a failure is told with. */
export interface FailureReport {
  readonly node: NodeName;
  readonly problem: Problem;
  readonly msg: Readonly<Record<string, unknown>>;
}

const mostFailures = 1000;
const failuresKeptFor = 30 * 24 * 3600 * 1000;
const failuresGatheredFor = 200;
/** So many waits are shown in order of their beginning; of more, each page is as it is found. */
const mostSorted = 1000;
const readAtOnce = 200;
/** Read for a filter that no key answers; after that the search must be made narrower. */
const mostScanned = 20_000;

const table = 'work';

type Kind = 'w' | 'q' | 'l';
const idOf = (kind: Kind, name: Buffer): string => kind + name.toString('base64url');
const nameIn = (kind: Kind, id: string): Buffer | undefined => {
  const name = id.startsWith(kind) ? Buffer.from(id.slice(1), 'base64url') : undefined;
  return name && name.length > 12 && idOf(kind, name) === id ? name : undefined;
};

/** How a search names a number: whole, by some digits, or not at all. */
const searched = (phone = ''): { readonly whole?: string; readonly digits?: string; isNone: boolean } => {
  const text = phone.trim();
  if (text === '') return { isNone: false };
  const digits = text.replaceAll(/\D/g, '');
  if (digits === '') return { isNone: true };
  return text.startsWith('+') && digits.length >= 8
    ? { whole: `+${digits}`, isNone: false }
    : { digits, isNone: false };
};

const listed = <T>(data: readonly T[], { page, pageSize }: Asked, totalRecord: number | null): Listed<T> => ({
  data,
  pageInfo: { page, pageSize, totalRecord },
});

const skippedBy = ({ page, pageSize }: Asked): number => (page - 1) * pageSize;

/** One page of what passes; reads no further than it must. */
const pageOf = async <T>(
  items: AsyncIterable<T>,
  asked: Asked,
  isMeant: (item: T) => boolean,
): Promise<Listed<T>> => {
  const skip = skippedBy(asked);
  const data: T[] = [];
  let matches = 0;
  let scanned = 0;
  for await (const item of items) {
    if (isMeant(item)) {
      matches += 1;
      if (matches > skip && data.length < asked.pageSize) data.push(item);
    }
    scanned += 1;
    if (matches > skip + asked.pageSize || scanned >= mostScanned) return listed(data, asked, null);
  }
  return listed(data, asked, matches);
};

/** What goes on in one environment, read from the store by pages: for the sidebar, the routes and the activity node. */
export class Activity {
  private readonly outboxes = new Map<string, { readonly node: NodeName; readonly outbox: Outbox }>();
  private readonly listeners = new Set<() => void>();
  private failing: Failure[] = [];
  private forgetTimer: (() => void) | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly environment: Environment) {}

  /** A node that takes things on; returns what takes that back. */
  add(node: NodeName, outbox: Outbox): () => void {
    const added = { node, outbox };
    this.outboxes.set(node.id, added);
    return () => {
      if (this.outboxes.get(node.id) === added) this.outboxes.delete(node.id);
    };
  }

  /** Something may look different now. */
  changed(): void {
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  async waits(asked: Asked): Promise<Listed<WaitItem>> {
    const { whole, digits, isNone } = searched(asked.phone);
    if (isNone) return listed([], asked, 0);
    const { advisor } = asked;
    if (digits !== undefined || advisor !== undefined)
      return pageOf(this.allWaits(whole), asked, (item) => this.isFor(item, digits, advisor));
    const { waits } = await consentOf(this.environment);
    const count = await waits.count(whole);
    if (count > mostSorted) {
      const found = await waits.list(asked.pageSize, { phone: whole, skip: skippedBy(asked) });
      return listed(await this.waitItems(found.map(({ wait }) => wait)), asked, count);
    }
    const found = await waits.list(mostSorted, { phone: whole });
    const all = await this.waitItems(found.map(({ wait }) => wait));
    const skip = skippedBy(asked);
    const sorted = all.toSorted((one, other) => one.since - other.since);
    return listed(sorted.slice(skip, skip + asked.pageSize), asked, all.length);
  }

  async *allWaits(phone?: string): AsyncGenerator<WaitItem> {
    const { waits } = await consentOf(this.environment);
    for (let last: Buffer | undefined; ;) {
      const found = await waits.list(readAtOnce, { phone, last });
      yield* await this.waitItems(found.map(({ wait }) => wait));
      last = found.at(-1)?.key;
      if (!last || found.length < readAtOnce) return;
    }
  }

  /** Polls a wait now; false when there is none. */
  async check(id: string): Promise<boolean> {
    const item = nameIn('w', id);
    if (!item) return false;
    return (await consentOf(this.environment)).waiterOf(item)?.check(item) ?? false;
  }

  /** Cancels a wait, something queued, or the rest of a list; false when it has ended or begun. */
  async cancel(id: string, kinds: readonly Kind[] = ['w', 'q', 'l']): Promise<boolean> {
    const name = kinds.includes(id[0] as Kind) ? nameIn(id[0] as Kind, id) : undefined;
    if (!name) return false;
    if (id.startsWith('w')) return (await consentOf(this.environment)).waiterOf(name)?.cancel(name) ?? false;
    const { node, arrival } = jobIn(name);
    const outbox = this.outboxes.get(node)?.outbox;
    if (!outbox) return false;
    return id.startsWith('l') ? outbox.cancel(arrival) : outbox.cancel(arrival, itemIn(name).index);
  }

  async queue(asked: Asked): Promise<Listed<QueueItem>> {
    const { whole, digits, isNone } = searched(asked.phone);
    if (isNone) return listed([], asked, 0);
    const { advisor } = asked;
    const part = whole?.slice(1) ?? digits;
    if (part !== undefined || advisor !== undefined)
      return pageOf(this.allQueued(), asked, (item) => this.isFor(item, part, advisor));
    let skip = skippedBy(asked);
    let total = 0;
    const data: QueueItem[] = [];
    for (const [node, { outbox }] of this.outboxes) {
      const count = await outbox.reader.count();
      total += count;
      if (skip >= count) skip -= count;
      else {
        if (data.length < asked.pageSize)
          for await (const item of this.queuedOf(node, skip)) {
            data.push(item);
            if (data.length === asked.pageSize) break;
          }
        skip = 0;
      }
    }
    return listed(data, asked, total);
  }

  async *allQueued(): AsyncGenerator<QueueItem> {
    for (const node of [...this.outboxes.keys()]) yield* this.queuedOf(node, 0);
  }

  /** Lists in progress. */
  async lists(): Promise<ListItem[]> {
    const lists: ListItem[] = [];
    for (const { node, outbox } of this.outboxes.values())
      for await (const { key: name, ...list } of outbox.reader.lists())
        lists.push({ id: idOf('l', name), node, ...list });
    return lists;
  }

  async failures(asked: Asked): Promise<Listed<Failure>> {
    const { whole, digits, isNone } = searched(asked.phone);
    if (isNone) return listed([], asked, 0);
    const part = whole?.slice(1) ?? digits;
    const all = (await this.allFailures()).filter((item) => this.isFor(item, part, asked.advisor));
    const skip = skippedBy(asked);
    return listed(all.slice(skip, skip + asked.pageSize), asked, all.length);
  }

  /** The latest first. */
  async allFailures(): Promise<readonly Failure[]> {
    await this.flush();
    const store = await this.environment.store();
    const { from, to } = this.failureRange();
    const found = await store.page<Failure>(table, { from, to, limit: mostFailures, reverse: true });
    const oldest = this.environment.clock.now() - failuresKeptFor;
    return found.map(({ value }) => value).filter(({ at }) => at >= oldest);
  }

  /** Keeps a failure that has left a node. The text it was about is no part of that. */
  failed({ node, problem, msg }: FailureReport): void {
    const { phone, advisor, text } = msg;
    const { code, detail, traceId } = problem;
    const isQuoted = typeof text === 'string' && text !== '' && (detail?.includes(text) ?? false);
    this.failing.push({
      at: this.environment.clock.now(),
      node,
      phone: typeof phone === 'string' ? phone : null,
      advisor: typeof advisor === 'string' ? advisor : null,
      code,
      detail: isQuoted ? null : (detail ?? null),
      traceId: traceId ?? null,
    });
    if (this.failing.length > mostFailures) this.failing.shift();
    this.forgetTimer ??= systemClock.after(failuresGatheredFor, () => {
      void this.flush();
    });
    this.changed();
  }

  /** Puts on record what failed up to now. */
  async flush(): Promise<void> {
    this.forgetTimer?.();
    this.forgetTimer = undefined;
    const failing = this.failing;
    this.failing = [];
    if (failing.length > 0)
      this.writing = this.writing
        .then(async () => this.writeFailures(await this.environment.store(), failing))
        // The store says by itself what troubles it.
        .catch(() => undefined);
    await this.writing;
  }

  private async writeFailures(store: Store, failures: readonly Failure[]): Promise<void> {
    const { from, to, prefix } = this.failureRange();
    await store.write(
      failures.map((value) => ({ table, put: key(prefix, value.at, randomBytes(6)), value })),
    );
    const oldest = key(prefix, Math.max(this.environment.clock.now() - failuresKeptFor, 0));
    const [count, expired] = await Promise.all([
      store.count(table, from, to),
      store.count(table, from, oldest),
    ]);
    const tooMany = Math.max(count - mostFailures, expired);
    if (tooMany <= 0) return;
    const found = await store.page(table, { from, to, limit: tooMany });
    await store.write(found.map(({ key: remove }) => ({ table, remove })));
  }

  private failureRange(): { prefix: Buffer; from: Buffer; to: Buffer } {
    const prefix = key('failure', this.environment.id);
    return { prefix, from: prefix, to: endOf(prefix) };
  }

  private isFor(
    { phone, advisor }: { readonly phone: string | null; readonly advisor: string | null },
    digits: string | undefined,
    of: string | undefined,
  ): boolean {
    return (
      (digits === undefined || (phone?.includes(digits) ?? false)) && (of === undefined || advisor === of)
    );
  }

  private async waitItems(found: readonly Wait[]): Promise<WaitItem[]> {
    const consent = await consentOf(this.environment);
    return found.map((wait) => {
      const { item, advisor, subject, start, pace } = wait;
      const { node } = itemIn(item);
      return {
        id: idOf('w', item),
        node: this.nodeOf(node),
        phone: 'phone' in subject ? subject.phone : null,
        ...('memberId' in subject && { memberId: subject.memberId }),
        advisor,
        since: start,
        next: consent.waiterOf(item) ? consent.waits.next(wait) : null,
        until: start + pace.giveUpAfter,
      };
    });
  }

  private async *queuedOf(id: string, skip: number): AsyncGenerator<QueueItem> {
    const found = this.outboxes.get(id);
    if (!found) return;
    for await (const {
      key: name,
      item,
      advisor,
      since,
      isBegun,
      notBefore,
      list,
    } of found.outbox.reader.items(skip))
      yield {
        id: idOf('q', name),
        node: found.node,
        phone: item.phone ?? null,
        advisor,
        since,
        state: isBegun ? 'sending' : notBefore === undefined ? 'queued' : 'held',
        notBefore: notBefore ?? null,
        list: list ? idOf('l', list) : null,
      };
  }

  private nodeOf(id: string): NodeName {
    return this.outboxes.get(id)?.node ?? { id, name: '' };
  }
}

const known = new WeakMap<Environment, Activity>();

export const activityOf = (environment: Environment): Activity => {
  const activity = known.get(environment) ?? new Activity(environment);
  known.set(environment, activity);
  return activity;
};
