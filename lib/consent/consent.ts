import type { Clock } from '../service/clock';
import type { Client } from '../service/client';
import type { Queue } from '../outbox/queue';
import {
  after,
  indexedIn,
  indexOf,
  itemName,
  keysOf,
  records,
  timetable,
  type Indexed,
  type ItemRecord,
  type SharedRecord,
  type Subject,
} from '../outbox/records';
import { ageClock, endOf, key, nextKey, type Store, type StoreCommand } from '../state/store';
import { cancelled, type ConsentStatus, type WaitOutcome } from './consent-status';
import { Looks, waitOf, type Wait, type WaitItem, type WaitShared } from './look';
import { RequestHistory } from './request-history';

/** The parts of an environment that are used here. */
interface ConsentEnvironment {
  readonly service: string;
  readonly space: string;
  readonly clock: Clock;
  client(): Client | Promise<Client>;
  store(): Store | Promise<Store>;
  isBlocked(phone: string): Promise<boolean>;
}

type Decide = (wait: Wait) => WaitOutcome | undefined;

/** A node whose waits look, and can be ended. */
interface Waiter {
  readonly lateBy: number;
  whenSaved(): Promise<void>;
  end(waits: readonly Indexed[], decide: Decide): Promise<void>;
  changed(): void;
}

/** A wait as it is listed. */
export interface ListedWait extends Wait {
  /** Its place in the list. */
  readonly key: Buffer;
  readonly node: string;
  /** The name of its item. */
  readonly item: Buffer;
}

/** Tells other processes of an acceptance that this one has seen. */
interface AcceptedCommand extends StoreCommand {
  readonly kind: 'accepted';
  readonly advisor: string;
  readonly subject: Subject;
  readonly status: ConsentStatus;
}

export const isAcceptedCommand = (command: StoreCommand): command is AcceptedCommand =>
  command.kind === 'accepted';

/** The number of waits that end in one commit. */
const batch = 100;

/** The waits and the request history of an environment: the same for all its nodes. */
export class Consent {
  readonly looks: Looks;
  readonly history: RequestHistory;
  private readonly waiters = new Map<string, Waiter>();

  private constructor(
    private readonly environment: ConsentEnvironment,
    readonly store: Store,
    readonly clock: Clock,
  ) {
    const { space } = environment;
    this.looks = new Looks({
      store,
      space,
      clock,
      client: () => environment.client(),
      isBlocked: (phone) => environment.isBlocked(phone),
      isRunning: (node) => this.waiters.has(node),
      accepted: (...seen) => this.accepted(...seen),
      endAll: (group, decide) => this.endAll(group, decide),
      changed: () => {
        for (const waiter of this.waiters.values()) waiter.changed();
      },
    });
    this.history = new RequestHistory({
      store,
      space: key(space),
      clock,
      wallTime: () => environment.clock.now(),
    });
  }

  static async open(environment: ConsentEnvironment): Promise<Consent> {
    const store = await environment.store();
    return new Consent(environment, store, ageClock(environment, store));
  }

  /** The waits of a node can be ended from now on; the result ends that. */
  attach<I extends WaitItem, O extends WaitShared, E>(
    node: string,
    queue: Queue<I, O, E>,
    outcomeOf: (outcome: WaitOutcome, subject: Subject) => E,
    changed: () => void,
  ): () => void {
    const waiter: Waiter = {
      get lateBy() {
        return queue.lateBy;
      },
      whenSaved: () => queue.whenSaved(),
      end: (waits, decide) =>
        queue.endWaits(waits, (accepted) => {
          const wait = waitOf(accepted);
          const outcome = decide(wait);
          return outcome && outcomeOf(outcome, wait.subject);
        }),
      changed,
    };
    this.waiters.set(node, waiter);
    this.looks.started();
    return () => {
      // A node that closes late has a successor by then.
      if (this.waiters.get(node) === waiter) this.waiters.delete(node);
      if (this.waiters.size === 0) this.looks.stop();
    };
  }

  isRunning(node: string): boolean {
    return this.waiters.has(node);
  }

  /** How late looks are, in milliseconds. */
  get lateBy(): number {
    return Math.max(0, ...Array.from(this.waiters.values(), ({ lateBy }) => lateBy));
  }

  /** Called when another process has seen an acceptance. */
  async onRemoteAcceptance({ advisor, subject, status }: AcceptedCommand): Promise<void> {
    await this.accepted(advisor, subject, status, true);
  }

  /** Ends all waits for a number or member that has accepted, in this process or another; returns their outcome. */
  async accepted(
    advisor: string,
    subject: Subject,
    status: ConsentStatus,
    isFromElsewhere = false,
  ): Promise<WaitOutcome> {
    const { store, environment } = this;
    const { space } = environment;
    // A process that misses this sees the acceptance with its next look.
    if (!isFromElsewhere) this.tellOthers(advisor, subject, status).catch(() => undefined);
    const isBlocked = 'phone' in subject && (await environment.isBlocked(subject.phone));
    const outcome: WaitOutcome = isBlocked ? cancelled(status) : { kind: 'accepted', status };
    const ended = { isAny: false };
    const endAllFor = (whom: Subject): Promise<void> =>
      this.endAll(indexOf(store, 'number', space, whom, advisor), () => {
        ended.isAny = true;
        return outcome;
      });
    await endAllFor(subject);
    if (ended.isAny && 'phone' in subject)
      await this.history.accepted(advisor, subject.phone, status.memberId);
    if (!('phone' in subject)) await this.acceptedNumbers(advisor, subject, status);
    else if (status.memberId !== null) await endAllFor({ memberId: status.memberId });
    return outcome;
  }

  /** Some of the waits that there are, to be shown; `last` is the key of one that was listed before. */
  async list(
    limit: number,
    { phone, last, skip }: { phone?: string | undefined; last?: Buffer | undefined; skip?: number } = {},
  ): Promise<ListedWait[]> {
    const range = { ...after(this.prefixOf(phone), last), limit, ...(skip !== undefined && { skip }) };
    const keys = await this.store.keys(timetable, range);
    const found = await Promise.all(keys.map((each) => this.read(each)));
    return found.filter((each) => each !== undefined);
  }

  /** How many wait, or wait for one number: also those whose node has left the flow. */
  count(phone?: string): Promise<number> {
    const prefix = this.prefixOf(phone);
    return this.store.count(timetable, prefix, endOf(prefix));
  }

  private prefixOf(phone: string | undefined): Buffer {
    const { space } = this.environment;
    return indexOf(this.store, 'number', space, phone === undefined ? undefined : { phone });
  }

  /** Undefined when the wait has ended meanwhile, or cannot be read. */
  private async read(at: Buffer): Promise<ListedWait | undefined> {
    const { store } = this;
    const { node, arrival, index } = indexedIn(at);
    const { wait, list } = keysOf(node);
    const found = (await store.get<ItemRecord<WaitItem, WaitShared, unknown>>(records, wait(arrival, index)))
      ?.value;
    if (!found) return undefined;
    const { item, single, seen } = found;
    const shared = single ?? (await store.get<SharedRecord<WaitShared>>(records, list(arrival)))?.value;
    if (!shared) return undefined;
    return {
      ...waitOf({ item, shared: shared.shared, seen }),
      key: at,
      node,
      item: itemName(node, arrival, index),
    };
  }

  /** An answer about a member does not name its numbers: those are known from earlier answers about the numbers. */
  private async acceptedNumbers(advisor: string, member: Subject, status: ConsentStatus): Promise<void> {
    const { store, environment } = this;
    const prefix = indexOf(store, 'member', environment.space, member, advisor);
    for (let last: Buffer | undefined; ;) {
      const [found] = await store.keys(timetable, { ...after(prefix, last), limit: 1 });
      if (!found) return;
      last = found;
      const { node, arrival, index } = indexedIn(found);
      const record = await store.get<{ readonly item: WaitItem }>(records, keysOf(node).wait(arrival, index));
      const phone = record?.value.item.phone;
      if (phone !== undefined && this.isRunning(node)) await this.accepted(advisor, { phone }, status, true);
    }
  }

  /** Ends the waits of a group for which `decide` gives an outcome, in order of arrival. */
  private async endAll(group: Buffer, decide: Decide): Promise<void> {
    await Promise.all(Array.from(this.waiters.values(), (waiter) => waiter.whenSaved()));
    for (let from = group; ;) {
      const found = await this.store.keys(timetable, { from, to: endOf(group), limit: batch });
      let run: Indexed[] = [];
      const endRun = async (): Promise<void> => {
        const [first] = run;
        if (first) await this.waiters.get(first.node)?.end(run, decide);
        run = [];
      };
      for (const each of found.map(indexedIn)) {
        if (run[0] && run[0].node !== each.node) await endRun();
        run.push(each);
      }
      await endRun();
      const last = found.at(-1);
      if (!last || found.length < batch) return;
      from = nextKey(last);
    }
  }

  /** Tells other processes: they end their waits for the same number or member too. */
  private async tellOthers(advisor: string, subject: Subject, status: ConsentStatus): Promise<void> {
    const { memberId } = status;
    const subjects: readonly Subject[] =
      'phone' in subject && memberId !== null ? [subject, { memberId }] : [subject];
    const command: AcceptedCommand = { kind: 'accepted', at: this.store.now(), advisor, subject, status };
    await Promise.all(
      (this.store.peers?.others() ?? []).map(async (store) => {
        if (await this.hasAny(store, advisor, subjects)) await store.peers?.tellHolder(command);
      }),
    );
  }

  private async hasAny(store: Store, advisor: string, subjects: readonly Subject[]): Promise<boolean> {
    for (const subject of subjects)
      for (const kind of ['number', 'member'] as const) {
        const from = indexOf(store, kind, this.environment.space, subject, advisor);
        if ((await store.keys(timetable, { from, to: endOf(from), limit: 1 })).length > 0) return true;
      }
    return false;
  }
}

const consents = new WeakMap<ConsentEnvironment, Promise<Consent>>();

export const consentOf = (environment: ConsentEnvironment): Promise<Consent> => {
  const found = consents.get(environment);
  if (found) return found;
  const opening = Consent.open(environment);
  consents.set(environment, opening);
  opening.catch(() => consents.delete(environment));
  return opening;
};
