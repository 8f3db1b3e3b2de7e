import { existsSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import axios from 'axios';
import type { AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import { Pool, type Dispatcher } from 'undici';
import { isConfidential } from '../addresses';
import { second } from '../durations';
import { longestTimer } from './clock';
import { onAbort } from './concurrency';
import { serviceError, type ReasonKey, type ReasonWord } from './errors';
import type { repeatKinds } from './endpoints';
import { proxyFor, tunnelThrough } from './proxy';

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
      /** The time of the answer by the clock of the service, where it asks to wait. */
      readonly date?: string | undefined;
      /** The target of a redirect, which is never followed. */
      readonly location?: string;
    };

/** A request, as axios takes it; the transport adds what all requests have. */
export interface Outgoing {
  readonly method: keyof typeof repeatKinds;
  /** Below the base address. */
  readonly url: string;
  /** Names are those of the wire. */
  readonly params?: Readonly<Record<string, string | number>>;
  readonly data?: string | undefined;
  /** The type of the data; JSON by default. */
  readonly contentType?: string;
  /** Without a token, neither it nor the key is sent. */
  readonly token?: string;
  readonly apiKey?: string;
  /** The wall time after which it may not leave: it may be forbidden by then. */
  readonly leaveBy?: number;
}

const firstOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

/** Network errors have a short code. Their messages may quote the answer, so they are not used. */
const networkCode = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.name;

/** Bytes that frame a chunk of one digit's size (RFC 9112, section 7.1). */
const chunkFrame = 5;

const firstSize = 16 * 1024;
const noBody: Buffer = Buffer.alloc(0);

/** Some servers begin with a byte order mark, which a parser may ignore (RFC 8259, section 8.1). */
const withoutMark = (text: string): string => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);

/** One request under way, as a handler of undici. */
export class Exchange implements Dispatcher.DispatchHandler {
  private settle: ((result: Result) => void) | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Set when undici is about to write to a connection: the only proof that something may have been sent. */
  private controller: Pick<Dispatcher.DispatchController, 'abort'> | undefined;
  private status = 0;
  private retryAfter: string | undefined;
  private date: string | undefined;
  private location: string | undefined;
  /** All pieces: a server can make each as small as a byte, and a `Buffer` of its own for each would take 200 times that. */
  private body = noBody;
  private size = 0;
  /** The bytes of headers, and of what frames the chunks. */
  private framing = 0;

  constructor(private readonly leaveBy = Infinity) {}

  /** Sends the request; `settle` is called exactly once, within the time limit, even if the server misbehaves. */
  start(
    pool: Pick<Pool, 'dispatch'>,
    request: Dispatcher.DispatchOptions,
    timeout: number,
    settle: (result: Result) => void,
  ): void {
    this.settle = settle;
    // After the process has stood still, timers run before what has arrived meanwhile is read.
    const late = (): void => void setImmediate(() => this.abandon('timeout'));
    this.timer = setTimeout(late, Math.min(timeout, longestTimer));
    pool.dispatch(request, this);
  }

  abandon(reason: ReasonKey): void {
    if (this.settle === undefined) return;
    this.finish({ state: this.controller === undefined ? 'unreached' : 'broken', reason: { reason } });
    this.controller?.abort(new Error(reason));
  }

  private finish(result: Result): void {
    const settle = this.settle;
    if (settle === undefined) return;
    this.settle = undefined;
    clearTimeout(this.timer);
    settle(result);
  }

  onRequestStart(controller: Pick<Dispatcher.DispatchController, 'abort'>): void {
    if (this.controller === undefined && Date.now() > this.leaveBy) this.abandon('timeout');
    // A second start means that undici retries the request on its own, which is never allowed.
    if (this.settle === undefined || this.controller !== undefined) controller.abort(new Error('settled'));
    else this.controller = controller;
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    for (const [name, value] of Object.entries(headers)) this.framing += name.length + String(value).length;
    if (this.isTooLarge()) return;
    if (status === 429 || status === 503)
      [this.retryAfter, this.date] = [firstOf(headers['retry-after']), firstOf(headers.date)];
    else if (status >= 300 && status < 400) this.location = firstOf(headers.location);
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    const before = this.size;
    this.size += chunk.length;
    this.framing += chunkFrame;
    if (this.isTooLarge()) return;
    if (before === 0) this.body = chunk;
    else this.append(chunk, before);
  }

  onResponseEnd(): void {
    const text = withoutMark(this.body.toString('utf8', 0, this.size));
    const { status, retryAfter, date, location } = this;
    const more = { ...(date && { date }), ...(location && { location }) };
    this.finish({ state: 'answered', status, text, retryAfter, ...more });
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.finish({
      state: this.controller === undefined ? 'unreached' : 'broken',
      reason: networkCode(error),
    });
  }

  /** Ends the exchange when the content, or all that comes around it, exceeds the limit. */
  private isTooLarge(): boolean {
    if (this.size <= answerLimit && this.framing <= answerLimit) return false;
    const { status, retryAfter, date } = this;
    this.finish({ state: 'answered', status, text: undefined, retryAfter, ...(date && { date }) });
    this.controller?.abort(new Error('too large'));
    return true;
  }

  private append(chunk: Buffer, at: number): void {
    if (this.body.length < this.size) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.size, firstSize));
      this.body.copy(larger, 0, 0, at);
      this.body = larger;
    }
    chunk.copy(this.body, at);
  }
}

/** Below the idle limits of servers (5 seconds or more): a POST on a connection just closed has an unknown outcome. */
const idleLimit = 4 * second;
/** Less than an instance may be cut off before others go on without it. */
export const connectLimit = 10 * second;

export interface TransportOptions {
  /** The one address below which requests go: redirects are not followed, so a token is never sent elsewhere. */
  readonly base: string;
  /** Milliseconds for a whole request, to the last byte of its answer. */
  readonly timeout: number;
  readonly connections: number;
  /** The HTTP proxy to use; empty means that of the process's variables. */
  readonly proxy?: string | undefined;
}

/** package.json is two folders up, or three in the compiled package. */
const packageVersion = (folder: string): string => {
  const path = ['../..', '../../..'].map((up) => join(folder, up, 'package.json')).find(existsSync);
  return path === undefined ? '' : (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
};

export const ownVersion = packageVersion(__dirname);

declare module 'axios' {
  interface AxiosRequestConfig extends Pick<Outgoing, 'contentType' | 'token' | 'apiKey' | 'leaveBy'> {
    /** Aborts the request. With `signal`, axios would drop an answer that came meanwhile. */
    stop?: AbortSignal | undefined;
  }
}

/**
 * The headers of all requests. The `User-Agent` is for firewalls and readers of the service's log (RFC 9110, section
 * 10.1.5); `Accept` is what we can read; without `Accept-Encoding`, a server may compress as it likes (section 12.5.3).
 */
const introduction = [
  ...['user-agent', `advisor-texting-node-red/${ownVersion}`],
  ...['accept', 'application/json, application/problem+json'],
  ...['accept-encoding', 'identity'],
];

const requestOf = (config: InternalAxiosRequestConfig, origin: string): Dispatcher.DispatchOptions => {
  const { baseURL = '', url = '', token, apiKey = '', contentType = 'application/json' } = config;
  const body = (config.data as string | undefined) ?? null;
  const params = Object.entries((config.params ?? {}) as NonNullable<Outgoing['params']>);
  let path = (baseURL + url).slice(origin.length);
  for (const [name, value] of params)
    path += `${path.includes('?') ? '&' : '?'}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
  const headers = [...introduction];
  if (token !== undefined) headers.push('authorization', `Bearer ${token}`, 'x-api-key', apiKey);
  if (body !== null) headers.push('content-type', contentType);
  for (const [name, value] of Object.entries(config.headers))
    // Axios gives each POST a type of its own.
    if (name.toLowerCase() !== 'content-type') headers.push(name, String(value));
  return { method: config.method?.toUpperCase() as Outgoing['method'], path, headers, body };
};

/** The address, if secrets may be sent there: HTTPS, or this machine. Throws `not_configured`. */
export const trustedUrl = (address: string, setting: string): URL => {
  if (!URL.canParse(address))
    throw serviceError('not_configured', 'address_invalid', { setting: { setting } });
  const url = new URL(address);
  if (!isConfidential(url))
    throw serviceError('not_configured', 'address_insecure', { setting: { setting } });
  return url;
};

/** As `trustedUrl`, without the query, which may hold secrets, and without a slash at the end. */
export const trustedBase = (address: string, setting: string): string => {
  const { origin, pathname } = trustedUrl(address, setting);
  return origin + pathname.replace(/\/+$/, '');
};

type Adapter = (config: InternalAxiosRequestConfig) => Promise<AxiosResponse<Result>>;

/** Without the default headers, transforms and check of the status: see `bench/parts/axios.ts`. */
export const axiosOver = (adapter: Adapter, base: string) => new axios.Axios({ baseURL: base, adapter });

/** Axios requires a headers object for each answer; the headers that matter are in the result. */
const noHeaders = new axios.AxiosHeaders();

export const createTransport = ({ base, timeout, connections, proxy }: TransportOptions) => {
  const { origin } = new URL(base);
  const connectWithin = Math.min(timeout, connectLimit);
  const way = proxyFor(new URL(origin), proxy);
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    // One connection would carry all requests, and one that breaks would leave all their outcomes unknown.
    allowH2: false,
    keepAliveTimeout: idleLimit,
    keepAliveMaxTimeout: idleLimit,
    connect: way === undefined ? { timeout: connectWithin } : tunnelThrough(way, connectWithin),
    // The time limits of undici restart with every byte; `Exchange` has one for the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  const adapter: Adapter = (config) =>
    new Promise((resolve) => {
      const { stop } = config;
      const settle = (data: Result): void =>
        resolve({ data, status: 0, statusText: '', headers: noHeaders, config });
      if (stop?.aborted === true) {
        settle({ state: 'unreached', reason: { reason: 'aborted' } });
        return;
      }
      const exchange = new Exchange(config.leaveBy);
      const forget = stop && onAbort(stop, () => exchange.abandon('aborted'));
      exchange.start(pool, requestOf(config, origin), timeout, (result) => {
        forget?.();
        settle(result);
      });
    });

  const http = axiosOver(adapter, base);

  return {
    /** Never rejects: a failure is in the result. */
    send: async (outgoing: Outgoing, stop?: AbortSignal): Promise<Result> =>
      (await http.request<Result>(stop ? { ...outgoing, stop } : outgoing)).data,
    /** Cuts all requests that are left. */
    destroy: (): Promise<void> => pool.destroy(),
  };
};

interface FormAnswer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter?: string | undefined;
  readonly date?: string | undefined;
}

/** Posts a form to exactly this address. Throws ServiceError `network_error` when there was no usable answer. */
export const postForm = async (
  address: string,
  fields: Readonly<Record<string, string>>,
  { timeout, proxy }: { readonly timeout: number; readonly proxy?: string | undefined },
): Promise<FormAnswer> => {
  const url = trustedUrl(address, 'tokenUrl');
  const transport = createTransport({ base: url.origin, timeout, connections: 1, proxy });
  try {
    const result = await transport.send({
      method: 'POST',
      url: url.pathname + url.search,
      data: new URLSearchParams(fields).toString(),
      contentType: 'application/x-www-form-urlencoded',
    });
    if (result.state === 'answered' && result.text !== undefined)
      return { status: result.status, text: result.text, retryAfter: result.retryAfter, date: result.date };
    const reason: ReasonWord = result.state === 'answered' ? { reason: 'too_large' } : result.reason;
    throw serviceError('network_error', 'token_unreached', { reason }, { attempts: 1 });
  } finally {
    await transport.destroy();
  }
};
