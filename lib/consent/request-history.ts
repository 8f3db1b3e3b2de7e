import type { Steps } from '../outbox/item';
import { Later } from '../outbox/queue';
import { orMake } from '../process-memory';
import { randomBytes } from 'node:crypto';
import type { Clock } from '../service/clock';
import { oneAtATime } from '../service/concurrency';
import { mayBeCarriedOut, ServiceError } from '../service/errors';
import { rememberedKey, sweepRemembered, table, type Remembered } from '../state/remembered';
import { asName, changeRecord, unchanged, type StoreEntry, type Store } from '../state/store';
import { day, second } from '../durations';

export interface RequestAnswer {
  readonly memberId: number | string | null;
  readonly consentState: string | null;
}

interface RequestRecord extends Remembered {
  /** When consent was last requested: for ages. */
  readonly at: number;
  /** The same by the wall clock: for display. */
  readonly shownAt: number;
  /** Names the request, so that only its own answer is noted. */
  readonly id: string;
  readonly unanswered: number;
  readonly answer: RequestAnswer;
}

/** The result of a request; `requested` is false when the service says that there is nothing to ask. */
export interface RequestReply extends RequestAnswer {
  readonly requested: boolean;
}

export interface RequestResult extends RequestAnswer {
  /** False when the number had been asked within `every`, by any node, or has already accepted. */
  readonly requested: boolean;
  /** Null when the number was never asked from here. */
  readonly requestedAt: number | null;
}

export interface RequestRules {
  /** Milliseconds; 0 means always ask. */
  readonly every: number;
  /** Requests without an acceptance; 0 means any number of them. */
  readonly limit: number;
}

/** Makes the request, and awaits these steps. */
export type MakeRequest = (steps: Required<Steps>) => Promise<RequestReply>;

/** A number that was asked as often as it may be, and has not answered. */
export class ConsentLimit extends Error {
  constructor(
    readonly count: number,
    readonly requestedAt: number | null,
  ) {
    super(`asked ${count} times without an answer`);
  }
}

/** Longer than a number may not be asked again: else no request would count against the limit. */
const keptFor = ({ every }: RequestRules): number => Math.max(30 * day, 2 * every);
/** Milliseconds by which the saved time may differ from when a request left. */
const unrecorded = second;
const noAnswer: RequestAnswer = { memberId: null, consentState: null };

/** Requests under way in this process: a second one for the same number waits until the first has ended. */
const beingAsked = new WeakMap<Store, Map<string, Promise<void>>>();

const notRepeated = ({ answer, shownAt }: RequestRecord): RequestResult => ({
  ...answer,
  requested: false,
  requestedAt: shownAt,
});

const personName = (advisor: string, phone: string): string => `${advisor}\n${phone}`;

/** When each number was last asked for its consent, so that nobody is asked again and again. */
export class RequestHistory {
  private readonly asking: Map<string, Promise<void>>;

  /** `clock` is the simulator's, or tells the store's time; `wallTime` is for display. */
  constructor(
    private readonly store: Store,
    private readonly space: string,
    private readonly clock: Clock,
    private readonly wallTime = () => clock.now(),
  ) {
    this.asking = orMake(beingAsked, store, () => new Map<string, Promise<void>>());
  }

  /** Asks, unless a request left within `every`. From `start` on, it counts unless it was certainly not carried out. */
  async ask(
    advisor: string,
    phone: string,
    rules: RequestRules,
    request: MakeRequest,
  ): Promise<RequestResult> {
    const name = personName(advisor, phone);
    const at = this.keyOf(name);
    const untilAsked = async (): Promise<RequestResult> =>
      (await this.askOnce(name, at, rules, request)) ?? untilAsked();
    try {
      return await oneAtATime(asName(at), untilAsked, this.asking);
    } finally {
      sweepRemembered(this.store).catch(() => undefined);
    }
  }

  /** The result without a request; `isDue` if `ask` would make one. Throws `ConsentLimit` as `ask` does. */
  async preview(
    advisor: string,
    phone: string,
    rules: RequestRules,
  ): Promise<RequestResult & { readonly isDue: boolean }> {
    const { last, isRecent } = this.check(await this.read(this.keyOf(personName(advisor, phone))), rules);
    const result = last ? notRepeated(last) : { ...noAnswer, requested: false, requestedAt: null };
    return { ...result, isDue: !isRecent };
  }

  /** An acceptance was seen: its number has answered. */
  accepted(advisor: string, phone: string, memberId: number | string | null): Promise<unknown> {
    return changeRecord<RequestRecord>(this.store, table, this.keyOf(personName(advisor, phone)), (known) => {
      if (!known || (known.unanswered === 0 && known.answer.consentState === 'accepted')) return known;
      const answer = { memberId: memberId ?? known.answer.memberId, consentState: 'accepted' };
      return { ...known, unanswered: 0, answer };
    });
  }

  /** Undefined when another process was quicker. */
  private async askOnce(
    name: string,
    at: Buffer,
    rules: RequestRules,
    request: MakeRequest,
  ): Promise<RequestResult | undefined> {
    const { store, clock, wallTime } = this;
    const entry = await this.read(at);
    const { last, isRecent } = this.check(entry, rules);
    if (last && isRecent) return notRepeated(last);
    const unanswered = last?.unanswered ?? 0;
    const intent = {
      id: randomBytes(9).toString('base64url'),
      time: { at: 0, shownAt: 0, until: 0 },
      isBegun: false,
      isOvertaken: false,
    };
    const timeNow = (): typeof intent.time => ({
      at: clock.now(),
      shownAt: wallTime(),
      until: store.now() + keptFor(rules),
    });
    const start = async (): Promise<void> => {
      if (intent.isBegun) return;
      intent.time = timeNow();
      const { id, time } = intent;
      const value: RequestRecord = { of: name, ...time, id, unanswered: unanswered + 1, answer: noAnswer };
      intent.isBegun = await store.write([{ table, put: at, value }], [unchanged(table, at, entry)]);
      if (intent.isBegun) return;
      intent.isOvertaken = true;
      throw new Error('another process has asked meanwhile');
    };
    /** An acceptance that was seen meanwhile stays unless it is the answer, and so does what another process has asked since. */
    const finish = (
      change: (record: RequestRecord) => RequestRecord | undefined,
      isAnswer = false,
    ): Promise<unknown> =>
      changeRecord<RequestRecord>(store, table, at, (known) => {
        const isOwn = known?.id === (intent.isBegun ? intent.id : last?.id);
        const isKept = intent.isBegun && !isAnswer && known?.answer.consentState === 'accepted';
        return known && isOwn && !isKept ? change(known) : known;
      });
    /** Time may have passed since `start`. */
    const permit = async (): Promise<undefined> => {
      const before = intent.time;
      intent.time = timeNow();
      // Written before the request leaves: after that, the process may be killed.
      if (intent.isBegun && intent.time.at - before.at > unrecorded)
        await finish((record) => ({ ...record, ...intent.time }));
    };
    const undo = async (): Promise<void> => {
      if (intent.isBegun) await finish(() => last);
      intent.isBegun = false;
    };
    try {
      const { requested, ...answer } = await request({ start, permit, undo });
      if (!requested) {
        await finish(() => last && { ...last, unanswered: 0, answer }, true);
        return { ...answer, requested, requestedAt: last?.shownAt ?? null };
      }
      const count = answer.consentState === 'accepted' ? 0 : unanswered + 1;
      await finish((record) => ({ ...record, ...intent.time, answer, unanswered: count }));
      return { ...answer, requested, requestedAt: intent.time.shownAt };
    } catch (fault) {
      if (intent.isOvertaken) return undefined;
      const isAsked = fault instanceof ServiceError ? mayBeCarriedOut(fault.code) : !(fault instanceof Later);
      if (intent.isBegun)
        await finish((record) => {
          if (!isAsked) return last;
          return record.at === intent.time.at ? record : { ...record, ...intent.time };
        });
      throw fault;
    }
  }

  /** What is known of earlier requests, and whether the last was within `every`. Throws `ConsentLimit`. */
  private check(
    entry: StoreEntry<RequestRecord> | undefined,
    rules: RequestRules,
  ): { readonly last: RequestRecord | undefined; readonly isRecent: boolean } {
    const { every, limit } = rules;
    const now = this.clock.now();
    const last = entry && now - entry.value.at < keptFor(rules) ? entry.value : undefined;
    const isRecent = last !== undefined && now - last.at < every;
    const unanswered = last?.unanswered ?? 0;
    if (!isRecent && limit > 0 && unanswered >= limit)
      throw new ConsentLimit(unanswered, last?.shownAt ?? null);
    return { last, isRecent };
  }

  /** A time ahead of now means the clock was set back: it counts from now, or the number would never be asked again. */
  private async read(at: Buffer): Promise<StoreEntry<RequestRecord> | undefined> {
    const { store, clock } = this;
    const entry = await store.get<RequestRecord>(table, at);
    if (!entry || entry.value.at <= clock.now()) return entry;
    const counted = (known?: RequestRecord) => known && { ...known, at: Math.min(known.at, clock.now()) };
    await changeRecord(store, table, at, counted);
    return store.get<RequestRecord>(table, at);
  }

  private keyOf(name: string): Buffer {
    return rememberedKey(this.store, this.space, ['asked'], name);
  }
}
