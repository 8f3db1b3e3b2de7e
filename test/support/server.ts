import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { alsoClose } from './closing';

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
  /** An object is sent as JSON, a string unchanged. */
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

/** Listens on a free local port. */
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
