import type { Clock } from '../service/clock';
import type { Id } from '../service/endpoints';
import { ServiceError } from '../service/problems';
import type { Store, Table } from '../state/store';

export interface AskedAnswer {
  readonly memberId: Id | null;
  readonly consentState: string | null;
}

interface AskedRecord {
  /** When consent was last requested. */
  readonly at: number;
  readonly unanswered: number;
  readonly answer: AskedAnswer;
}

/** What a request came to; `requested` is false when the service says there is nothing to ask. */
export interface Reply extends AskedAnswer {
  readonly requested: boolean;
}

export interface AskedResult extends AskedAnswer {
  /** False when the number had been asked within `every`, by whichever node, or has accepted already. */
  readonly requested: boolean;
  /** Null when it was never asked from here. */
  readonly requestedAt: number | null;
}

export interface AskingRules {
  /** Milliseconds; 0 means always ask. */
  readonly every: number;
  /** Requests without an acceptance; 0 means any number of them. */
  readonly limit: number;
}

export interface AskedOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** The environment's id. */
  readonly environment: string;
}

/** A number that was asked as often as it may be, and has not answered. */
export class ConsentLimit extends Error {
  constructor(readonly count: number) {
    super(`asked ${count} times without an answer`);
  }
}

const day = 24 * 3600 * 1000;
const keptFor = 30 * day;
const noAnswer: AskedAnswer = { memberId: null, consentState: null };

/** Across nodes and deploys: who asks a number that is being asked waits for how that ends. */
const beingAsked = new Map<string, Promise<unknown>>();

/** Failures after which the request may have reached the person. */
const mayHaveAsked = new Set(['outcome_unknown', 'invalid_response']);

/** When each number was last asked for its consent, so that nobody is asked again and again. */
export class Asked {
  private readonly table: Table<AskedRecord>;
  private sweptAt = -Infinity;

  constructor(private readonly options: AskedOptions) {
    this.table = options.store.table('asked');
  }

  /**
   * Asks, unless that was done within `every`. `request` is given what must be awaited before its request leaves: from
   * then on the number counts as asked, unless it is certain that nothing came of it.
   */
  async ask(
    advisor: string,
    phone: string,
    rules: AskingRules,
    request: (begin: () => Promise<void>) => Promise<Reply>,
  ): Promise<AskedResult> {
    const key = this.keyOf(advisor, phone);
    for (let other = beingAsked.get(key); other; other = beingAsked.get(key)) await other;
    const asking = this.askAlone(key, rules, request);
    const settled = asking.then(
      () => undefined,
      () => undefined,
    );
    beingAsked.set(key, settled);
    try {
      return await asking;
    } finally {
      beingAsked.delete(key);
      void this.sweep();
    }
  }

  /** An acceptance was seen: its number has answered. */
  async accepted(advisor: string, phone: string, memberId: Id | null): Promise<void> {
    const key = this.keyOf(advisor, phone);
    const known = await this.table.get(key);
    if (!known || (known.unanswered === 0 && known.answer.consentState === 'accepted')) return;
    const answer = { memberId: memberId ?? known.answer.memberId, consentState: 'accepted' };
    await this.table.write([{ put: key, value: { ...known, unanswered: 0, answer } }]);
  }

  private async askAlone(
    key: string,
    { every, limit }: AskingRules,
    request: (begin: () => Promise<void>) => Promise<Reply>,
  ): Promise<AskedResult> {
    const now = this.options.clock.now();
    const found = await this.table.get(key);
    const last = found && now - found.at < keptFor ? found : undefined;
    // A clock that was set back makes the last request one of the future: that counts as just now.
    if (last && now - last.at < every) return { ...last.answer, requested: false, requestedAt: last.at };
    const unanswered = last?.unanswered ?? 0;
    if (limit > 0 && unanswered >= limit) throw new ConsentLimit(unanswered);
    let at = now;
    const keep = (answer: AskedAnswer, count: number): Promise<void> =>
      this.table.write([{ put: key, value: { at, unanswered: count, answer } }]);
    const restore = (value: AskedRecord | undefined): Promise<void> =>
      this.table.write([value ? { put: key, value } : { remove: key }]);
    try {
      const { requested, ...answer } = await request(async () => {
        at = this.options.clock.now();
        await keep(noAnswer, unanswered + 1);
      });
      if (!requested) {
        await restore(last && { ...last, unanswered: 0, answer });
        return { ...answer, requested, requestedAt: last?.at ?? null };
      }
      await keep(answer, answer.consentState === 'accepted' ? 0 : unanswered + 1);
      return { ...answer, requested, requestedAt: at };
    } catch (fault) {
      const isAsked = !(fault instanceof ServiceError) || mayHaveAsked.has(fault.code);
      if (!isAsked) await restore(last);
      throw fault;
    }
  }

  private keyOf(advisor: string, phone: string): string {
    return `${this.options.environment}/${this.options.store.hash(`${advisor}\n${phone}`)}`;
  }

  private async sweep(): Promise<void> {
    const now = this.options.clock.now();
    if (now - this.sweptAt < day) return;
    this.sweptAt = now;
    for await (const [key, { at }] of this.table.entries(`${this.options.environment}/`)) {
      if (now - at >= keptFor) await this.table.writeSoon([{ remove: key }]);
    }
  }
}
