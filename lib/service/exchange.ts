import type { Pool } from 'undici';
import { longestTimer } from './clock';
import type { ReasonKey, ReasonWord } from './errors';

/** Bytes: a larger answer is refused, and the sentence `answer_too_large` of each language says this limit. */
export const answerLimit = 5 * 1024 * 1024;

/**
 * The result of one request. `unreached`: no connection, so it cannot have been carried out. `broken`: a connection,
 * but no complete answer. `answered`: a complete answer; its `text` is undefined when it exceeds the limit.
 */
export type Result =
  | { readonly state: 'unreached' | 'broken'; readonly reason: ReasonWord }
  | {
      readonly state: 'answered';
      readonly status: number;
      readonly text: string | undefined;
      readonly retryAfter: string | undefined;
      /** The target of a redirect, which is never followed. */
      readonly location?: string;
    };

export interface Outgoing {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** Names and values in turn; the transport adds those that all requests have. */
  readonly headers: string[];
  readonly body: string | null;
}

/** The value of a header in a list of names and values in turn. */
const headerIn = (headers: readonly Buffer[], wanted: string): string | undefined => {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at];
    if (name?.length === wanted.length && name.toString('latin1').toLowerCase() === wanted)
      return headers[at + 1]?.toString('latin1');
  }
  return undefined;
};

/** Network errors have a short code. Their messages may quote the answer, so they are not used. */
const networkCode = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.name;

/** Bytes that frame a chunk of one digit's size (RFC 9112, section 7.1). */
const chunkFrame = 5;

/** A buffer that an earlier answer left: a new one for each answer would keep the garbage collector busy. */
let spare: Buffer | undefined;
const spareSize = 256 * 1024;
const firstSize = 16 * 1024;

/** Some servers begin with a byte order mark, which a parser may ignore (RFC 8259, section 8.1). */
const withoutMark = (text: string): string => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);

/**
 * One request under way, as a handler of undici. It uses undici's older callbacks (`onConnect`, `onHeaders`, …): the
 * newer ones turn every header of every answer into an object that nobody here reads.
 */
export class Exchange {
  readonly outgoing: Outgoing;
  private settle: ((result: Result) => void) | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Set when undici is about to write to a connection: the only proof that something may have been sent. */
  private abort: ((error?: Error) => void) | undefined;
  private status = 0;
  private retryAfter: string | undefined;
  private location: string | undefined;
  /** The first piece, until there is a second. */
  private first: Buffer | undefined;
  /** All pieces: a server can make each as small as a byte, and a `Buffer` of its own for each would take 200 times that. */
  private joined: Buffer | undefined;
  private size = 0;
  /** The bytes of headers, and of what frames the chunks. */
  private framing = 0;

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }

  /** Sends the request; `settle` is called exactly once, within the time limit, whatever the server does. */
  start(pool: Pick<Pool, 'dispatch'>, timeout: number, settle: (result: Result) => void): void {
    this.settle = settle;
    this.timer = setTimeout(
      () => {
        this.abandon('timeout');
      },
      Math.min(timeout, longestTimer),
    );
    pool.dispatch(this.outgoing, this);
  }

  abandon(reason: ReasonKey): void {
    this.finish({ state: this.abort === undefined ? 'unreached' : 'broken', reason: { reason } });
    this.abort?.();
  }

  private finish(result: Result): void {
    const settle = this.settle;
    if (settle === undefined) return;
    this.settle = undefined;
    clearTimeout(this.timer);
    settle(result);
  }

  onConnect(abort: (error?: Error) => void): void {
    // A second start means that undici repeats the request by itself, which is never allowed.
    if (this.settle === undefined || this.abort !== undefined) abort();
    else this.abort = abort;
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    this.status = status;
    for (const part of headers) this.framing += part.length;
    if (this.isTooLarge()) return false;
    if (status === 429 || status === 503) this.retryAfter = headerIn(headers, 'retry-after');
    else if (status >= 300 && status < 400) this.location = headerIn(headers, 'location');
    return true;
  }

  onData(chunk: Buffer): boolean {
    const before = this.size;
    this.size += chunk.length;
    this.framing += chunkFrame;
    if (this.isTooLarge()) return false;
    if (before === 0) this.first = chunk;
    else this.append(chunk, before);
    return true;
  }

  onComplete(): void {
    const text = withoutMark((this.joined ?? this.first)?.toString('utf8', 0, this.size) ?? '');
    if (this.joined && this.joined.length <= spareSize) spare = this.joined;
    const { status, retryAfter, location } = this;
    this.finish({
      state: 'answered',
      status,
      text,
      retryAfter,
      ...(location !== undefined && { location }),
    });
  }

  onError(error: Error): void {
    this.finish({ state: this.abort === undefined ? 'unreached' : 'broken', reason: networkCode(error) });
  }

  /** Ends the exchange when the content, or all that comes around it, exceeds the limit. */
  private isTooLarge(): boolean {
    if (this.size <= answerLimit && this.framing <= answerLimit) return false;
    const { status, retryAfter } = this;
    this.finish({ state: 'answered', status, text: undefined, retryAfter });
    this.abort?.();
    return true;
  }

  private append(chunk: Buffer, at: number): void {
    const before = this.joined ?? this.first;
    if (this.joined === undefined) {
      this.joined = spare;
      spare = undefined;
    }
    if (this.joined === undefined || this.joined.length < this.size)
      this.joined = Buffer.allocUnsafeSlow(Math.max(2 * this.size, firstSize));
    if (before !== this.joined) before?.copy(this.joined, 0, 0, at);
    this.first = undefined;
    chunk.copy(this.joined, at);
  }
}
