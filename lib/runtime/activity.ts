import { randomBytes } from 'node:crypto';
import { consentOf, type Consent, type ListedWait } from '../consent/consent';
import { QueueReader, type Pending } from '../outbox/queue-reader';
import { isItemName, isListName, itemIn, listIn, records } from '../outbox/records';
import { idsUnder } from '../outbox/removed-nodes';
import { cancelPausedWait } from '../outbox/repairs';
import { systemClock, within } from '../service/clock';
import { day, second } from '../durations';
import type { Problem } from '../service/errors';
import { endOf, key, type Store, type StoreCommand } from '../state/store';
import type { Environment } from './environment';
import { visible } from '../visible';
import { folded } from './kinds';
import type { NodeName, WaitItem, QueueItem, ListItem, Failure, Listed } from './activity-items';

export type { WaitItem, QueueItem, ListItem, Failure, Listed } from './activity-items';

export interface ActivityQuery {
  readonly page: number;
  readonly pageSize: number;
  /** A number, some of its digits, or for waits and the queue a part of a name; empty means all. */
  readonly phone?: string;
  readonly advisor?: string;
  /** For the queue alone: only items in this state. */
  readonly state?: QueueItem['state'];
}

interface ReadableOutbox {
  readonly reader: QueueReader;
  cancel(arrival: Buffer, index?: number, isWait?: boolean): Promise<boolean>;
  /** Gives a wait a look now. */
  check(arrival: Buffer, index: number): Promise<boolean>;
}

/** A command to the process that has an item: check or cancel it. */
interface ItemCommand extends StoreCommand {
  readonly kind: 'item';
  readonly id: string;
  readonly act: 'check' | 'cancel';
}

export const isItemCommand = (command: StoreCommand): command is ItemCommand => command.kind === 'item';

/** Milliseconds to wait for the other process. If it has died, its successor carries out the command later. */
const answeredWithin = 5 * second;

/** A saved failure, with its sentence. */
export interface FailureRecord extends Failure {
  readonly problem?: Pick<Problem, 'message' | 'wording'>;
}

interface SavedFailure extends FailureRecord {
  /** The environment and the service it was for; missing when the environment was incomplete. */
  readonly space?: string;
}

/** A failure as a node reports it. */
export interface FailureReport {
  readonly node: NodeName;
  readonly problem: Problem;
  readonly msg: Readonly<Record<string, unknown>>;
}

const mostFailuresKept = 1000;
/** Characters: an answer of the service may have megabytes. */
const longestKept = 1000;
const inShort = (said: unknown): string | null => {
  if (typeof said !== 'string') return null;
  return said.length > longestKept ? `${said.slice(0, longestKept)}…` : said;
};
const failuresKeptFor = 30 * day;
const failuresGatheredFor = 200;
/** Milliseconds within which failures are saved, unless the store cannot be written: it may still be read. */
const writtenWithin = second;
/** Up to this number, waits are sorted by their beginning; above it, they come in the order of their keys. */
const mostSorted = 1000;
const itemsAtOnce = 200;
/** The most items that are read for a filter that no key answers; a longer search must be made narrower. */
const mostScanned = 20_000;

const table = 'work';

type IdKind = 'w' | 'q' | 'l';
const itemId = (kind: IdKind, name: Buffer): string => kind + name.toString('base64url');
/** The key in an id of this kind; undefined when it is not an id that was given out. */
const nameIn = (kind: IdKind, id: string): Buffer | undefined => {
  if (!id.startsWith(kind)) return undefined;
  const name = Buffer.from(id.slice(1), 'base64url');
  const isName = kind === 'l' ? isListName(name) : isItemName(name);
  return isName && itemId(kind, name) === id ? name : undefined;
};

interface Searched {
  readonly whole?: string;
  readonly digits?: string;
  readonly name?: string;
}

/** What a search asks for: a whole number, some digits, or a part of a name. Empty when it asks for everything. */
const searched = (phone = ''): Searched => {
  const text = phone.trim();
  if (/\p{L}/u.test(text)) return { name: folded(text) };
  const digits = text.replaceAll(/\D/g, '');
  if (digits === '') return text === '' ? {} : { name: text };
  return text.startsWith('+') && digits.length >= 8 ? { whole: `+${digits}` } : { digits };
};

/** The same where no key finds a whole number. */
const partIn = ({ phone }: ActivityQuery): Searched => {
  const { whole, ...part } = searched(phone);
  return whole === undefined ? part : { digits: whole.slice(1) };
};

const listedPage = <T>(
  data: readonly T[],
  { page, pageSize }: ActivityQuery,
  totalRecord: number | null,
): Listed<T> => ({
  data,
  pageInfo: { page, pageSize, totalRecord },
});

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

const skippedBy = ({ page, pageSize }: ActivityQuery): number => (page - 1) * pageSize;

/** One page of the items that match; reads no further than needed. */
const filteredPage = async <T>(
  items: AsyncIterable<T>,
  asked: ActivityQuery,
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
    if (matches > skip + asked.pageSize || scanned >= mostScanned) return listedPage(data, asked, null);
  }
  return listedPage(data, asked, matches);
};

interface Read {
  readonly node: NodeName;
  readonly reader: QueueReader;
}

async function* queuedOf({ node, reader }: Read, skip: number, now: number): AsyncGenerator<QueueItem> {
  for await (const { key: name, item, advisor, since, isStarted, notBefore = 0, list } of reader.items(
    skip,
  )) {
    const isHeld = notBefore > now && !isStarted;
    yield {
      id: itemId('q', name),
      node,
      phone: item.phone ?? null,
      ...(item.name !== undefined && { name: item.name }),
      advisor,
      since,
      state: isStarted ? 'sending' : isHeld ? 'held' : 'queued',
      notBefore: isHeld ? notBefore : null,
      list: list ? itemId('l', list) : null,
    };
  }
}

const failureIn = ({ problem: _, ...failure }: FailureRecord): Failure => failure;

const isFor = (
  item: { readonly phone: string | null; readonly advisor: string | null; readonly name?: string },
  { digits, name }: Searched,
  advisor: string | undefined,
): boolean =>
  (digits === undefined || (item.phone?.includes(digits) ?? false)) &&
  (name === undefined || (item.name !== undefined && folded(item.name).includes(name))) &&
  (advisor === undefined || item.advisor === advisor);

/**
 * The activity of one environment, read from the store page by page: for the sidebar, the routes and the activity node.
 */
export class Activity {
  private readonly outboxes = new Map<string, { readonly node: NodeName; readonly outbox: ReadableOutbox }>();
  /** Called when something that is shown may have changed. */
  changed = (): void => undefined;
  private failing: SavedFailure[] = [];
  private forgetTimer: (() => void) | undefined;
  private writing: Promise<void> | undefined;

  constructor(private readonly environment: Environment) {}

  /** Adds a node that accepts items; the result removes it. */
  add(node: NodeName, outbox: ReadableOutbox): () => void {
    const added = { node, outbox };
    this.outboxes.set(node.id, added);
    return () => {
      if (this.outboxes.get(node.id) === added) this.outboxes.delete(node.id);
    };
  }

  async waits(asked: ActivityQuery): Promise<Listed<WaitItem>> {
    const { whole, ...part } = searched(asked.phone);
    const { advisor } = asked;
    if (part.digits !== undefined || part.name !== undefined || advisor !== undefined)
      return filteredPage(this.allWaits(whole), asked, (item) => isFor(item, part, advisor));
    const places = await this.waitPlaces();
    const counts = await Promise.all(places.map((waits) => waits.count(whole)));
    const total = sumOf(counts);
    let skip = skippedBy(asked);
    if (total <= mostSorted) {
      const found = await Promise.all(places.map((waits) => waits.list(mostSorted, { phone: whole })));
      const all = await this.waitItems(found.flat());
      const sorted = all.toSorted((one, other) => one.since - other.since);
      return listedPage(sorted.slice(skip, skip + asked.pageSize), asked, all.length);
    }
    const page: ListedWait[] = [];
    for (const [at, waits] of places.entries()) {
      const limit = asked.pageSize - page.length;
      const found = limit > 0 ? await waits.list(limit, { phone: whole, skip }) : [];
      page.push(...found);
      skip = Math.max(skip - (counts[at] ?? 0), 0);
    }
    return listedPage(await this.waitItems(page), asked, total);
  }

  async *allWaits(phone?: string): AsyncGenerator<WaitItem> {
    for (const waits of await this.waitPlaces())
      for (let last: Buffer | undefined; ;) {
        const found = await waits.list(itemsAtOnce, { phone, last });
        yield* await this.waitItems(found);
        last = found.at(-1)?.key;
        // A page may be short: those that have ended meanwhile are left out.
        if (!last) break;
      }
  }

  /** Polls a wait now; false when there is none. */
  check(id: string): Promise<boolean> {
    return this.act('check', id, ['w']);
  }

  /** Cancels a wait, an item of the queue, or the rest of a list; false when it has finished or started. */
  cancel(id: string, kinds: readonly IdKind[] = ['w', 'q', 'l']): Promise<boolean> {
    return this.act('cancel', id, kinds);
  }

  private async act(act: ItemCommand['act'], id: string, kinds: readonly IdKind[]): Promise<boolean> {
    const kind = kinds.find((each) => id.startsWith(each));
    const name = kind && nameIn(kind, id);
    if (!name) return false;
    for (const activity of await this.usable()) {
      const isDone = await (activity.environment.isElsewhere === true
        ? activity.command(act, id, kind, name)
        : activity.actHere(act, kind, name));
      if (isDone === true) return true;
    }
    return false;
  }

  /** Carries out a command of another process; false when the node of the item is not there yet. */
  async handleCommand({ act, id }: ItemCommand): Promise<boolean> {
    const kind = (['w', 'q', 'l'] as const).find((each) => id.startsWith(each));
    const name = kind && nameIn(kind, id);
    return !name || (await this.actHere(act, kind, name)) !== undefined;
  }

  /** Undefined when the node of the item is not there. */
  private async actHere(act: ItemCommand['act'], kind: IdKind, name: Buffer): Promise<boolean | undefined> {
    const { node, arrival } = listIn(name);
    const outbox = this.outboxes.get(node)?.outbox;
    if (kind === 'l') return outbox?.cancel(arrival);
    const { index } = itemIn(name);
    if (act === 'check') return outbox?.check(arrival, index);
    if (outbox || kind !== 'w') return outbox?.cancel(arrival, index, kind === 'w');
    const isCancelled = await cancelPausedWait(await this.environment.store(), node, arrival, index);
    if (isCancelled) this.changed();
    return isCancelled || undefined;
  }

  /** Gives a command to the process that has the item; false when no process has it, or when it has started. */
  private async command(act: ItemCommand['act'], id: string, kind: IdKind, name: Buffer): Promise<boolean> {
    const store = await this.environment.store();
    const { node, arrival } = listIn(name);
    const index = kind === 'l' ? undefined : itemIn(name).index;
    if (!(await this.readerOf(store, node).isWaiting(arrival, index, kind === 'w'))) return false;
    const command: ItemCommand = { kind: 'item', at: store.now(), id, act };
    await within(systemClock, answeredWithin, store.peers?.tellHolder(command) ?? Promise.resolve());
    return true;
  }

  async queue(asked: ActivityQuery): Promise<Listed<QueueItem>> {
    const part = partIn(asked);
    const { advisor, state } = asked;
    const readers = await this.readers();
    if (part.digits !== undefined || part.name !== undefined || advisor !== undefined || state !== undefined)
      return filteredPage(
        this.allQueued(),
        asked,
        (item) => isFor(item, part, advisor) && (state === undefined || item.state === state),
      );
    let skip = skippedBy(asked);
    let total = 0;
    const data: QueueItem[] = [];
    for (const read of readers) {
      const count = await read.reader.count();
      total += count;
      if (skip >= count) skip -= count;
      else {
        if (data.length < asked.pageSize)
          for await (const item of queuedOf(read, skip, this.environment.clock.now())) {
            data.push(item);
            if (data.length === asked.pageSize) break;
          }
        skip = 0;
      }
    }
    return listedPage(data, asked, total);
  }

  /** The number of queued items of this process. */
  async queueLength(): Promise<number> {
    const counts = await Promise.all(this.readersHere().map(({ reader }) => reader.count()));
    return sumOf(counts);
  }

  /** The number of waits of this process. */
  async waitCount(): Promise<number> {
    const places = await this.waitPlaces(({ isElsewhere }) => isElsewhere !== true);
    return sumOf(await Promise.all(places.map((waits) => waits.count())));
  }

  /** The number of waits and queued items that another process has for these nodes. */
  async countElsewhere(isMeant: (node: string) => boolean): Promise<Pending> {
    const store = await this.environment.store();
    const waiting = (await idsUnder(store, records, key('wait'))).filter(isMeant);
    const readers = (await this.readersElsewhere()).filter(({ node }) => isMeant(node.id));
    return {
      items: sumOf(await Promise.all(readers.map(({ reader }) => reader.count()))),
      waits: sumOf(await Promise.all(waiting.map((node) => this.readerOf(store, node).count('waits')))),
    };
  }

  /** Some of the waits of these nodes. */
  async waitsOf(isMeant: (node: string) => boolean, most: number): Promise<readonly WaitItem[]> {
    const asked = { page: 1, pageSize: most };
    return (await filteredPage(this.allWaits(), asked, ({ node }) => isMeant(node.id))).data;
  }

  async *allQueued(): AsyncGenerator<QueueItem> {
    for (const read of await this.readers()) yield* queuedOf(read, 0, this.environment.clock.now());
  }

  /** The lists in progress. */
  async lists(asked: ActivityQuery): Promise<Listed<ListItem>> {
    let skip = skippedBy(asked);
    let total = 0;
    const data: ListItem[] = [];
    for (const { node, reader } of await this.readers()) {
      const count = await reader.count('lists');
      total += count;
      if (skip < count && data.length < asked.pageSize)
        for await (const { key: name, ...list } of reader.lists(skip)) {
          data.push({ id: itemId('l', name), node, ...list });
          if (data.length === asked.pageSize) break;
        }
      skip = Math.max(skip - count, 0);
    }
    return listedPage(data, asked, total);
  }

  async failures(asked: ActivityQuery): Promise<Listed<Failure>> {
    const { data, pageInfo } = await this.failureRecords(asked);
    return { data: data.map(failureIn), pageInfo };
  }

  /** All failures, the latest first. */
  async allFailures(): Promise<readonly Failure[]> {
    return (await this.failuresOnRecord()).map(failureIn);
  }

  async failureRecords(asked: ActivityQuery): Promise<Listed<FailureRecord>> {
    const part = partIn(asked);
    const all = (await this.failuresOnRecord()).filter((item) => isFor(item, part, asked.advisor));
    const skip = skippedBy(asked);
    return listedPage(all.slice(skip, skip + asked.pageSize), asked, all.length);
  }

  private async failuresOnRecord(): Promise<readonly FailureRecord[]> {
    await Promise.all(this.all().map((activity) => activity.flush()));
    const store = await this.environment.store();
    const { from, to } = this.failureRange();
    const range = { from, to, limit: mostFailuresKept, reverse: true };
    const found = await store.page<SavedFailure>(table, range);
    const oldest = this.environment.clock.now() - failuresKeptFor;
    const spaces = new Set([undefined, ...this.all().map((activity) => activity.space)]);
    return found
      .map(({ value }) => value)
      .filter(({ at, space }) => at >= oldest && spaces.has(space))
      .map(({ space: _, ...failure }) => failure);
  }

  /** Records a failure that has left a node. The record never holds the text. */
  failed({ node, problem, msg }: FailureReport): void {
    const { phone, advisor, text } = msg;
    const { code, detail, traceId, message, wording } = problem;
    const isQuotedIn = (said: string | undefined): boolean =>
      typeof text === 'string' && text !== '' && [text, visible(text)].some((each) => said?.includes(each));
    const isKept = message.length <= 2 * longestKept && !isQuotedIn(message);
    const { space } = this;
    this.failing.push({
      at: this.environment.clock.now(),
      node,
      phone: inShort(phone),
      advisor: inShort(advisor),
      code,
      detail: isQuotedIn(detail) ? null : inShort(detail),
      traceId: inShort(traceId),
      ...(isKept && { problem: { message, ...(wording && { wording }) } }),
      ...(space !== undefined && { space }),
    });
    if (this.failing.length > mostFailuresKept) this.failing.shift();
    this.forgetTimer ??= systemClock.after(failuresGatheredFor, () => {
      void this.flush();
    });
    this.changed();
  }

  /** Saves the failures that are still in memory, and waits as long as a writable store needs. */
  async flush(): Promise<void> {
    this.forgetTimer?.();
    this.forgetTimer = undefined;
    this.writing ??= this.writeAll().finally(() => {
      this.writing = undefined;
    });
    await within(systemClock, writtenWithin, this.writing);
  }

  /** One write at a time: while it waits for the store, the latest failures are gathered in memory. */
  private async writeAll(): Promise<void> {
    while (this.failing.length > 0) {
      const failing = this.failing;
      this.failing = [];
      try {
        await this.writeFailures(await this.environment.store(), failing);
      } catch {
        // The store shows its own trouble.
      }
    }
  }

  private async writeFailures(store: Store, failures: readonly SavedFailure[]): Promise<void> {
    const { from, to, prefix } = this.failureRange();
    await store.write(
      failures.map((value) => ({ table, put: key(prefix, value.at, randomBytes(6)), value })),
    );
    const oldest = key(prefix, Math.max(this.environment.clock.now() - failuresKeptFor, 0));
    const [count, expired] = await Promise.all([
      store.count(table, from, to),
      store.count(table, from, oldest),
    ]);
    const tooMany = Math.max(count - mostFailuresKept, expired);
    if (tooMany <= 0) return;
    const found = await store.keys(table, { from, to, limit: tooMany });
    await store.write(found.map((remove) => ({ table, remove })));
  }

  /** Undefined when the environment is incomplete. */
  private get space(): string | undefined {
    try {
      return this.environment.space;
    } catch {
      return undefined;
    }
  }

  private failureRange(): { prefix: Buffer; from: Buffer; to: Buffer } {
    const prefix = key('failure', this.environment.id);
    return { prefix, from: prefix, to: endOf(prefix) };
  }

  /** The activity of this environment, of its other uses in subflows, and of its views over other stores. */
  private all(): Activity[] {
    const peers = this.environment.peers?.() ?? [];
    return [this, ...peers.map(activityOf)];
  }

  private nodesHere(): ReadonlyMap<string, NodeName> {
    return new Map(
      this.all().flatMap(({ outboxes }) => Array.from(outboxes, ([id, { node }]) => [id, node])),
    );
  }

  private readersHere(): Read[] {
    return this.all().flatMap(({ outboxes }) =>
      Array.from(outboxes.values(), ({ node, outbox: { reader } }) => ({ node, reader })),
    );
  }

  /** Readers of this process, then those of the others. */
  private async readers(): Promise<Read[]> {
    const views = this.all().filter(({ environment }) => environment.isElsewhere !== undefined);
    const names = this.nodesHere();
    const read = await Promise.all(views.map((activity) => activity.readersElsewhere()));
    return [
      ...this.readersHere(),
      ...read.flat().map(({ node, reader }) => ({ node: names.get(node.id) ?? node, reader })),
    ];
  }

  /** Readers of the nodes that have work in another process, or in what a process left, and that do not run here. */
  private async readersElsewhere(): Promise<Read[]> {
    const store = await this.environment.store();
    const ids = await idsUnder(store, 'work', key('item'));
    const unattended = ids.filter((id) => !this.outboxes.has(id));
    return unattended.map((id) => ({
      node: { id, name: '' },
      reader: this.readerOf(store, id),
    }));
  }

  private readerOf(store: Store, node: string): QueueReader {
    const { space } = this.environment;
    return new QueueReader({ store, node, space, isCancelled: () => false });
  }

  /** The activities whose environment is configured and has its store. When there are none, the first fault is thrown. */
  private async usable(): Promise<Activity[]> {
    const found: Activity[] = [];
    const faults: unknown[] = [];
    for (const activity of this.all())
      try {
        const { store } = await consentOf(activity.environment);
        if (store.peers?.isLost !== true) found.push(activity);
      } catch (fault) {
        faults.push(fault);
      }
    if (found.length === 0 && faults.length > 0) throw faults[0];
    return found;
  }

  private async consents(): Promise<{ readonly environment: Environment; readonly consent: Consent }[]> {
    const usable = await this.usable();
    return Promise.all(
      usable.map(async ({ environment }) => ({ environment, consent: await consentOf(environment) })),
    );
  }

  /** Uses of one subflow share their waits, unless they point to different services. */
  private async waitPlaces(
    isMeant = (_environment: Environment): boolean => true,
  ): Promise<readonly Consent[]> {
    const places = new Map<string, Consent>();
    for (const { environment, consent } of await this.consents()) {
      const place = `${consent.store.peers?.part ?? ''} ${environment.space}`;
      if (isMeant(environment) && !places.has(place)) places.set(place, consent);
    }
    return [...places.values()];
  }

  private async waitItems(found: readonly ListedWait[]): Promise<WaitItem[]> {
    const consents = await this.consents();
    const nodes = this.nodesHere();
    return found.map((wait) => {
      const { item, node, advisor, subject, start, pace, name } = wait;
      const consent = consents.find((each) => each.consent.isRunning(node))?.consent;
      return {
        id: itemId('w', item),
        node: nodes.get(node) ?? { id: node, name: '' },
        phone: 'phone' in subject ? subject.phone : null,
        ...('memberId' in subject && { memberId: subject.memberId }),
        ...(name !== undefined && { name }),
        advisor,
        since: start,
        next: consent ? consent.next(wait) : null,
        until: start + pace.giveUpAfter,
      };
    });
  }
}

const activities = new WeakMap<Environment, Activity>();

export const activityOf = (environment: Environment): Activity => {
  const activity = activities.get(environment) ?? new Activity(environment);
  activities.set(environment, activity);
  return activity;
};
