import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import axios from 'axios';
import type { AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import { Pool } from 'undici';
import { onAbort } from './concurrency';
import { Exchange } from './exchange';
import type { Outgoing, Result } from './exchange';
import { serviceError, type ReasonWord } from './errors';
import { isConfidential } from '../addresses';
import { proxyFor, tunnelThrough } from './proxy';
import { second } from '../durations';

/**
 * Milliseconds, below the idle limits of servers (5 seconds and more): a POST on a connection that was just closed has
 * an unknown outcome.
 */
const idleLimit = 4 * second;
const connectLimit = 10 * second;

export interface TransportOptions {
  /** The one origin to which requests go: redirects are not followed, so a token is never sent elsewhere. */
  readonly origin: string;
  /** Milliseconds for a whole request, to the last byte of its answer. */
  readonly timeout: number;
  readonly connections: number;
  /** The HTTP proxy to use; empty means that of the process's variables. */
  readonly proxy?: string | undefined;
}

export interface Transport {
  /** Never rejects: a failure is in the result. */
  send(outgoing: Outgoing, signal?: AbortSignal): Promise<Result>;
  /** Cuts all requests that are left. */
  destroy(): Promise<void>;
}

/** package.json is two folders up, or three in the compiled package. */
const packageVersion = (folder: string): string => {
  const path = ['../..', '../../..'].map((up) => join(folder, up, 'package.json')).find(existsSync);
  return path === undefined ? '' : (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
};

export const ownVersion = packageVersion(__dirname);

/**
 * The `User-Agent` is for firewalls and readers of the service's log (RFC 9110, section 10.1.5); `Accept` is what we
 * can read.
 */
const introduction = [
  'user-agent',
  `advisor-texting-node-red/${ownVersion}`,
  'accept',
  'application/json, application/problem+json',
  // Without this header, a server may compress as it likes (RFC 9110, section 12.5.3).
  'accept-encoding',
  'identity',
] as const;

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

/** Axios requires a headers object for each answer; the one header that matters is in the result. */
const noHeaders = new axios.AxiosHeaders();

export const createTransport = ({ origin, timeout, connections, proxy }: TransportOptions): Transport => {
  const connectWithin = Math.min(timeout, connectLimit);
  const way = proxyFor(new URL(origin), proxy);
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    keepAliveTimeout: idleLimit,
    keepAliveMaxTimeout: idleLimit,
    connect: way === undefined ? { timeout: connectWithin } : tunnelThrough(way, connectWithin),
    // The time limits of undici start anew with every byte; `Exchange` has one for the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  const adapter = (config: InternalAxiosRequestConfig<Exchange>): Promise<AxiosResponse<Result>> =>
    new Promise((resolve) => {
      const exchange = config.data;
      exchange?.start(pool, timeout, (data) => {
        resolve({ data, status: 0, statusText: '', headers: noHeaders, config });
      });
    });

  // No defaults, transforms or status checks: requests and results are complete as they are.
  const http = new axios.Axios({ adapter });

  return {
    async send(outgoing, signal) {
      outgoing.headers.push(...introduction);
      const exchange = new Exchange(outgoing);
      const forget =
        signal &&
        onAbort(signal, () => {
          exchange.abandon('aborted');
        });
      const { data } = await http.request<Result, AxiosResponse<Result>, Exchange>({
        method: outgoing.method,
        data: exchange,
      });
      forget?.();
      return data;
    },
    destroy: () => pool.destroy(),
  };
};

export interface FormAnswer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | undefined;
}

/**
 * Posts a form (for the token endpoint) to exactly this address, on a connection of its own. Throws ServiceError
 * `network_error` when there was no usable answer.
 */
export const postForm = async (
  address: string,
  fields: Readonly<Record<string, string>>,
  options: {
    readonly timeout: number;
    readonly signal?: AbortSignal;
    readonly proxy?: string | undefined;
  },
): Promise<FormAnswer> => {
  const url = trustedUrl(address, 'tokenUrl');
  if (options.signal?.aborted === true) throw serviceError('cancelled', 'abandoned');
  const { timeout, proxy } = options;
  const transport = createTransport({ origin: url.origin, timeout, connections: 1, proxy });
  try {
    const result = await transport.send(
      {
        method: 'POST',
        path: url.pathname + url.search,
        headers: ['content-type', 'application/x-www-form-urlencoded'],
        body: new URLSearchParams(fields).toString(),
      },
      options.signal,
    );
    if (result.state === 'answered' && result.text !== undefined) {
      return { status: result.status, text: result.text, retryAfter: result.retryAfter };
    }
    const reason: ReasonWord = result.state === 'answered' ? { reason: 'too_large' } : result.reason;
    if (typeof reason === 'object' && reason.reason === 'aborted')
      throw serviceError('cancelled', 'abandoned', {}, { attempts: 1 });
    throw serviceError('network_error', 'token_unreached', { reason }, { attempts: 1 });
  } finally {
    await transport.destroy();
  }
};
