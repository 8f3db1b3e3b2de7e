import type { IncomingMessage } from 'node:http';
import { isLoopback } from '../lib/addresses';

const hostnameOf = (host: string | undefined): string | undefined =>
  host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;

/** Whether the request comes from a page of another site, which its browser names in `Origin`. */
export const isForeignOrigin = (request: IncomingMessage): boolean => {
  const { origin, host, 'x-forwarded-host': forwarded } = request.headers;
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin).host;
  return from !== host && from !== forwarded;
};

/** Whether the host is not this machine: another site's page can come in under a name that resolves to it (DNS rebinding). */
export const isForeignHost = (request: IncomingMessage): boolean => {
  const hostname = hostnameOf(request.headers.host);
  return hostname === undefined || !isLoopback(hostname);
};
