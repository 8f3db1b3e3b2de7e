import type { EndpointName, RequestOf, ResponseOf } from './endpoints';
import type { Clock } from './clock';
import type { Prefixes } from './prefixes';

export type RepeatSends = 'never' | 'contract' | 'always';

export interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /**
   * The access token of an advisor. `rejected` is a token the service has just answered 401 to: the source then
   * refreshes (once, whoever asks) and gives a newer one. Returns the plain string when it has one at hand, so that
   * the common case costs no turn of the event loop. Throws ServiceError `authorization_required` and the like.
   */
  readonly token: (advisor: string, rejected?: string) => string | Promise<string>;
  /** What the service says in place of the contract's `core` and `text`. */
  readonly prefixes?: Prefixes;
  /** Query parameter names on the wire, where they differ from ours; `contacts.page` for one search alone. */
  readonly names?: Readonly<Record<string, string>>;
  /** An HTTP proxy on the way there; empty means what the variables of the process say. */
  readonly proxy?: string;
  /** Milliseconds for the whole of one request; 30 s. */
  readonly timeout?: number;
  readonly retries?: number;
  readonly repeatSends?: RepeatSends;
  readonly maxConcurrent?: number;
  readonly requestsPerSecond?: number;
  /** Where several processes have these limits in common: how many of so many requests at once are this one's. */
  readonly share?: (most: number) => number;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** A request has ended, or was not answered; `duration` in milliseconds. */
  readonly onRequest?: (about: {
    readonly endpoint: EndpointName;
    /** Of the answer, or `unreached` where there was no connection, or `broken` where there was no whole answer. */
    readonly status: number | 'unreached' | 'broken';
    readonly duration: number;
    readonly isPoll: boolean;
  }) => void;
  /** The service asked everybody to pause (429), until then. */
  readonly onPause?: (until: number) => void;
}

export interface CallOptions {
  readonly advisor: string;
  /** Requests of one lane (a node) are served in order, lanes in turn: a list of 10,000 starves nobody. */
  readonly lane?: string;
  /** `poll` goes only where no `normal` request waits. */
  readonly priority?: 'normal' | 'poll';
  /** Cancels what has not begun, and what waits to be repeated; a send, ask or create under way lands first. */
  readonly signal?: AbortSignal;
  /** Called when the request has its token and is about to leave; it leaves after this resolves. */
  readonly begin?: () => void | Promise<void>;
  /** Called before each attempt, which is made when this resolves, and ends with what it gives. What it throws ends the call. */
  readonly permit?: (() => Promise<() => void>) | undefined;
  /** Called when a request that began was certainly not carried out and is put off; `begin` is called again after it. */
  readonly undo?: () => void | Promise<void>;
}

export interface Answer<N extends EndpointName> {
  readonly data: ResponseOf<N>;
  readonly status: number;
  /** How many requests it took. */
  readonly attempts: number;
}

/** The service, as everything above lib/service sees it. Every failure is a ServiceError. */
export interface Client {
  call<N extends EndpointName>(name: N, request: RequestOf<N>, options: CallOptions): Promise<Answer<N>>;
  /** Until when the service has asked everybody to pause (429), in epoch ms; 0 when it has not. */
  readonly pausedUntil: number;
  /** Another process was asked to pause, for so many more milliseconds. */
  pause?(ms: number): void;
  /** The most requests at once that were wanted since this was last asked. */
  takePeak?(): number;
  /**
   * Lets requests under way finish, fails those that have not begun with `cancelled`, and frees the connections. What
   * is still under way after `within` ms (12 s) is cut, and reported as what it then is.
   */
  close(within?: number): Promise<void>;
}
