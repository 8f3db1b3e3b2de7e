import type { Clock } from '../service/clock';
import type { Client } from '../service/types';
import { arrivalId } from '../state/ids';
import { liveMessages, storable } from '../state/messages';
import type { Store, Table } from '../state/store';
import { Book, type Begun, type Target, type Wait } from './book';
import { Ends } from './ends';
import { moveIn } from './homes';
import type { NewWait, NodeWaits } from './node-waits';
import { Owner } from './owner';
import { lastLookTries, Polling } from './polling';
import { isSame, recommended, type Pace } from './schedule';
import { Shelf, type Entry } from './shelf';
import { asStored, subjectIn, type StoredSubject, type Subject } from './subjects';
import { Telling, type Ended, type Tell } from './telling';
import { Timeline } from './timeline';
import type { Warn } from './trouble';
import { cancelled, nothingKnown, type ConsentStatus, type Verdict, type WaitOutcome } from './verdict';
import * as records from './wait-records';
import type { Stored } from './wait-records';

export type { NewWait, NodeWaits } from './node-waits';
export type { Settled } from './telling';
export type { Subject } from './subjects';

export interface WaitsOptions {
  /** The id of the environment these waits look in. */
  readonly environment: string;
  readonly store: Store;
  readonly client: () => Client | Promise<Client>;
  readonly clock: Clock;
  /** Looks under way at once. */
  readonly concurrency: number;
  readonly warn: Warn;
}

/** To put more outcomes than these on disk at once would keep Node-RED from all else for longer than 0.1 s. */
const notedAtOnce = 1000;

/** All waits of an environment: each belongs to a node, those for one number look together. */
export class Waits {
  private readonly table: Table<Stored>;
  private readonly timeline: Timeline;
  private readonly polling: Polling;
  private readonly book = new Book();
  /** By the number their waits know them by. */
  private readonly owners = new Map<number, Owner>();
  private attached = 0;
  private readonly ends: Ends;

  constructor(private readonly options: WaitsOptions) {
    this.table = options.store.table('waits');
    this.timeline = new Timeline(options.clock);
    this.ends = new Ends(options.clock, (owner, ended) => this.tell(owner, ended));
    this.polling = new Polling({
      book: this.book,
      client: options.client,
      clock: options.clock,
      concurrency: options.concurrency,
      timeline: this.timeline,
      looked: (target, verdict, began) => {
        this.looked(target, verdict, began);
      },
      outageChanged: () => {
        for (const { changed } of this.owners.values()) changed();
      },
    });
  }

  /** A node starts: its waits go on, `tell` hears how each ends, and `changed` when an outage begins or ends. */
  attach(node: string, tell: Tell, changed = (): void => undefined): NodeWaits {
    const { book, table } = this;
    const shelf = new Shelf(table, book, node, this.options.warn);
    const telling = new Telling(table, book, shelf, node, tell, () => owner.isClosed);
    const owner: Owner = new Owner(node, this.attached++, book, shelf, telling, changed);
    this.owners.set(owner.number, owner);
    owner.ready = this.working(owner, () => owner.bringing((isEnded) => this.load(owner, isEnded)));
    return {
      ready: owner.ready,
      add: (message, waits, pace, about) =>
        this.working(owner, () =>
          owner.bringing((isEnded) => this.add(owner, message, waits, pace, about, isEnded)),
        ),
      reset: (phone) => {
        owner.endComing(phone);
        this.cancel(owner, owner.targetsFor(phone));
      },
      flush: (phone) => {
        const flush = (): void => {
          for (const target of owner.targetsFor(phone)) this.polling.flush(target);
        };
        flush();
        if (owner.isReading) owner.ready.then(flush, () => undefined);
      },
      get count() {
        return owner.count;
      },
      survey: () => owner.survey((target) => this.polling.nextOf(target), this.polling.outage),
      detach: () => {
        this.begin(owner);
        owner.isClosed = true;
        for (const target of owner.targetsFor()) this.takeOut(target, owner.ownIn(target));
        this.owners.delete(owner.number);
        // On record, so that the next node of this id tells them.
        const noted = this.tell(owner, this.ends.leave(owner)).then(() => {
          this.end(owner);
        });
        return Promise.all([noted, shelf.close()]).then(() => undefined);
      },
    };
  }

  /** An acceptance that any check of this environment has seen. */
  accepted(advisor: string, subject: Subject, status: ConsentStatus): void {
    const { book } = this;
    const targets = new Set([book.find(advisor, asStored(subject))]);
    if (status.memberId !== null) targets.add(book.find(advisor, status.memberId));
    // A look by member id does not say the number: earlier looks at the numbers say whose they are.
    if ('memberId' in subject) for (const each of book.seenAs(advisor, subject.memberId)) targets.add(each);
    for (const target of targets)
      if (target !== undefined) this.settle(target, book.waitsIn(target), { kind: 'accepted', status });
  }

  /** Resolves when nothing that has ended is left to be told, but for what is tried again later. */
  told(): Promise<void> {
    return this.ends.told();
  }

  stop(): void {
    this.polling.stop();
    this.ends.stop();
  }

  private async add(
    owner: Owner,
    message: Record<string, unknown>,
    waits: readonly NewWait[],
    pace: Pace,
    about: unknown,
    isEnded: (subject: StoredSubject) => boolean,
  ): Promise<readonly string[]> {
    const { node } = owner;
    const start = this.options.clock.now();
    const messageId = arrivalId(start);
    const { copy, dropped } = storable(message);
    if (dropped) liveMessages.keep(records.messageKey(node, messageId), message);
    const count = waits.length;
    const isUsual = isSame(pace, recommended);
    const contexts = waits.map(({ context }) => context);
    const entries = waits.map(({ advisor, subject }, index): Entry => {
      const id = records.waitId(messageId, index);
      const usual = [id, advisor, asStored(subject), start, count] as const;
      return [this.book.enter(owner.number, messageId, index), isUsual ? usual : [...usual, pace]];
    });
    const put = records.messageKey(node, messageId);
    try {
      await owner.shelf.add(entries, [{ put, value: { message: copy, dropped, about, contexts } }]);
    } catch (fault) {
      for (const [wait] of entries) this.book.strike(wait);
      throw fault;
    }
    const begun = this.timeline.now();
    for (const [wait, [, advisor, subject]] of entries) {
      owner.telling.expect(messageId, count);
      this.putIn(owner, wait, { advisor, subject, start: begun, pace }, true);
    }
    const ended = new Set(entries.flatMap(([, [id, , subject]]) => (isEnded(subject) ? [id] : [])));
    // A turn later, when whoever began them knows them.
    if (ended.size > 0) {
      this.begin(owner);
      setImmediate(() => {
        const isMeant = (wait: Wait): boolean => ended.has(this.book.idOf(wait));
        if (!owner.isClosed) this.cancel(owner, owner.targetsFor(), isMeant);
        this.end(owner);
      });
    }
    return entries.map(([, [id]]) => id);
  }

  private async load(owner: Owner, isEnded: (subject: StoredSubject) => boolean): Promise<void> {
    const { clock, environment, store } = this.options;
    const now = arrivalId(clock.now());
    const ended = await owner.telling.ended();
    const move = await moveIn(store, owner.node, environment, now);
    const cancels: Wait[] = [];
    const again: (readonly [id: string, wait: Wait, outcome: WaitOutcome])[] = [];
    const isComplete = await owner.shelf.read(
      ({ message, advisor, start, count, pace = recommended }, index, subject) => {
        owner.telling.expect(message, count);
        const wait = this.book.enter(owner.number, message, index);
        const id = records.waitId(message, index);
        const outcome = ended.get(id);
        if (outcome) again.push([id, wait, outcome]);
        else if (move?.isForeign(id) || isEnded(subject)) cancels.push(wait);
        else this.putIn(owner, wait, { advisor, subject, start: this.timeline.placed(start), pace }, false);
        return wait;
      },
    );
    owner.isReading = false;
    if (!isComplete) return;
    again.sort(([one], [other]) => (one < other ? -1 : 1));
    for (const [, wait, outcome] of again) await owner.telling.tellOne(wait, outcome);
    await owner.telling.settle(cancels.map((wait) => [wait, cancelled()]));
    if (!owner.isClosed) await move?.done();
  }

  /** On disk at once unless they are very many, for the process may be killed before they are told. */
  private cancel(owner: Owner, targets: ReadonlySet<Target>, isMeant = (_wait: Wait): boolean => true): void {
    const ends = [...targets].map(
      (target) => [target, owner.ownIn(target).filter(isMeant), cancelled(this.book.seenOf(target))] as const,
    );
    if (ends.reduce((sum, [, waits]) => sum + waits.length, 0) <= notedAtOnce) {
      const notes = ends.flatMap(([, waits, outcome]) => waits.map((wait) => [wait, outcome] as const));
      // What cannot be written now is tried again when it is told.
      owner.telling.note(notes).catch(() => undefined);
    }
    for (const [target, waits, outcome] of ends) this.settle(target, waits, outcome);
  }

  private putIn(owner: Owner, wait: Wait, begun: Begun, isNew: boolean): void {
    if (owner.isClosed) return;
    const target = this.book.putIn(wait, begun);
    owner.put(wait);
    this.polling.joined(target, wait, isNew);
  }

  private takeOut(target: Target, waits: readonly Wait[]): void {
    for (const wait of waits) {
      this.owners.get(this.book.ownerOf(wait))?.takeOut(wait);
      this.book.takeOut(wait);
    }
    if (!this.book.isEmpty(target)) return;
    this.polling.left(target);
    this.book.close(target);
  }

  private looked(target: Target, verdict: Verdict, began: number): void {
    const { book } = this;
    const waits = book.waitsIn(target);
    if (verdict.kind === 'accepted') {
      this.settle(target, waits, verdict);
      this.accepted(book.advisorOf(target), subjectIn(book.subjectOf(target)), verdict.status);
      return;
    }
    if (verdict.kind !== 'waiting') {
      this.settle(target, waits, verdict);
      return;
    }
    const patience = verdict.seen ? 0 : lastLookTries;
    const expired = waits.filter(
      (wait) => began - book.startOf(wait) >= book.paceOf(wait).giveUpAfter + patience,
    );
    const status = book.seenOf(target) ?? nothingKnown;
    this.settle(target, expired, { kind: 'not_accepted', reason: 'expired', status });
  }

  /** In the order of arrival, whichever node each belongs to, and after all that ended before. */
  private settle(target: Target, waits: readonly Wait[], outcome: WaitOutcome): void {
    for (const wait of waits) {
      const owner = this.owners.get(this.book.ownerOf(wait));
      if (!owner) continue;
      this.begin(owner);
      this.ends.add(owner, wait, outcome);
    }
    if (waits.length > 0) this.takeOut(target, waits);
  }

  private async tell(owner: Owner, ended: readonly Ended[]): Promise<void> {
    let reached = 0;
    try {
      await owner.telling.settle(ended, () => (reached += 1));
    } catch (fault) {
      if (!this.ends.isLate(owner)) this.options.warn('unsettled', fault);
    }
    const left = owner.isClosed ? [] : ended.slice(reached);
    if (left.length > 0) this.ends.tryAgain(owner, left);
    for (let done = ended.length - left.length; done > 0; done--) this.end(owner);
  }

  private async working<T>(owner: Owner, work: () => Promise<T>): Promise<T> {
    this.begin(owner);
    try {
      return await work();
    } finally {
      this.end(owner);
    }
  }

  /** Whoever works for an owner knows its waits by their places in the book: so long, no other gets them. */
  private begin(owner: Owner): void {
    owner.busy += 1;
  }

  /** Of an owner that has closed nothing is told any more; what waits is on disk. */
  private end(owner: Owner): void {
    owner.busy -= 1;
    if (owner.isClosed && owner.busy === 0) this.book.strikeAllOf(owner.number);
  }
}
