import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { serveContract } from './contract/serve';
import type { ChangeStream } from './control/events';
import { serveControl } from './control/serve';
import { isForeignHost, isForeignOrigin } from './guard';
import { answer, splitTarget, plainText } from './http';
import { serveAuthorize, serveToken } from './oauth/serve';
import type { Simulation } from './simulation';
import { servePage } from './static-page';
import { simulatorWordsFor } from './words';

export interface Served {
  readonly simulation: Simulation;
  readonly events: ChangeStream;
  /** The directory of the phones page, when it is not in its usual place. */
  readonly page: string | undefined;
  /** The server listens on the loopback address, so requests under another host name are rejected. */
  readonly loopback: boolean;
}

export const basePath = '/v1';

const forbid = (
  request: IncomingMessage,
  response: ServerResponse,
  why: 'control.foreignOrigin' | 'control.foreignHost',
): void => {
  answer(response, 403, plainText, `${simulatorWordsFor(request).say(why)}\n`);
};

/** Without the slash at the end of its mount, the relative addresses of the page would be wrong. */
const missingSlash = (request: IncomingMessage, path: string): string | undefined => {
  const { originalUrl } = request as { originalUrl?: string };
  if (path !== '/' || originalUrl === undefined) return undefined;
  const [whole, query] = splitTarget(originalUrl);
  if (whole.endsWith('/')) return undefined;
  return `${whole.slice(whole.lastIndexOf('/') + 1)}/${query === '' ? '' : `?${query}`}`;
};

/** Serves the phones page and the control API, relative to where the caller has mounted them. */
export const servePageAndControl = async (
  { simulation, events, page }: Served,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const [path, query] = splitTarget(request.url ?? '/');
  if (isForeignOrigin(request)) {
    forbid(request, response, 'control.foreignOrigin');
    return;
  }
  const slash = missingSlash(request, path);
  if (slash !== undefined) response.writeHead(302, { location: slash }).end();
  else if (path.startsWith('/control/')) {
    await serveControl(simulation, events, request, response, path.slice('/control/'.length), query);
  } else if (request.method === 'GET' || request.method === 'HEAD') {
    await servePage(response, path.slice(1), page, simulatorWordsFor(request));
  } else {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
  }
};

const serve = async (served: Served, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { simulation, loopback } = served;
  const [path, query] = splitTarget(request.url ?? '/');
  if (path.startsWith(`${basePath}/`)) {
    await serveContract(simulation, request, response, path.slice(basePath.length), query);
  } else if (path === '/oauth/authorize') {
    await serveAuthorize(simulation, request, response, query);
  } else if (path === '/oauth/token') {
    await serveToken(simulation, request, response);
  } else if (loopback && isForeignHost(request)) {
    forbid(request, response, 'control.foreignHost');
  } else {
    await servePageAndControl(served, request, response);
  }
};

/** A request that fails must not crash the process. */
export const guarded = async (
  request: IncomingMessage,
  response: ServerResponse,
  serving: Promise<void>,
): Promise<void> => {
  try {
    await serving;
  } catch {
    if (response.headersSent) response.destroy();
    else answer(response, 500, plainText, `${simulatorWordsFor(request).say('control.failed')}\n`);
  }
};

export const createSimulatorServer = (served: Served): Server =>
  createServer((request, response) => {
    response.setHeader('date', new Date(served.simulation.clock.now()).toUTCString());
    void guarded(request, response, serve(served, request, response));
  });

/** Resolves with the port. */
export const listen = (server: Server, port: number, host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
