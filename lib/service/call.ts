import { abortOf, onAbort, wokenBy } from './concurrency';
import { elapsedBy, type Clock } from './clock';
import type { Result } from './exchange';
import type { Limits, QueuePlace } from './limits';
import { serviceError, ServiceError } from './errors';
import { assess, endAs } from './answers';
import type { Plan, Wire } from './requests';
import { decide, doubtAfter, pauseAfter } from './retry';
import type { Course, RetryBudget, Rules } from './retry';
import type { Transport } from './transport';
import type { CallOptions, ClientOptions } from './types';
import { second } from '../durations';

/** What all calls of a client share. */
export interface Shared {
  readonly transport: Transport;
  readonly limits: Limits;
  readonly budget: RetryBudget;
  readonly clock: Clock;
  readonly random: () => number;
  readonly rules: Rules;
  readonly apiKey: string;
  readonly token: ClientOptions['token'];
  /** By advisor, the token that was rejected although it had just been refreshed. */
  readonly futile: Map<string, { readonly token: string; readonly at: number }>;
  readonly closing: AbortSignal;
  readonly paused: (until: number) => void;
  readonly requested: ClientOptions['onRequest'];
}

export interface Completed {
  readonly data: unknown;
  readonly status: number;
  readonly attempts: number;
}

/**
 * Milliseconds for which a token is not refreshed again after a refresh that did not help: with a wrong API key, every
 * token is rejected.
 */
const futileFor = 30 * second;

/** The characters that a header value may have here; any other would make the request fail. */
export const headerSafe = /^[\x21-\x7e]+$/;

const released =
  (release: (() => void) | undefined) =>
  (fault: unknown): never => {
    release?.();
    throw fault;
  };

/** One call, from its first request to its outcome. */
export class Call {
  private readonly shared: Shared;
  private readonly plan: Plan;
  private readonly wire: Wire;
  private readonly options: CallOptions;
  private attempts = 0;
  private retried = 0;
  private limited = 0;
  private limitedSince = 0;
  private doubt: Course['doubt'] = 'none';
  private refreshed = false;
  private hasBegun = false;
  private rejected: string | undefined;
  private token = '';
  private hasWaited = false;

  constructor(shared: Shared, plan: Plan, wire: Wire, options: CallOptions) {
    this.shared = shared;
    this.plan = plan;
    this.wire = wire;
    this.options = options;
  }

  async run(): Promise<Completed> {
    for (;;) {
      const next = await this.attempt();
      if (typeof next !== 'number') return next;
      if (next > 0) {
        await this.undo();
        await this.sleep(next);
      }
      if (this.isStopped()) throw this.stopped();
    }
  }

  /** Takes a turn and a token, and makes one request, without waiting where that is possible. Resolves as `judge` returns. */
  private async attempt(): Promise<Completed | number> {
    const { limits, transport, clock, requested } = this.shared;
    const { signal } = this.options;
    const token = this.fetchToken();
    if (token) await token;
    // Where a turn is free, the beginning is put on record before it is taken: a turn covers the request, not the disk.
    // The clock is kept still, so that moving it does not end the token meanwhile.
    let release = limits.isOpen ? clock.keepStill?.() : undefined;
    if (limits.isOpen) await this.begin().catch(released(release));
    const entered = limits.enter(this.place());
    if (entered !== true) {
      release?.();
      release = undefined;
      if (limits.pausedUntil > 0) await this.undo();
      if (!(await entered)) throw this.stopped();
    }
    try {
      if (entered !== true) {
        const newer = this.fetchToken();
        if (newer) {
          // A refresh that takes long must not keep others from their turn: this call gives its turn up, and is the
          // next in its lane.
          newer.catch(() => undefined);
          this.hasWaited = true;
          return 0;
        }
      }
      release ??= clock.keepStill?.();
      await this.begin();
      const endAttempt = await this.permit();
      this.attempts++;
      // A request that must not happen twice is not cut: that would only make its outcome unknown.
      const sentAt = requested ? performance.now() : 0;
      const result = await transport.send(this.outgoing(), this.plan.kind === 'once' ? undefined : signal);
      release?.();
      requested?.({
        endpoint: this.plan.name,
        status: result.state === 'answered' ? result.status : result.state,
        duration: performance.now() - sentAt,
        isPoll: this.options.priority === 'poll',
      });
      endAttempt?.();
      // The answer is judged before the turn is given up: a pause must hold for the next request.
      return this.judge(result);
    } finally {
      release?.();
      limits.leave();
    }
  }

  /** Puts the request on record as begun, before it leaves. */
  private async begin(): Promise<void> {
    const { begin, signal } = this.options;
    if (this.hasBegun || begin === undefined) return;
    if (signal?.aborted === true) throw this.stopped();
    this.hasBegun = true;
    await begin();
  }

  /** A refusal of a further attempt says nothing about an earlier one, which may have been carried out. */
  private async permit(): Promise<(() => void) | undefined> {
    try {
      return await this.options.permit?.();
    } catch (fault) {
      throw this.mayBeDone() ? this.stopped() : fault;
    }
  }

  /** Puts the request on record as not begun: it was certainly not carried out, and a restart may begin it again. */
  private async undo(): Promise<void> {
    if (!this.hasBegun || this.doubt !== 'none') return;
    this.hasBegun = false;
    await this.options.undo?.();
  }

  /** The outcome, or the milliseconds until the next attempt; throws when the call has failed for good. */
  private judge(result: Result): Completed | number {
    const { apiKey, budget, clock, limits, random, rules } = this.shared;
    const assessment = assess(this.plan, this.wire.id, result, clock.now(), [this.token, apiKey]);
    const { happened, data } = assessment;
    const status = result.state === 'answered' ? result.status : 0;
    if (happened.what === 'done') {
      budget.refund();
      return { data, status, attempts: this.attempts };
    }
    if (this.isStopped() && result.state !== 'answered') {
      this.doubt = doubtAfter(this.doubt, happened);
      throw this.stopped();
    }
    if (happened.what === 'unauthorized') this.noteRejection();
    if (happened.what === 'limited' && this.limited === 0) this.limitedSince = elapsedBy(clock);
    const chance = random();
    const decision = decide(this.plan.kind, happened, rules, this.course(), budget.left, chance);
    this.doubt = doubtAfter(this.doubt, happened);
    if (happened.what === 'limited') {
      // The pause holds even if this call has used up its hour of pauses: the next request would get a 429 too.
      const ms = pauseAfter(happened.retryAfter, this.limited, chance);
      limits.pause(ms);
      this.shared.paused(clock.now() + ms);
    }
    switch (decision.do) {
      case 'succeed':
        return { data, status, attempts: this.attempts };
      case 'fail':
        throw endAs(decision.as, assessment, this.attempts);
      case 'refresh':
        this.refreshed = true;
        this.rejected = this.token;
        return 0;
      case 'pause':
        this.limited++;
        return 0;
      case 'repeat':
        this.retried++;
        budget.spend();
        return decision.ms;
    }
  }

  /** Returns a promise only when the source has no token at hand. */
  private fetchToken(): Promise<void> | undefined {
    const accept = (token: string): void => {
      if (!headerSafe.test(token)) throw serviceError('authorization_required', 'token_unusable');
      this.token = token;
      this.rejected = undefined;
    };
    try {
      const token = this.shared.token(this.options.advisor, this.rejected);
      if (typeof token === 'string') accept(token);
      else
        return this.unlessStopped(token)
          .then(accept)
          .catch((error: unknown) => this.tokenless(error));
      return undefined;
    } catch (error) {
      return this.tokenless(error);
    }
  }

  /** Ends the wait when the call is stopped: a token may take long when the token endpoint pauses. */
  private async unlessStopped(token: Promise<string>): Promise<string> {
    const { closing } = this.shared;
    const { signal } = this.options;
    // Once the call is stopped, nobody awaits the token: its rejection must not count as unhandled.
    token.catch(() => undefined);
    if (this.isStopped()) throw this.stopped();
    const forgets: (() => void)[] = [];
    const stop = new Promise<never>((_, reject) => {
      for (const each of signal ? [closing, signal] : [closing])
        forgets.push(
          onAbort(each, () => {
            reject(this.stopped());
          }),
        );
    });
    try {
      return await Promise.race([token, stop]);
    } finally {
      for (const forget of forgets) forget();
    }
  }

  private tokenless(error: unknown): never {
    if (this.attempts === 0 || !(error instanceof ServiceError)) throw error;
    if (this.mayBeDone()) throw this.stopped();
    throw new ServiceError({ ...error.problem, attempts: this.attempts }, { cause: error.cause });
  }

  private outgoing() {
    const { path, body } = this.wire;
    const headers = ['authorization', `Bearer ${this.token}`, 'x-api-key', this.shared.apiKey];
    if (body !== null) headers.push('content-type', 'application/json');
    return { method: this.plan.method, path, headers, body };
  }

  private place(): QueuePlace {
    const { advisor, lane = advisor, priority = 'normal', signal } = this.options;
    return { lane, priority, front: this.attempts > 0 || this.hasWaited, signal };
  }

  /** A token that was rejected right after a refresh is not refreshed again, neither by this call nor by the next. */
  private noteRejection(): void {
    const { clock, futile } = this.shared;
    const { advisor } = this.options;
    const now = clock.now();
    if (this.refreshed) futile.set(advisor, { token: this.token, at: now });
    const last = futile.get(advisor);
    const age = last?.token === this.token ? now - last.at : -1;
    if (age >= 0 && age < futileFor) this.refreshed = true;
  }

  private course(): Course {
    return {
      retried: this.retried,
      refreshed: this.refreshed,
      limited: this.limited,
      limitedFor: this.limited === 0 ? 0 : elapsedBy(this.shared.clock) - this.limitedSince,
      doubt: this.doubt,
    };
  }

  /** Resolves early when the call is cancelled or the client closes. */
  private sleep(ms: number): Promise<void> {
    const { clock, closing } = this.shared;
    const { signal } = this.options;
    if (this.isStopped()) return Promise.resolve();
    return wokenBy((wake) => clock.after(ms, wake), ...[closing, ...(signal ? [signal] : [])].map(abortOf));
  }

  private isStopped(): boolean {
    return this.shared.closing.aborted || this.options.signal?.aborted === true;
  }

  private mayBeDone(): boolean {
    return this.doubt !== 'none' && this.plan.kind !== 'read';
  }

  /** `cancelled`, unless an earlier attempt may have been carried out. */
  private stopped(): ServiceError {
    const attempts = this.attempts;
    if (this.mayBeDone())
      return serviceError(
        'outcome_unknown',
        'outcome_unknown',
        { reason: { reason: 'cancelled' } },
        { attempts },
      );
    return serviceError('cancelled', 'abandoned', {}, { attempts });
  }
}
