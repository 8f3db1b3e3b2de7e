import { once } from 'node:events';
import net from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** What the network does to one request. */
export type Fault =
  | { readonly kind: 'pass' }
  /** Holds the request back, or its answer byte by byte. */
  | { readonly kind: 'delay' | 'drip'; readonly ms: number }
  /** Closes the connection: before the request went on, after it did, or in the middle of its answer. */
  | { readonly kind: 'cut-before' | 'cut-after' | 'cut-middle' }
  /** Delivers the request, and something that is not HTTP in place of its answer. */
  | { readonly kind: 'garbage' };

export interface Proxy {
  readonly url: string;
  /** For the next requests, one each; then `otherwise`. */
  readonly next: Fault[];
  otherwise: Fault;
  /** How many connections were ever made to it. */
  readonly connections: number;
  close(): Promise<void>;
}

const pass = (): Fault => ({ kind: 'pass' });

const answer = (client: Socket, upstream: Socket, chunk: Buffer, fault: Fault): void => {
  switch (fault.kind) {
    case 'cut-after':
      client.destroy();
      break;
    case 'cut-middle':
      client.write(chunk.subarray(0, chunk.length - 2), () => client.destroy());
      break;
    case 'garbage':
      client.end(Buffer.from([0x00, 0xff, 0x13, 0x37, 0x0d, 0x0a]));
      break;
    case 'drip': {
      let at = 0;
      const timer = setInterval(() => {
        client.write(chunk.subarray(at, ++at));
        if (at >= chunk.length) clearInterval(timer);
      }, fault.ms);
      client.once('close', () => {
        clearInterval(timer);
        upstream.destroy();
      });
      break;
    }
    default:
      client.write(chunk);
  }
};

/** A TCP proxy in front of a server on this machine that does what networks do. */
export const startProxy = async (targetPort: number): Promise<Proxy> => {
  const next: Fault[] = [];
  const open = new Set<Socket>();
  let connections = 0;
  const proxy = { otherwise: pass() };

  const server = net.createServer((client) => {
    connections++;
    const upstream = net.connect(targetPort, '127.0.0.1');
    let fault = pass();
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    // The requests of these tests fit into one chunk.
    client.on('data', (chunk) => {
      fault = next.shift() ?? proxy.otherwise;
      if (fault.kind === 'cut-before') client.destroy();
      else if (fault.kind === 'delay') setTimeout(() => upstream.write(chunk), fault.ms);
      else upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      answer(client, upstream, chunk, fault);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${String(port)}`,
    next,
    get otherwise() {
      return proxy.otherwise;
    },
    set otherwise(fault) {
      proxy.otherwise = fault;
    },
    get connections() {
      return connections;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
