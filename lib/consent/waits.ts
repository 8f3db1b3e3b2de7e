import type { Clock } from '../service/clock';
import type { Client } from '../service/types';
import { arrivalId } from '../state/ids';
import { liveMessages, storable } from '../state/messages';
import type { Store, Table } from '../state/store';
import { moveIn } from './homes';
import { Owner, type Survey } from './owner';
import { lastLookTries, Polling, type Target, type Wait } from './polling';
import { isSame, Paces, recommended, type Pace } from './schedule';
import { Shelf } from './shelf';
import { Telling, type Settled } from './telling';
import { Timeline } from './timeline';
import type { Warn } from './trouble';
import { nothingKnown, type ConsentStatus, type Verdict, type WaitOutcome } from './verdict';
import * as records from './wait-records';
import type { Row, Stored, Subject } from './wait-records';

export type { Settled } from './telling';
export type { Subject } from './wait-records';

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

export interface NewWait {
  readonly advisor: string;
  readonly subject: Subject;
  /** What the node needs besides, when the wait ends. */
  readonly context?: unknown;
}

/** The waits of one node. */
export interface NodeWaits {
  /** Resolves when what was waiting before a restart or a deploy waits again. */
  readonly ready: Promise<void>;
  /**
   * The waits that one message begins. They and the message are on disk when this resolves, with the embedded store
   * already when it returns. Gives their ids, in order.
   */
  add(
    message: Record<string, unknown>,
    waits: readonly NewWait[],
    pace: Pace,
    /** What the node needs besides, for the waits of this message. */
    about?: unknown,
  ): Promise<readonly string[]>;
  /** Ends waits with `cancelled`: all, or those for a number. */
  reset(phone?: string): void;
  /** Looks now: all, or those for a number. */
  flush(phone?: string): void;
  readonly count: number;
  /** Goes through all of them: for a status, not for every message. */
  survey(): Survey;
  /** The node closes: nothing of it settles any more, and everything stays on disk. Resolves when that is in order. */
  detach(): Promise<void>;
}

const settledTogether = 100;

const cancelled = (status = nothingKnown): WaitOutcome => ({
  kind: 'not_accepted',
  reason: 'cancelled',
  status,
});

/** All waits of an environment: each belongs to a node, those for one number look together. */
export class Waits {
  private readonly table: Table<Stored>;
  private readonly timeline: Timeline;
  private readonly polling: Polling;
  private readonly targets = new Map<string, Target>();
  private readonly paces = new Paces();
  private settling: Promise<void> = Promise.resolve();

  constructor(private readonly options: WaitsOptions) {
    this.table = options.store.table('waits');
    this.timeline = new Timeline(options.clock);
    this.polling = new Polling({
      client: options.client,
      clock: options.clock,
      concurrency: options.concurrency,
      timeline: this.timeline,
      looked: (target, verdict, began) => {
        this.looked(target, verdict, began);
      },
    });
  }

  /** A node starts: its waits go on, and `tell` hears how each ends. */
  attach(node: string, tell: (settled: Settled) => Promise<boolean>): NodeWaits {
    const shelf = new Shelf(this.table, node, this.options.warn);
    const telling = new Telling(this.table, shelf, node, tell, () => owner.isClosed);
    const owner: Owner = new Owner(node, shelf, telling);
    owner.ready = this.load(owner);
    return {
      ready: owner.ready,
      add: (message, waits, pace, about) => this.add(owner, message, waits, pace, about),
      reset: (phone) => {
        for (const target of owner.targetsFor(phone))
          this.settle(target, owner.ownIn(target), cancelled(target.seen));
      },
      flush: (phone) => {
        for (const target of owner.targetsFor(phone)) this.polling.flush(target);
      },
      get count() {
        return owner.count;
      },
      survey: () => owner.survey(),
      detach: () => {
        owner.isClosed = true;
        for (const target of owner.targetsFor()) this.takeOut(target, owner.ownIn(target));
        return shelf.close();
      },
    };
  }

  /** An acceptance that any check of this environment has seen. */
  accepted(advisor: string, subject: Subject, status: ConsentStatus): void {
    const keys = [records.targetKey(advisor, subject)];
    if (status.memberId !== null) keys.push(records.targetKey(advisor, { memberId: status.memberId }));
    // A look by member id does not say the number: earlier looks at the numbers say whose they are.
    if ('memberId' in subject)
      for (const { key, seen } of this.targets.values())
        if (seen?.memberId === subject.memberId && records.partsOf(key).advisor === advisor) keys.push(key);
    for (const key of keys) {
      const target = this.targets.get(key);
      if (target) this.settle(target, target.waits, { kind: 'accepted', status });
    }
  }

  /** Resolves when everything that has ended so far was told. */
  async told(): Promise<void> {
    await this.settling;
  }

  stop(): void {
    this.polling.stop();
  }

  private async add(
    owner: Owner,
    message: Record<string, unknown>,
    waits: readonly NewWait[],
    pace: Pace,
    about: unknown,
  ): Promise<readonly string[]> {
    const { node } = owner;
    const start = this.options.clock.now();
    const messageId = arrivalId(start);
    const { copy, dropped } = storable(message);
    if (dropped) liveMessages.keep(records.messageKey(node, messageId), message);
    const count = waits.length;
    const isUsual = isSame(pace, recommended);
    const contexts = waits.map(({ context }) => context);
    const rows = waits.map(({ advisor, subject }, index): Row => {
      const usual = [
        records.waitId(messageId, index),
        advisor,
        records.asStored(subject),
        start,
        count,
      ] as const;
      return isUsual ? usual : [...usual, pace];
    });
    const put = records.messageKey(node, messageId);
    await owner.shelf.add(rows, [{ put, value: { message: copy, dropped, about, contexts } }]);
    const begun = this.timeline.now();
    const kept = this.paces.one(pace);
    for (const [id, advisor, subject] of rows) {
      owner.telling.expect(messageId, count);
      const key = records.targetKey(advisor, records.subjectIn(subject));
      this.putIn(owner, key, { id, owner, start: begun, pace: kept }, true);
    }
    return rows.map(([id]) => id);
  }

  private async load(owner: Owner): Promise<void> {
    const { clock, environment, store } = this.options;
    const now = arrivalId(clock.now());
    const ended = await owner.telling.ended();
    const move = await moveIn(store, owner.node, environment, now);
    const foreign: string[] = [];
    const again: [id: string, outcome: WaitOutcome][] = [];
    for await (const rows of owner.shelf.all()) {
      if (owner.isClosed) return;
      for (const [id, advisor, subject, start, count, pace = recommended] of rows) {
        owner.telling.expect(records.messageIdOf(id), count);
        const outcome = ended.get(id);
        if (outcome) again.push([id, outcome]);
        else if (move?.isForeign(id)) foreign.push(id);
        else {
          const wait = { id, owner, start: this.timeline.placed(start), pace: this.paces.one(pace) };
          this.putIn(owner, records.targetKey(advisor, records.subjectIn(subject)), wait, false);
        }
      }
    }
    again.sort(([one], [other]) => (one < other ? -1 : 1));
    for (const [id, outcome] of again) await owner.telling.tellOne(id, outcome);
    if (foreign.length > 0) await owner.telling.settle(foreign, cancelled());
    if (!owner.isClosed) await move?.done();
  }

  private putIn(owner: Owner, key: string, wait: Wait, isNew: boolean): void {
    if (owner.isClosed) return;
    let target = this.targets.get(key);
    if (target) {
      let place = target.waits.length;
      while (place > 0 && (target.waits[place - 1]?.id ?? '') > wait.id) place -= 1;
      target.waits.splice(place, 0, wait);
    } else {
      target = Polling.target(key, wait);
      this.targets.set(key, target);
    }
    owner.put(wait, target);
    this.polling.joined(target, wait, isNew);
  }

  private takeOut(target: Target, waits: readonly Wait[]): void {
    const gone = new Set(waits);
    target.waits = target.waits.filter((wait) => !gone.has(wait));
    for (const wait of waits) (wait.owner as Owner).takeOut(wait, target);
    if (target.waits.length > 0) return;
    this.polling.left(target);
    if (this.targets.get(target.key) === target) this.targets.delete(target.key);
  }

  private looked(target: Target, verdict: Verdict, began: number): void {
    if (verdict.kind === 'accepted') {
      const { advisor, subject } = records.partsOf(target.key);
      this.settle(target, target.waits, verdict);
      this.accepted(advisor, subject, verdict.status);
      return;
    }
    if (verdict.kind !== 'waiting') {
      this.settle(target, target.waits, verdict);
      return;
    }
    const patience = verdict.seen ? 0 : lastLookTries;
    const expired = target.waits.filter(({ start, pace }) => began - start >= pace.giveUpAfter + patience);
    const status = target.seen ?? nothingKnown;
    this.settle(target, expired, { kind: 'not_accepted', reason: 'expired', status });
  }

  /** In the order of arrival, whichever node each belongs to, and after all that ended before. */
  private settle(target: Target, waits: readonly Wait[], outcome: WaitOutcome): void {
    if (waits.length === 0) return;
    this.takeOut(target, waits);
    const runs: { readonly owner: Owner; readonly ids: string[] }[] = [];
    for (const { id, owner } of waits) {
      const last = runs.at(-1);
      if (last?.owner === owner && last.ids.length < settledTogether) last.ids.push(id);
      else runs.push({ owner: owner as Owner, ids: [id] });
    }
    for (const { owner, ids } of runs) {
      this.settling = this.settling
        .then(() => owner.ready)
        .then(() => owner.telling.settle(ids, outcome))
        .catch((fault: unknown) => {
          this.options.warn('unsettled', fault);
        });
    }
  }
}
