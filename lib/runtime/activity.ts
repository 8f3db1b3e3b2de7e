import { randomBytes } from 'node:crypto';
import { consentIn, type Consent } from '../consent/consent';
import type { Queue } from '../outbox/queue';
import { pendingIn, QueueReader, type Pending } from '../outbox/queue-reader';
import { arrivalIn, arrivalLength, indexLength, itemAt, records } from '../outbox/records';
import { orMake } from '../process-memory';
import { idsUnder } from '../outbox/removed-nodes';
import { cancelPausedWait } from '../outbox/repairs';
import { systemClock, within } from '../service/clock';
import { day, minute, second } from '../durations';
import type { Problem } from '../service/errors';
import { endOf, key, type Store, type StoreCommand } from '../state/store';
import type { Environment } from './environment';
import type { Words } from './language';
import { visible } from '../visible';
import { folded, tried } from '../kinds';
import type { NodeName, WaitItem, QueueItem, ListItem, Failure, Listed } from './activity-items';

export interface ActivityQuery {
  readonly page: number;
  readonly pageSize: number;
  /** A number, some of its digits, or for waits and the queue a part of a name; empty means all. */
  readonly phone?: string;
  readonly advisor?: string;
  /** For the queue alone: only items in this state. */
  readonly state?: QueueItem['state'];
}

type ReadableQueue = Pick<Queue, 'store' | 'reader' | 'cancel' | 'check'>;

export interface ItemCommand extends StoreCommand {
  readonly kind: 'item';
  readonly id: string;
  readonly act: 'check' | 'cancel';
}

/** Whether a command may cancel items. Other commands may wait for the start of a queue. */
export const isCancelling = (command: StoreCommand): boolean =>
  command.kind === 'item' ? (command as ItemCommand).act === 'cancel' : command.kind === 'control';

/** Milliseconds to wait for the other process. If it has died, its successor carries out the command later. */
const answeredWithin = 5 * second;

export interface FailureRecord extends Failure {
  /** How many failures it stands for, if they are gathered. */
  readonly count?: number;
  readonly problem?: Pick<Problem, 'message' | 'wording'>;
}

/** The sentence that says what happened and what to do; null where only the code is known. */
export const sentenceOf = ({ code, problem }: FailureRecord, words: Words): string | null =>
  problem ? words.problem({ code, retryable: false, attempts: 0, ...problem }) : null;

interface SavedFailure extends FailureRecord {
  /** Missing when the environment was incomplete. */
  readonly space?: string;
}

export interface FailureReport {
  readonly node: NodeName;
  readonly problem: Problem;
  readonly msg: Readonly<Record<string, unknown>>;
}

export const mostFailuresKept = 1000;
/** Characters: an answer of the service may have megabytes. */
const longestKept = 1000;
const inShort = (said: unknown): string | null => {
  const text = typeof said === 'number' ? String(said) : said;
  if (typeof text !== 'string') return null;
  return text.length > longestKept ? `${text.slice(0, longestKept)}…` : text;
};
const failuresKeptFor = 30 * day;
const failuresGatheredFor = 200;
/** Milliseconds within which failures are saved, unless the store cannot be written: it may still be read. */
const writtenWithin = second;
/** Up to this number, waits are sorted by start; above it, they come in the order of their keys. */
const mostSorted = 1000;
/** The most items that are read for a filter that no key answers; the user must narrow a longer search. */
const mostScanned = 20_000;

/** Codes of failures that a list has by the thousand: it was stopped, or it came too late. */
const gatheredCodes = new Set(['cancelled', 'stale']);
/** Milliseconds between two of them. */
const gatheredWithin = minute;

/** What failed together is one failure, the latest: a stopped list would push those that need a decision out. */
const gathered = (failures: readonly FailureRecord[]): FailureRecord[] => {
  const found: (FailureRecord & { count: number })[] = [];
  let before = 0;
  for (const failure of failures) {
    const last = found.at(-1);
    const isSame =
      gatheredCodes.has(failure.code) &&
      last?.code === failure.code &&
      last.node.id === failure.node.id &&
      before - failure.at <= gatheredWithin;
    if (isSame) last.count += 1;
    else found.push({ ...failure, count: 1 });
    before = failure.at;
  }
  return found;
};

const table = 'work';

type IdKind = 'w' | 'q' | 'l';
const idOf = (kind: IdKind, node: string, arrival: Buffer, ...index: readonly number[]): string =>
  kind + key(node, arrival, ...index).toString('base64url');

/** What an id names; without an index, a whole list. */
interface Named {
  readonly node: string;
  readonly arrival: Buffer;
  readonly index?: number;
  readonly isWait: boolean;
}

/** Undefined when it is not an id of these kinds that was given out. */
const namedBy = (id: string, kinds: readonly IdKind[] = ['w', 'q', 'l']): Named | undefined => {
  const kind = kinds.find((each) => id.startsWith(each));
  const name = Buffer.from(id.slice(1), 'base64url');
  const end = name.indexOf(0);
  const length = end + 1 + arrivalLength + (kind === 'l' ? 0 : indexLength);
  if (!kind || kind + name.toString('base64url') !== id || end < 1 || name.length !== length)
    return undefined;
  const place = kind === 'l' ? { arrival: arrivalIn(name) } : itemAt(name);
  return { node: name.toString('utf8', 0, end), ...place, isWait: kind === 'w' };
};

/** The digits that a search asks for; none where it asks for a name. */
const digitsIn = (phone: string): string => (/\p{L}/u.test(phone) ? '' : phone.replaceAll(/\D/g, ''));

/** The whole number that a search asks for: a key finds it. */
const wholeIn = ({ phone = '' }: ActivityQuery): string | undefined => {
  const digits = digitsIn(phone);
  return phone.trim().startsWith('+') && digits.length >= 8 ? `+${digits}` : undefined;
};

type Searchable = Pick<Failure, 'phone' | 'advisor'> & Partial<Pick<QueueItem, 'name' | 'state'>>;

/** Whether an item is searched for; undefined for a search of everything. */
const filterOf = ({ phone = '', advisor, state }: ActivityQuery) => {
  const digits = digitsIn(phone);
  const name = digits === '' ? folded(phone.trim()) : '';
  if (digits + name === '' && advisor === undefined && state === undefined) return undefined;
  return (item: Searchable): boolean =>
    (item.phone ?? '').includes(digits) &&
    folded(item.name ?? '').includes(name) &&
    (advisor === undefined || item.advisor === advisor) &&
    (state === undefined || item.state === state);
};

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

export const pageIn = <T>(
  found: readonly T[],
  { page, pageSize }: Pick<ActivityQuery, 'page' | 'pageSize'>,
  totalRecord: number | null = found.length,
): Listed<T> => ({
  data: found.slice((page - 1) * pageSize, page * pageSize),
  pageInfo: { page, pageSize, totalRecord },
});

/** What one node or one part of the store adds to a list: how much, and all after the first few. */
interface Part<T> {
  count(): Promise<number>;
  items(skip: number): AsyncIterable<T>;
}

async function* allOf<T>(parts: readonly Part<T>[]): AsyncGenerator<T> {
  for (const part of parts) yield* part.items(0);
}

/** One page of the items that match; reads no further than needed. */
const filteredPage = async <T>(
  parts: readonly Part<T>[],
  asked: ActivityQuery,
  isMeant: (item: T) => boolean,
): Promise<Listed<T>> => {
  const found: T[] = [];
  let scanned = 0;
  for await (const item of allOf(parts)) {
    if (isMeant(item)) found.push(item);
    scanned += 1;
    if (found.length > asked.page * asked.pageSize || scanned >= mostScanned)
      return pageIn(found, asked, null);
  }
  return pageIn(found, asked);
};

/** One page of the items; without a filter, those of other pages are only counted. */
const pageOf = async <T>(
  parts: readonly Part<T>[],
  asked: ActivityQuery,
  isMeant?: (item: T) => boolean,
): Promise<Listed<T>> => {
  if (isMeant) return filteredPage(parts, asked, isMeant);
  const { page, pageSize } = asked;
  let skip = (page - 1) * pageSize;
  let totalRecord = 0;
  const data: T[] = [];
  for (const part of parts) {
    const size = await part.count();
    totalRecord += size;
    if (skip < size && data.length < pageSize)
      for await (const item of part.items(skip)) if (data.push(item) === pageSize) break;
    skip = Math.max(skip - size, 0);
  }
  return { data, pageInfo: { page, pageSize, totalRecord } };
};

interface Read {
  readonly node: NodeName;
  readonly reader: QueueReader;
}

const placeOf = (node: string, { peers }: Store): string => `${peers?.part ?? ''} ${node}`;

const isElsewhere = ({ peers }: Store): boolean => peers?.isElsewhere === true;

async function* queuedOf({ node, reader }: Read, skip: number, now: number): AsyncGenerator<QueueItem> {
  for await (const queued of reader.items(skip)) {
    const { arrival, item, advisor, since, isStarted, notBefore = 0, isOfList } = queued;
    const isHeld = notBefore > now && !isStarted;
    yield {
      id: idOf('q', node.id, arrival, item.index),
      node,
      phone: item.phone ?? null,
      ...(item.name !== undefined && { name: item.name }),
      advisor,
      since,
      state: isStarted ? 'sending' : isHeld ? 'held' : 'queued',
      notBefore: isHeld ? notBefore : null,
      list: isOfList ? idOf('l', node.id, arrival) : null,
    };
  }
}

async function* listsOf({ node, reader }: Read, skip: number): AsyncGenerator<ListItem> {
  for await (const { arrival, ...list } of reader.lists(skip))
    yield { id: idOf('l', node.id, arrival), node, ...list };
}

/**
 * The activity of one environment, read from the store page by page: for the sidebar, the routes and the activity node.
 */
export class Activity {
  private readonly outboxes = new Map<string, { readonly node: NodeName; readonly outbox: ReadableQueue }>();
  changed = (): void => undefined;
  private failing: SavedFailure[] = [];
  private forgetTimer: (() => void) | undefined;
  private writing: Promise<void> | undefined;

  constructor(private readonly environment: Environment) {}

  /** The result removes the node. */
  add(node: NodeName, outbox: ReadableQueue): () => void {
    const added = { node, outbox };
    const place = placeOf(node.id, outbox.store);
    this.outboxes.set(place, added);
    return () => {
      if (this.outboxes.get(place) === added) this.outboxes.delete(place);
    };
  }

  async waits(asked: ActivityQuery): Promise<Listed<WaitItem>> {
    const whole = wholeIn(asked);
    const parts = await this.waitParts(whole);
    const isMeant = filterOf(whole === undefined ? asked : { ...asked, phone: '' });
    const found = await pageOf(parts, asked, isMeant);
    if (isMeant || (found.pageInfo.totalRecord ?? 0) > mostSorted) return found;
    const { data } = await pageOf(parts, { page: 1, pageSize: mostSorted });
    return pageIn(
      data.toSorted((one, other) => one.since - other.since),
      asked,
    );
  }

  async *allWaits(): AsyncGenerator<WaitItem> {
    yield* allOf(await this.waitParts());
  }

  /** Polls a wait now; false when there is none. */
  check(id: string): Promise<boolean> {
    return this.act('check', id, ['w']);
  }

  /** Cancels a wait, an item of the queue, or the rest of a list; false when it has finished or started. */
  cancel(id: string, kinds?: readonly IdKind[]): Promise<boolean> {
    return this.act('cancel', id, kinds);
  }

  private async act(act: ItemCommand['act'], id: string, kinds?: readonly IdKind[]): Promise<boolean> {
    const named = namedBy(id, kinds);
    if (!named) return false;
    const stores = (await this.waitPlaces()).map(({ store }) => store);
    for (const store of [...stores, this.environment.memory()]) {
      const isDone = await (isElsewhere(store)
        ? this.command(store, act, id, named)
        : this.actIn(store, act, named));
      if (isDone) return true;
    }
    return false;
  }

  /** Carries out a command of another process; false when the node of the item is not there yet. */
  async handleCommand({ act, id }: ItemCommand, store: Store): Promise<boolean> {
    const named = namedBy(id);
    return !named || (await this.actIn(store, act, named)) !== undefined;
  }

  /** Undefined when the node of the item is not there. */
  private async actIn(
    store: Store,
    act: ItemCommand['act'],
    { node, arrival, index, isWait }: Named,
  ): Promise<boolean | undefined> {
    const { outbox } = this.outboxesHere().get(placeOf(node, store)) ?? {};
    if (act === 'check' && index !== undefined) return outbox?.check(arrival, index);
    if (outbox || !isWait || index === undefined) return outbox?.cancel(arrival, index, isWait);
    const spaces = this.all().map(({ space }) => space);
    const isCancelled = await cancelPausedWait(store, spaces, node, arrival, index);
    if (isCancelled) this.changed();
    return isCancelled || undefined;
  }

  /** Gives a command to the process that has the item; false when no process has it, or when it has started. */
  private async command(
    store: Store,
    act: ItemCommand['act'],
    id: string,
    { node, arrival, index, isWait }: Named,
  ): Promise<boolean> {
    if (!(await this.readerOf(store, node).isWaiting(arrival, index, isWait))) return false;
    const command: ItemCommand = { kind: 'item', at: store.now(), id, act };
    await store.peers?.tellHolder(command, answeredWithin);
    return true;
  }

  async queue(asked: ActivityQuery): Promise<Listed<QueueItem>> {
    return pageOf(await this.queueParts(), asked, filterOf(asked));
  }

  async *allQueued(): AsyncGenerator<QueueItem> {
    yield* allOf(await this.queueParts());
  }

  async lists(asked: ActivityQuery): Promise<Listed<ListItem>> {
    const parts = (await this.readers()).map((read) => ({
      count: () => read.reader.count('lists'),
      items: (skip: number) => listsOf(read, skip),
    }));
    return pageOf(parts, asked);
  }

  /** Of this process. */
  async queueLength(): Promise<number> {
    const outboxes = [...this.outboxesHere().values()];
    return sumOf(await Promise.all(outboxes.map(({ outbox }) => outbox.reader.count())));
  }

  /** Of this process. */
  async waitCount(): Promise<number> {
    const places = (await this.waitPlaces()).filter(({ store }) => !isElsewhere(store));
    return sumOf(await Promise.all(places.map((waits) => waits.count())));
  }

  /** The waits and queued items that other processes have for these nodes. */
  async pendingElsewhere(isMeant: (node: string) => boolean): Promise<readonly Pending[]> {
    const counts = (await this.otherStores()).filter(isElsewhere).map(async (store) => {
      const ids = await Promise.all(['wait', 'item'].map((kind) => idsUnder(store, records, key(kind))));
      const nodes = [...new Set(ids.flat())].filter(isMeant);
      return Promise.all(nodes.map((node) => pendingIn(store, node)));
    });
    return (await Promise.all(counts)).flat();
  }

  /** Some of the waits of these nodes, as far as the nodes run. */
  async waitsOf(isMeant: (node: string) => boolean, most: number): Promise<readonly WaitItem[]> {
    const asked = { page: 1, pageSize: most };
    const isRunning = ({ node, next }: WaitItem): boolean => next !== null && isMeant(node.id);
    return (await pageOf(await this.waitParts(), asked, isRunning)).data;
  }

  async failures(asked: ActivityQuery, isGathered = false): Promise<Listed<FailureRecord>> {
    await Promise.all(this.all().map((activity) => activity.flush()));
    const store = await this.environment.store();
    const range = { ...this.failureRange, limit: mostFailuresKept, reverse: true };
    const found = await store.page<SavedFailure>(table, range);
    const oldest = this.environment.clock.now() - failuresKeptFor;
    const spaces = new Set([undefined, ...this.all().map((activity) => activity.space)]);
    const isMeant = filterOf(asked);
    const meant = found
      .map(({ value }) => value)
      .filter((item) => item.at >= oldest && spaces.has(item.space) && (isMeant?.(item) ?? true));
    const failures = meant.map(({ space: _, ...failure }) => failure);
    return pageIn(isGathered ? gathered(failures) : failures, asked);
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

  /** Saves the failures that are still in memory; waits as long as a writable store needs. */
  async flush(): Promise<void> {
    this.forgetTimer?.();
    this.forgetTimer = undefined;
    this.writing ??= this.writeAll().finally(() => {
      this.writing = undefined;
    });
    await within(systemClock, writtenWithin, this.writing);
  }

  /** One write at a time: meanwhile, the latest failures are gathered in memory. */
  private async writeAll(): Promise<void> {
    while (this.failing.length > 0) {
      const failing = this.failing;
      this.failing = [];
      // The store shows its own trouble.
      await this.writeFailures(failing).catch(() => undefined);
    }
  }

  private async writeFailures(failures: readonly SavedFailure[]): Promise<void> {
    const store = await this.environment.store();
    const { from, to } = this.failureRange;
    // Those of one list have the same time: their order is kept.
    const keyOf = ({ at }: SavedFailure, index: number): Buffer => key(from, at, index, randomBytes(6));
    await store.write(failures.map((value, index) => ({ table, put: keyOf(value, index), value })));
    const oldest = key(from, Math.max(this.environment.clock.now() - failuresKeptFor, 0));
    const [count, expired] = await Promise.all([
      store.count(table, from, to),
      store.count(table, from, oldest),
    ]);
    const tooMany = Math.max(count - mostFailuresKept, expired);
    if (tooMany <= 0) return;
    const found = await store.keys(table, { from, to, limit: tooMany });
    await store.write(found.map((remove) => ({ table, remove })));
  }

  get space(): string | undefined {
    return tried(() => this.environment.space);
  }

  private get failureRange(): { from: Buffer; to: Buffer } {
    const from = key('failure', this.environment.id);
    return { from, to: endOf(from) };
  }

  /** The activity of this environment, and of its other uses in subflows. */
  private all(): Activity[] {
    return [this, ...this.environment.otherUses().map(activityOf)];
  }

  private outboxesHere(): Activity['outboxes'] {
    return new Map(this.all().flatMap(({ outboxes }) => [...outboxes]));
  }

  private nodesHere(): ReadonlyMap<string, NodeName> {
    return new Map(Array.from(this.outboxesHere().values(), ({ node }) => [node.id, node]));
  }

  /** The parts of the store beside this process's own. */
  private async otherStores(): Promise<readonly Store[]> {
    return (await this.environment.store()).peers?.others() ?? [];
  }

  /** Readers of this process, then those of other processes and of nodes that do not run here. */
  private async readers(): Promise<Read[]> {
    const [here, names] = [this.outboxesHere(), this.nodesHere()];
    const others = (await this.otherStores()).map(async (store) => {
      const ids = await idsUnder(store, records, key('item'));
      const unattended = ids.filter((id) => !here.has(placeOf(id, store)));
      return unattended.map((id) => ({
        node: names.get(id) ?? { id, name: '' },
        reader: this.readerOf(store, id),
      }));
    });
    const own = Array.from(here.values(), ({ node, outbox: { reader } }) => ({ node, reader }));
    return [...own, ...(await Promise.all(others)).flat()];
  }

  private readerOf(store: Store, node: string): QueueReader {
    const { space } = this.environment;
    return new QueueReader(store, node, space);
  }

  /**
   * The waits in each part of the store. Uses of one subflow share them, unless they point to different services. When
   * none is configured and has its store, the first fault is thrown.
   */
  private async waitPlaces(): Promise<readonly Consent[]> {
    const places = new Map<string, Consent>();
    const faults: unknown[] = [];
    for (const { environment } of this.all())
      try {
        const own = await environment.store();
        for (const store of [own, ...(own.peers?.others() ?? [])]) {
          const place = placeOf(environment.space, store);
          if (!store.peers?.isLost && !places.has(place)) places.set(place, consentIn(environment, store));
        }
      } catch (fault) {
        faults.push(fault);
      }
    if (places.size === 0 && faults.length > 0) throw faults[0];
    return [...places.values()];
  }

  private async waitParts(phone?: string): Promise<Part<WaitItem>[]> {
    return (await this.waitPlaces()).map((waits) => ({
      count: () => waits.count(phone),
      items: (skip) => this.waitsIn(waits, phone, skip),
    }));
  }

  private async *waitsIn(waits: Consent, phone: string | undefined, skip: number): AsyncGenerator<WaitItem> {
    const nodes = this.nodesHere();
    for await (const { item, advisor, subject, start, pace, name, next } of waits.list(phone, skip))
      yield {
        id: idOf('w', item.node, item.arrival, item.index),
        node: nodes.get(item.node) ?? { id: item.node, name: '' },
        phone: 'phone' in subject ? subject.phone : null,
        ...('memberId' in subject && { memberId: subject.memberId }),
        ...(name !== undefined && { name }),
        advisor,
        since: waits.wallTime(start),
        next: nodes.has(item.node) ? waits.wallTime(next) : null,
        until: waits.wallTime(start + pace.giveUpAfter),
      };
  }

  private async queueParts(): Promise<Part<QueueItem>[]> {
    const now = this.environment.clock.now();
    return (await this.readers()).map((read) => ({
      count: () => read.reader.count(),
      items: (skip) => queuedOf(read, skip, now),
    }));
  }
}

const activities = new WeakMap<Environment, Activity>();

export const activityOf = (environment: Environment): Activity =>
  orMake(activities, environment, () => new Activity(environment));
