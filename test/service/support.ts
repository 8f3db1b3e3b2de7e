import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createClient } from '../../lib/service/client';
import { MovableClock } from '../../lib/service/clock';
import {
  type Code,
  type Problem,
  type ServiceCode,
  serviceCodes,
  ServiceError,
} from '../../lib/service/errors';
import type { Client, ClientOptions } from '../../lib/service/types';

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** 0 for the first. */
  readonly index: number;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  /** An object is sent as JSON, a string as it is. */
  readonly body?: unknown;
}

export type Script = (
  request: Received,
  response: http.ServerResponse,
) => Reply | undefined | Promise<Reply | undefined>;

export interface Scripted {
  readonly url: string;
  readonly port: number;
  readonly received: Received[];
  readonly server: http.Server;
  close(): Promise<void>;
}

const closers: (() => Promise<void>)[] = [];

/** For `afterEach`: ends everything a test has begun, clients first. */
export const closeAll = async (): Promise<void> => {
  for (const close of closers.splice(0).reverse()) await close();
};

export const alsoClose = <T extends { close(): Promise<void> }>(thing: T): T => {
  closers.push(() => thing.close());
  return thing;
};

/** Listens on a free port of this machine. */
export const listen = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};

/** A real server that answers as scripted; a script that returns nothing answers by itself, or never. */
export const startServer = async (script: Script): Promise<Scripted> => {
  const received: Received[] = [];
  const server = http.createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const { method = '', url = '', headers } = req;
      const request = {
        method,
        url,
        headers,
        body: Buffer.concat(chunks).toString(),
        index: received.length,
      };
      received.push(request);
      void Promise.resolve(script(request, res)).then((reply) => {
        if (reply === undefined) return;
        const { status = 200, headers: more = {}, body } = reply;
        res.writeHead(status, more);
        res.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
      });
    });
  });
  const port = await listen(server);
  return alsoClose({
    url: `http://127.0.0.1:${String(port)}`,
    port,
    received,
    server,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
};

export const text = { body: { phone: '+14155550123', text: 'Hello' } };

export const problemReply = (code: ServiceCode, more: Record<string, unknown> = {}): Reply => ({
  status: serviceCodes[code].status,
  headers: { 'content-type': 'application/problem+json' },
  body: {
    type: `https://example.test/${code}`,
    title: code,
    status: serviceCodes[code].status,
    detail: `About ${code}`,
    instance: '/here',
    code,
    traceId: 'trace-1',
    retryable: serviceCodes[code].retryable,
    ...more,
  },
});

/** A clock that stands still until it is moved. */
export const frozenClock = (): MovableClock => {
  const start = Date.UTC(2025, 0, 15, 12);
  return new MovableClock(() => start);
};

export const clientOf = (url: string, options: Partial<ClientOptions> = {}): Client => {
  const client = createClient({
    baseUrl: `${url}/v1`,
    apiKey: 'key-1',
    token: () => 'token-1',
    clock: frozenClock(),
    random: () => 0.5,
    ...options,
  });
  alsoClose({ close: () => client.close(0) });
  return client;
};

/** The problem a call fails with. */
export const problemOf = async (call: Promise<unknown>): Promise<Problem> => {
  try {
    await call;
  } catch (error) {
    if (error instanceof ServiceError) return error.problem;
    throw error;
  }
  throw new Error('the call succeeded');
};

export const codeOf = async (call: Promise<unknown>): Promise<Code> => (await problemOf(call)).code;

/** Moves the clock until the call has settled, and gives what it came to. */
export const settle = async <T>(clock: MovableClock, call: Promise<T>, step = 20_000): Promise<T> => {
  const progress = { settled: false };
  const done = call.finally(() => (progress.settled = true));
  done.catch(() => undefined);
  while (!progress.settled) await clock.move(step);
  return done;
};
