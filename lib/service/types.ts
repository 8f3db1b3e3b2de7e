import type { EndpointName, RequestOf, ResponseOf } from './endpoints';
import type { Clock } from './clock';
import type { Prefixes } from './prefixes';

export type RepeatSends = 'never' | 'contract' | 'always';

export interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /**
   * The access token of an advisor. `rejected` is a token that the service has just answered with a 401: the source
   * then refreshes it (once, however many ask) and gives a newer one. Returns a plain string when a token is at hand,
   * so that the common case costs no turn of the event loop. Throws ServiceError `authorization_required` and the like.
   */
  readonly token: (advisor: string, rejected?: string) => string | Promise<string>;
  /** The service's own words for the contract's `core` and `text`. */
  readonly prefixes?: Prefixes;
  /** Names of query parameters that differ from ours; `contacts.page` is for one search alone. */
  readonly names?: Readonly<Record<string, string>>;
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
  /** Cancels requests that have not begun or wait to be repeated; a send, consent request or create under way ends first. */
  readonly signal?: AbortSignal;
  /** Called when the request has its token; it leaves after this resolves. */
  readonly begin?: () => void | Promise<void>;
  /**
   * Called before each attempt, which begins when this resolves; the result is called when the attempt has ended. A
   * throw ends the call.
   */
  readonly permit?: (() => Promise<() => void>) | undefined;
  /** Called when a request that began was certainly not carried out and is put off; `begin` is then called again. */
  readonly undo?: () => void | Promise<void>;
}

export interface Answer<N extends EndpointName> {
  readonly data: ResponseOf<N>;
  readonly status: number;
  /** The number of requests that were made. */
  readonly attempts: number;
}

/** The service, for all code above lib/service. Every failure is a ServiceError. */
export interface Client {
  call<N extends EndpointName>(name: N, request: RequestOf<N>, options: CallOptions): Promise<Answer<N>>;
  /** The end of a pause after a 429, in epoch milliseconds; 0 when there is none. */
  readonly pausedUntil: number;
  /** Called when another process was asked to pause, with the milliseconds that are left. */
  pause?(ms: number): void;
  /** The most requests at once that were wanted since the last call. */
  takePeak?(): number;
  /**
   * Lets requests under way finish, fails those that have not begun with `cancelled`, and frees the connections.
   * Requests that are still under way after `within` milliseconds (`closeLimit` by default) are cut, and reported
   * accordingly.
   */
  close(within?: number): Promise<void>;
}
