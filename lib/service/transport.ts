import { existsSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import axios from 'axios';
import type { AxiosRequestHeaders, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import { Pool, type Dispatcher } from 'undici';
import { isConfidential } from '../addresses';
import { second } from '../durations';
import { longestTimer } from './clock';
import { onAbort } from './concurrency';
import { serviceError, type ReasonKey, type ReasonWord } from './errors';
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
      /** The target of a redirect, which is never followed. */
      readonly location?: string;
    };

/** A request, as axios takes it; the transport adds what all requests have. */
export interface Outgoing {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base address. */
  readonly url: string;
  /** Names are those of the wire. */
  readonly params?: Readonly<Record<string, string | number>>;
  /** Sent as JSON, or as a form. */
  readonly data?: unknown;
  /** Ids in the data that are strings only because of their length are sent as integers. */
  readonly hasIds?: boolean;
  /** Without a token, neither it nor the key is sent. */
  readonly token?: string;
  readonly apiKey?: string;
}

/** The value of a header, the first if there are several. */
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
  private location: string | undefined;
  /** All pieces: a server can make each as small as a byte, and a `Buffer` of its own for each would take 200 times that. */
  private body = noBody;
  private size = 0;
  /** The bytes of headers, and of what frames the chunks. */
  private framing = 0;

  /** `limit` is the most bytes of an answer. */
  constructor(private readonly limit = answerLimit) {}

  /** Sends the request; `settle` is called exactly once, within the time limit, even if the server misbehaves. */
  start(
    pool: Pick<Pool, 'dispatch'>,
    request: Dispatcher.DispatchOptions,
    timeout: number,
    settle: (result: Result) => void,
  ): void {
    this.settle = settle;
    this.timer = setTimeout(
      () => {
        this.abandon('timeout');
      },
      Math.min(timeout, longestTimer),
    );
    pool.dispatch(request, this);
  }

  abandon(reason: ReasonKey): void {
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
    // A second start means that undici retries the request on its own, which is never allowed.
    if (this.settle === undefined || this.controller !== undefined) controller.abort(new Error('settled'));
    else this.controller = controller;
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    for (const [name, value] of Object.entries(headers)) this.framing += name.length + String(value).length;
    if (this.isTooLarge()) return;
    if (status === 429 || status === 503) this.retryAfter = firstOf(headers['retry-after']);
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
    const { status, retryAfter, location } = this;
    this.finish({
      state: 'answered',
      status,
      text,
      retryAfter,
      ...(location !== undefined && { location }),
    });
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.finish({
      state: this.controller === undefined ? 'unreached' : 'broken',
      reason: networkCode(error),
    });
  }

  /** Ends the exchange when the content, or all that comes around it, exceeds the limit. */
  private isTooLarge(): boolean {
    if (this.size <= this.limit && this.framing <= this.limit) return false;
    const { status, retryAfter } = this;
    this.finish({ state: 'answered', status, text: undefined, retryAfter });
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

/**
 * Milliseconds, below the idle limits of servers (5 seconds and more): a POST on a connection that was just closed has
 * an unknown outcome.
 */
const idleLimit = 4 * second;
const connectLimit = 10 * second;

export interface TransportOptions {
  /** The one address below which requests go: redirects are not followed, so a token is never sent elsewhere. */
  readonly base: string;
  /** Milliseconds for a whole request, to the last byte of its answer. */
  readonly timeout: number;
  readonly connections: number;
  /** The HTTP proxy to use; empty means that of the process's variables. */
  readonly proxy?: string | undefined;
}

export type Transport = ReturnType<typeof createTransport>;

/** package.json is two folders up, or three in the compiled package. */
const packageVersion = (folder: string): string => {
  const path = ['../..', '../../..'].map((up) => join(folder, up, 'package.json')).find(existsSync);
  return path === undefined ? '' : (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
};

export const ownVersion = packageVersion(__dirname);

declare module 'axios' {
  interface AxiosRequestConfig {
    hasIds?: boolean;
    token?: string;
    apiKey?: string;
  }
}

/**
 * The headers of all requests. The `User-Agent` is for firewalls and readers of the service's log (RFC 9110, section
 * 10.1.5); `Accept` is what we can read; without `Accept-Encoding`, a server may compress as it likes (section 12.5.3).
 */
const introduction = {
  'user-agent': `advisor-texting-node-red/${ownVersion}`,
  accept: 'application/json, application/problem+json',
  'accept-encoding': 'identity',
} as const;

/** An interceptor of requests: default headers of axios cost three times as much. */
const introduce = (config: InternalAxiosRequestConfig): InternalAxiosRequestConfig => {
  const { headers, token, apiKey } = config;
  Object.assign(headers, introduction);
  if (token !== undefined) Object.assign(headers, { authorization: `Bearer ${token}`, 'x-api-key': apiKey });
  return config;
};

const serialize = function (
  this: InternalAxiosRequestConfig,
  data: unknown,
  headers: AxiosRequestHeaders,
): string | null {
  if (data === undefined) return null;
  const isForm = data instanceof URLSearchParams;
  headers['content-type'] = isForm ? 'application/x-www-form-urlencoded' : 'application/json';
  if (isForm) return data.toString();
  const written = JSON.stringify(data);
  if (this.hasIds !== true) return written;
  return written.replace(/"(\d{16,})"/g, (quoted, digits: string) =>
    Number.isSafeInteger(Number(digits)) ? quoted : digits,
  );
};

const querySerializer = {
  serialize: (params: Outgoing['params'] = {}): string => {
    let written = '';
    for (const [name, value] of Object.entries(params))
      written += `${written === '' ? '?' : '&'}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
    return written;
  },
};

/** The address, if secrets may be sent there: HTTPS, or this machine. Throws `not_configured`. */
export const trustedUrl = (address: string, setting: string): URL => {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    throw serviceError('not_configured', 'address_invalid', { setting: { setting } });
  }
  if (!isConfidential(url))
    throw serviceError('not_configured', 'address_insecure', { setting: { setting } });
  return url;
};

type Adapter = (config: InternalAxiosRequestConfig) => Promise<AxiosResponse<Result>>;

/** Without the default headers and transforms of axios and its check of the status: see `bench/parts/axios.ts`. */
export const axiosOver = (adapter: Adapter, base: string, timeout: number) => {
  const http = new axios.Axios({
    baseURL: base,
    timeout,
    maxContentLength: answerLimit,
    paramsSerializer: querySerializer,
    transformRequest: serialize,
    adapter,
  });
  http.interceptors.request.use(introduce, undefined, { synchronous: true });
  return http;
};

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

  /** The exchange with the pool. `getUri` of axios merges all settings once more, which costs a third of all the rest. */
  const adapter: Adapter = (config) =>
    new Promise((resolve, reject) => {
      const { baseURL = '', url = '', signal, maxContentLength } = config;
      const { serialize: written } = config.paramsSerializer as typeof querySerializer;
      const path = (baseURL + url).slice(origin.length) + written(config.params as Outgoing['params']);
      const headers: string[] = [];
      for (const [name, value] of Object.entries(config.headers)) headers.push(name, String(value));
      const exchange = new Exchange(maxContentLength);
      const forget =
        signal &&
        onAbort(signal as AbortSignal, () => {
          exchange.abandon('aborted');
        });
      const method = config.method?.toUpperCase() as Outgoing['method'];
      const request = { method, path, headers, body: config.data as string | null };
      exchange.start(pool, request, config.timeout ?? 0, (data) => {
        forget?.();
        // Axios takes an answer to a request that was cancelled for none, so the result is in the error.
        if (signal?.aborted === true) reject(Object.assign(new axios.CanceledError(), { result: data }));
        else resolve({ data, status: 0, statusText: '', headers: noHeaders, config });
      });
    });

  const http = axiosOver(adapter, base, timeout);

  return {
    /** Never rejects: a failure is in the result. */
    async send(outgoing: Outgoing, signal?: AbortSignal): Promise<Result> {
      if (signal?.aborted === true) return { state: 'unreached', reason: { reason: 'aborted' } };
      try {
        return (await http.request<Result>(signal ? { ...outgoing, signal } : outgoing)).data;
      } catch (fault) {
        if (!axios.isCancel(fault)) throw fault;
        const { result } = fault as { readonly result?: Result };
        return result ?? { state: 'broken', reason: { reason: 'aborted' } };
      }
    },
    /** Cuts all requests that are left. */
    destroy: (): Promise<void> => pool.destroy(),
  };
};

/**
 * Posts a form (for the token endpoint) to exactly this address, on a connection of its own. Throws ServiceError
 * `network_error` when there was no usable answer.
 */
export const postForm = async (
  address: string,
  fields: Readonly<Record<string, string>>,
  { timeout, proxy }: { readonly timeout: number; readonly proxy?: string | undefined },
): Promise<{ readonly status: number; readonly text: string; readonly retryAfter?: string | undefined }> => {
  const url = trustedUrl(address, 'tokenUrl');
  const transport = createTransport({ base: url.origin, timeout, connections: 1, proxy });
  try {
    const data = new URLSearchParams(fields);
    const result = await transport.send({ method: 'POST', url: url.pathname + url.search, data });
    if (result.state === 'answered' && result.text !== undefined)
      return { status: result.status, text: result.text, retryAfter: result.retryAfter };
    const reason: ReasonWord = result.state === 'answered' ? { reason: 'too_large' } : result.reason;
    throw serviceError('network_error', 'token_unreached', { reason }, { attempts: 1 });
  } finally {
    await transport.destroy();
  }
};
