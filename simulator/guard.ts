import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../lib/addresses';

const hostnameOf = (host: string | undefined): string | undefined =>
  host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;

/** A page of another site that sends requests here names itself in Origin. */
export const isForeignOrigin = (request: IncomingMessage): boolean => {
  const { origin, host, 'x-forwarded-host': forwarded } = request.headers;
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin).host;
  return from !== host && from !== forwarded;
};

/** A name that resolves to this machine lets another site's page in under that name (DNS rebinding). */
export const isForeignHost = (request: IncomingMessage): boolean => {
  const hostname = hostnameOf(request.headers.host);
  return hostname === undefined || !isLoopback(hostname);
};
