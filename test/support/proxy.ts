import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** Before the service has the request, when it has it, in the headers of its answer, in the body of its answer. */
export type Phase = 'request' | 'received' | 'headers' | 'body';

/** What the network does to one request. */
export type Fault =
  | { readonly kind: 'pass' }
  /** Holds the request back, or its answer byte by byte. */
  | { readonly kind: 'delay' | 'drip'; readonly ms: number }
  /** Closes the connection, resets it (RST), or falls silent and leaves it open. */
  | { readonly kind: 'cut' | 'reset' | 'stall'; readonly at: Phase }
  /** Something that is not HTTP in place of the answer. */
  | { readonly kind: 'garbage'; readonly at: 'request' | 'received' }
  /** Closes the connection once it is idle, as servers do, without having announced it. */
  | { readonly kind: 'idle' };

export interface Asked {
  readonly method: string;
  /** Including its query. */
  readonly path: string;
}

export interface Proxy {
  readonly url: string;
  /** For the next requests, one each; then `otherwise` decides. */
  readonly next: Fault[];
  otherwise: (asked: Asked) => Fault;
  /** How many connections were ever made to it. */
  readonly connections: number;
  /** Resolves when no connection is open. */
  deserted(): Promise<void>;
  close(): Promise<void>;
}

interface Request extends Asked {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

const headEnd = '\r\n\r\n';
const garbage = Buffer.from([0x00, 0xff, 0x13, 0x37, 0x0d, 0x0a]);
export const pass: Fault = { kind: 'pass' };

/** The request in these bytes, once it is complete; its body has a content-length. */
const requestIn = (bytes: Buffer): Request | undefined => {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const body = bytes.subarray(end + headEnd.length);
  if (body.length < Number(headers['content-length'] ?? 0)) return undefined;
  const [method = '', path = ''] = first.split(' ');
  return { method, path, headers, body };
};

/** The service's answer: its headers, and its body. */
const forward = async (port: number, { method, path, headers, body }: Request): Promise<[Buffer, Buffer]> => {
  const { host: _host, connection: _connection, ...kept } = headers;
  const asking = http.request({ port, host: '127.0.0.1', method, path, headers: kept, agent: false });
  asking.end(body);
  const [answer] = (await once(asking, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  const whole = Buffer.concat(chunks);
  const { connection: _own, 'transfer-encoding': _chunked, 'keep-alive': _idle, ...told } = answer.headers;
  const lines = Object.entries({ ...told, 'content-length': String(whole.length) });
  const head = [
    `HTTP/1.1 ${String(answer.statusCode)} ?`,
    ...lines.map(([name, value]) => `${name}: ${String(value)}`),
  ];
  return [Buffer.from(head.join('\r\n') + headEnd), whole];
};

const drip = (client: Socket, bytes: Buffer, ms: number): void => {
  let at = 0;
  const timer = setInterval(() => {
    client.write(bytes.subarray(at, ++at));
    if (at >= bytes.length) clearInterval(timer);
  }, ms);
  client.once('close', () => {
    clearInterval(timer);
  });
};

const serve = async (client: Socket, port: number, request: Request, fault: Fault): Promise<void> => {
  const strike = (): void => {
    if (fault.kind === 'garbage') client.end(garbage);
    else if (fault.kind === 'reset') client.resetAndDestroy();
    else if (fault.kind === 'cut') client.destroy();
  };
  const at = 'at' in fault ? fault.at : undefined;
  if (at === 'request') {
    strike();
    return;
  }
  if (fault.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms));
  const [head, body] = await forward(port, request);
  const whole = Buffer.concat([head, body]);
  if (at === 'received') strike();
  // An answer without a body has no more than headers to be cut in.
  else if (at === 'headers' || (at === 'body' && body.length === 0))
    client.write(head.subarray(0, -9), strike);
  else if (at === 'body') client.write(whole.subarray(0, -1), strike);
  else if (fault.kind === 'drip') drip(client, whole, fault.ms);
  else if (fault.kind === 'idle') client.end(whole);
  else client.write(whole);
};

/** A TCP proxy in front of a local server that behaves like real networks. */
export const startProxy = async (targetPort: number): Promise<Proxy> => {
  const next: Fault[] = [];
  const open = new Set<Socket>();
  const leaving = new Set<() => void>();
  let connections = 0;

  const server = net.createServer((client) => {
    connections++;
    open.add(client);
    let bytes = Buffer.alloc(0);
    client.on('error', () => undefined);
    client.once('close', () => {
      open.delete(client);
      if (open.size === 0) for (const tell of leaving) tell();
    });
    client.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      const request = requestIn(bytes);
      if (request === undefined) return;
      bytes = Buffer.alloc(0);
      const fault = next.shift() ?? proxy.otherwise(request);
      serve(client, targetPort, request, fault).catch(() => client.destroy());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const proxy: Proxy = {
    url: `http://127.0.0.1:${String(port)}`,
    next,
    otherwise: () => pass,
    get connections() {
      return connections;
    },
    deserted: () => (open.size === 0 ? Promise.resolve() : new Promise((resolve) => leaving.add(resolve))),
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
};
