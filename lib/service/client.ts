import { second } from '../durations';
import { closeLimit, elapsedBy, late, systemClock, within, type Clock } from './clock';
import { wokenBy, type Waker } from './concurrency';
import { endpoints, type EndpointName, type RequestOf, type ResponseOf } from './endpoints';
import { serviceError, ServiceError } from './errors';
import { Limits, RetryBudget } from './limits';
import type { Prefixes } from './prefixes';
import { doubtAfter, pauseAfter, Retries, type RepeatSends } from './retry';
import { connectLimit, createTransport, trustedBase, type Result } from './transport';
import { assess, endAs, planEndpoint, type EndpointRequest, type Names, type Plan, type Wire } from './wire';

export interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /**
   * The access token of an advisor. `rejected` is a token that the service has just answered with a 401: the source
   * then refreshes it (once, however many ask) and gives a newer one. Returns a plain string when a token is at hand,
   * so that the common case costs no tick of the event loop. Throws ServiceError `authorization_required` and the like.
   */
  readonly token: (advisor: string, rejected?: string) => string | Promise<string>;
  /** The service's own words for the contract's `core` and `text`. */
  readonly prefixes?: Prefixes;
  /** Names of query parameters that differ from ours; `contacts.page` is for one search alone. */
  readonly names?: Names;
  /** The HTTP proxy to use; empty means that of the process's variables. */
  readonly proxy?: string;
  /** Milliseconds for a whole request; 30 seconds by default. */
  readonly timeout?: number;
  readonly retries?: number;
  readonly repeatSends?: RepeatSends;
  readonly maxConcurrent?: number;
  readonly requestsPerSecond?: number;
  /** Where several processes share the limits: how many of `most` requests at once this one may make. */
  readonly share?: (most: number) => number;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** Called when a request has ended, with or without an answer; `duration` is in milliseconds. */
  readonly onRequest?: (about: {
    readonly endpoint: EndpointName;
    /** The status of the answer; `unreached` when there was no connection, `broken` when there was no complete answer. */
    readonly status: number | 'unreached' | 'broken';
    readonly duration: number;
    readonly isPoll: boolean;
  }) => void;
  /** Called when a 429 makes all requests pause, with the time until then. */
  readonly onPause?: (until: number) => void;
}

export interface CallOptions {
  readonly advisor: string;
  /** Requests of one lane (a node) are served in order, and lanes in turn, so that a list of 10,000 starves nobody. */
  readonly lane?: string;
  /** A `poll` is made only when no `normal` request waits. */
  readonly priority?: 'normal' | 'poll';
  /**
   * Cancels requests that have not started or wait for a retry; a send, consent request or create in progress finishes
   * first.
   */
  readonly signal?: AbortSignal;
  /** Called when the request has its token; it leaves after this resolves. */
  readonly begin?: () => void | Promise<void>;
  /** Called before each attempt, which awaits it; the result is called after the attempt. A throw ends the call. */
  readonly permit?: (() => Promise<() => void>) | undefined;
  /** Called when a request that was started was certainly not carried out and is delayed; `begin` is then called again. */
  readonly undo?: () => void | Promise<void>;
}

interface Completed<T = unknown> {
  readonly data: T;
  readonly status: number;
  readonly attempts: number;
}

export type Answer<N extends EndpointName> = Completed<ResponseOf<N>>;

/** The service, for all code above lib/service. Every failure is a ServiceError. */
export type Client = ReturnType<typeof createClient>;

/** Milliseconds for which a saved start waits for a turn: a pause, or a service that hangs, takes longer. */
const startKeptFor = second;

/** A wrong API key rejects every token: after so many refreshes in a row that did not help, each has to wait. */
const mostFutile = 2;
const futileFor = 30 * second;

/** The characters that a header value may have here; any other would make the request fail. */
const headerSafe = /^[\x21-\x7e]+$/;

export const requestDefaults = {
  timeout: 30 * second,
  retries: 4,
  maxConcurrent: 16,
  requestsPerSecond: 0,
} as const;

/** The way to a service, for calls and for the reads of a check. Throws as `createClient` does. */
export const wayTo = (options: Omit<ClientOptions, 'token'>) => {
  const { timeout, retries, maxConcurrent, requestsPerSecond } = { ...requestDefaults, ...options };
  const base = trustedBase(options.baseUrl, 'baseUrl');
  if (!headerSafe.test(options.apiKey)) throw serviceError('not_configured', 'key_missing');
  const clock = options.clock ?? systemClock;
  return {
    transport: createTransport({ base, timeout, connections: maxConcurrent, proxy: options.proxy }),
    limits: new Limits(clock, maxConcurrent, requestsPerSecond, options.share),
    budget: new RetryBudget(),
    clock,
    random: options.random ?? Math.random,
    rules: { retries, repeatSends: options.repeatSends ?? 'contract' },
  };
};

/** What all calls of a client share. */
const sharedBy = (options: ClientOptions, closing: AbortSignal) => ({
  ...options,
  ...wayTo(options),
  /** By advisor, the token that was rejected although it had just been refreshed, and how many in a row were. */
  futile: new Map<string, { readonly token: string; readonly at: number; readonly count: number }>(),
  closing,
});

export type Shared = ReturnType<typeof sharedBy>;

export class Call {
  private attempts = 0;
  private troubled: Retries | undefined;
  /** The latest failure that the service itself has reported. */
  private reported: ServiceError | undefined;
  private hasBegun = false;
  private rejected: string | undefined;
  private token = '';
  private hasWaited = false;

  constructor(
    private readonly shared: Shared,
    private readonly plan: Plan,
    private readonly wire: Wire,
    private readonly options: CallOptions,
  ) {}

  private get retries(): Retries {
    const { clock, random, budget } = this.shared;
    return (this.troubled ??= new Retries(clock, random, budget));
  }

  async run(): Promise<Completed> {
    for (;;) {
      const next = await this.attempt();
      if (typeof next !== 'number') return next;
      if (next > 0) {
        await this.undo();
        await this.until((wake) => this.shared.clock.after(next, wake));
      }
      this.endIfStopped();
    }
  }

  /** Takes a turn and a token, and makes one request, without waiting where that is possible. Resolves as `check` returns. */
  private async attempt(): Promise<Completed | number> {
    const { limits, transport, clock, onRequest } = this.shared;
    const { advisor, lane = advisor, priority = 'normal', signal } = this.options;
    await this.takeToken(true);
    let release: (() => void) | undefined;
    let endAttempt: (() => void) | undefined;
    let hasTurn = false;
    try {
      // Where a turn is free, the start is saved before it is taken: a turn covers the request, not the disk.
      // The clock is kept still, so that moving it does not end the token meanwhile.
      if (limits.isOpen) {
        release = clock.keepStill?.();
        if (!this.hasBegun) await this.begin();
      }
      const front = this.attempts > 0 || this.hasWaited;
      const entered = limits.enter({ lane, priority, front, signal });
      if (entered !== true) {
        release?.();
        release = undefined;
        const undone = this.undoWhenLate(Promise.resolve(entered));
        undone.catch(() => undefined);
        hasTurn = await entered;
        await undone;
        if (!hasTurn) throw this.stopped();
      }
      hasTurn = true;
      // A refresh that takes long must not keep others from their turn: this call gives its turn up, and is the next in
      // its lane.
      if (entered !== true && !(await this.takeToken(false))) {
        this.hasWaited = true;
        return 0;
      }
      release ??= clock.keepStill?.();
      if (!this.hasBegun) await this.begin();
      // The process, or the way to its store, may stand still from here on: others then do not wait for this request.
      const leaveBy = Date.now() + connectLimit;
      if (this.options.permit) endAttempt = await this.permit(this.options.permit);
      this.attempts++;
      // A request that must not happen twice is not cut: that would only make its outcome unknown.
      const sentAt = onRequest ? performance.now() : 0;
      const outgoing = { ...this.wire.outgoing, token: this.token, apiKey: this.shared.apiKey, leaveBy };
      const result = await transport.send(outgoing, this.plan.kind === 'once' ? undefined : signal);
      release?.();
      onRequest?.({
        endpoint: this.plan.name,
        status: result.state === 'answered' ? result.status : result.state,
        duration: performance.now() - sentAt,
        isPoll: priority === 'poll',
      });
      // The answer is evaluated before the turn is given up: a pause must apply to the next request.
      return this.check(result);
    } finally {
      endAttempt?.();
      release?.();
      if (hasTurn) limits.leave();
    }
  }

  private async begin(): Promise<void> {
    const { begin, signal } = this.options;
    if (signal?.aborted === true) throw this.stopped();
    this.hasBegun = true;
    await begin?.();
  }

  /** A refusal of a further attempt says nothing about an earlier one, which may have been carried out. */
  private async permit(permit: NonNullable<CallOptions['permit']>): Promise<() => void> {
    try {
      return await permit();
    } catch (fault) {
      throw this.mayBeDone() ? this.stopped() : fault;
    }
  }

  /**
   * A request whose start was saved while it waits for its turn was not sent: after a crash it must not count as one
   * that was.
   */
  private async undoWhenLate(turn: Promise<boolean>): Promise<void> {
    const { clock, limits } = this.shared;
    if (!this.hasBegun || !this.options.undo) return;
    if (limits.pausedUntil > 0 || (await within(clock, startKeptFor, turn)) === late) await this.undo();
  }

  /** Saves the request as not started: it was certainly not carried out, and may be started again after a restart. */
  private async undo(): Promise<void> {
    if (!this.hasBegun || this.retries.doubt !== 'none') return;
    this.hasBegun = false;
    await this.options.undo?.();
  }

  /** The outcome, or the milliseconds until the next attempt; throws when the call has failed for good. */
  private check(result: Result): Completed | number {
    const { apiKey, budget, clock, limits, random, rules } = this.shared;
    const assessment = assess(this.plan, this.wire.id, result, clock, [this.token, apiKey]);
    const { happened, data } = assessment;
    const status = result.state === 'answered' ? result.status : 0;
    if (happened.what === 'done') {
      budget.refund();
      this.shared.futile.delete(this.options.advisor);
      return { data, status, attempts: this.attempts };
    }
    const { retries } = this;
    if (this.isStopped() && result.state !== 'answered') {
      retries.doubt = doubtAfter(retries.doubt, happened);
      throw this.stopped();
    }
    if (happened.what === 'unauthorized') this.noteRejection();
    const decision = retries.after(this.plan.kind, happened, rules);
    if (happened.what === 'limited') {
      // The pause holds even if this call has used up its hour of pauses: the next request would get a 429 too.
      const ms =
        decision.do === 'pause' ? decision.ms : pauseAfter(happened.retryAfter, retries.limited, random());
      limits.pause(ms);
      this.shared.onPause?.(clock.now() + ms);
    }
    switch (decision.do) {
      case 'succeed':
        return { data, status, attempts: this.attempts };
      case 'fail':
        throw endAs(decision.as, assessment, this.attempts);
      case 'refresh':
        this.rejected = this.token;
        return 0;
      case 'pause':
        return 0;
      case 'repeat':
        this.reported = assessment.failure ?? this.reported;
        return decision.ms;
    }
  }

  /** False when there is no token at hand, unless the call may wait for one: that may take long when the endpoint pauses. */
  private async takeToken(mayWait: boolean): Promise<boolean> {
    try {
      const coming = this.shared.token(this.options.advisor, this.rejected);
      if (typeof coming !== 'string') {
        // Where nobody awaits the token, its rejection must not count as unhandled.
        coming.catch(() => undefined);
        if (!mayWait) return false;
        await this.until(coming);
        this.endIfStopped();
      }
      const token = await coming;
      if (!headerSafe.test(token)) throw serviceError('authorization_required', 'token_unusable');
      this.token = token;
      this.rejected = undefined;
      return true;
    } catch (fault) {
      if (this.attempts === 0 || !(fault instanceof ServiceError)) throw fault;
      throw this.mayBeDone() ? this.stopped() : fault.after(this.attempts);
    }
  }

  /** Where refreshes do not help, the token is not refreshed for this call, nor for the next ones. */
  private noteRejection(): void {
    const { clock, futile } = this.shared;
    const { advisor } = this.options;
    const now = elapsedBy(clock);
    const last = futile.get(advisor);
    if (this.retries.refreshed) {
      const count = last ? last.count + Number(last.token !== this.token) : 1;
      futile.set(advisor, { token: this.token, at: now, count });
    } else if (last?.token === this.token && last.count >= mostFutile && now - last.at < futileFor)
      this.retries.refreshed = true;
  }

  /** Resolves early when the call is cancelled or the client closes. */
  private async until(waker: Waker): Promise<void> {
    if (this.isStopped()) return;
    const { signal } = this.options;
    await wokenBy(waker, this.shared.closing, ...(signal ? [signal] : []));
  }

  private endIfStopped(): void {
    if (this.isStopped()) throw this.stopped();
  }

  private isStopped(): boolean {
    return this.shared.closing.aborted || this.options.signal?.aborted === true;
  }

  private mayBeDone(): boolean {
    return this.retries.doubt !== 'none' && this.plan.kind !== 'read';
  }

  /** `cancelled`, unless an earlier attempt may have been carried out: then its failure, if the service reported one. */
  private stopped(): ServiceError {
    const { attempts, reported, retries } = this;
    if (!this.mayBeDone()) return serviceError('cancelled', 'abandoned', {}, { attempts });
    // Whoever has stopped it does not want it retried.
    if (reported && retries.doubt === 'problem')
      return new ServiceError({ ...reported.problem, attempts, retryable: false }, { hasProblemBody: true });
    const reason = { reason: 'cancelled' } as const;
    return serviceError('outcome_unknown', 'outcome_unknown', { reason }, { attempts });
  }
}

/** Throws ServiceError `not_configured` when the address or the API key cannot be used. */
export const createClient = (options: ClientOptions) => {
  const closing = new AbortController();
  const shared = sharedBy(options, closing.signal);
  const { limits, transport } = shared;

  const plans = Object.fromEntries(
    (Object.keys(endpoints) as EndpointName[]).map((name) => [name, planEndpoint(name, options)]),
  ) as Record<EndpointName, Plan>;

  let underWay = 0;
  let allDone: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  const close = async (within: number): Promise<void> => {
    closing.abort();
    limits.close();
    if (underWay > 0) {
      const finished = new Promise<void>((resolve) => (allDone = resolve));
      const cut = setTimeout(() => void transport.destroy(), within);
      await finished;
      clearTimeout(cut);
    }
    await transport.destroy();
  };

  return {
    async call<N extends EndpointName>(
      name: N,
      request: RequestOf<N>,
      callOptions: CallOptions,
    ): Promise<Answer<N>> {
      if (closing.signal.aborted || callOptions.signal?.aborted === true)
        throw serviceError('cancelled', 'abandoned');
      const plan = plans[name];
      const wire = plan.wire(request as EndpointRequest);
      underWay++;
      try {
        return (await new Call(shared, plan, wire, callOptions).run()) as Answer<N>;
      } finally {
        if (--underWay === 0) allDone?.();
      }
    },
    limits,
    /** Requests under way may finish `within` milliseconds, then they are cut; all others fail with `cancelled`. */
    close: (within = closeLimit): Promise<void> => (closed ??= close(within)),
  };
};
