import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import { isLoopback } from '../addresses';
import { tried } from '../kinds';
import type { ReasonWord } from './errors';

/** The variable in lower or upper case, as curl and others read it. */
const variable = (variables: NodeJS.ProcessEnv, name: string): string =>
  (variables[name.toLowerCase()] ?? variables[name] ?? '').trim();

const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');

/** `example.com` and `.example.com` mean the host and all below it, `*` everything, `example.com:8443` that port. */
const isExcepted = (target: URL, exceptions: string): boolean =>
  exceptions.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true;
    const [, host = '', port] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (host === '' || (port !== undefined && port !== portOf(target))) return false;
    return target.hostname === host || target.hostname.endsWith(`.${host}`);
  });

/** The proxy for an address: the one that is set, else that of the usual variables; never for this machine. */
export const proxyFor = (
  target: URL,
  setting = '',
  variables: NodeJS.ProcessEnv = process.env,
): string | undefined => {
  // A proxy could not reach this machine for us.
  if (isLoopback(target.hostname)) return undefined;
  if (setting !== '') return setting;
  if (isExcepted(target, variable(variables, 'NO_PROXY'))) return undefined;
  const found = variable(variables, target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (found === '') return undefined;
  // curl and others accept a host and port without a scheme.
  return found.includes('://') ? found : `http://${found}`;
};

const ofProxy = 'proxy: ';

export const isOfProxy = (reason: ReasonWord): boolean =>
  typeof reason === 'string' && reason.startsWith(ofProxy);

/** An error on the way to the proxy; it does not name the proxy's address, which may hold a password. */
const proxyError = (reason: string): Error =>
  Object.assign(new Error('The proxy did not connect.'), { code: `${ofProxy}${reason}` });

/** A variable may hold a password that is not percent-encoded and has a percent sign. */
const decoded = (text: string): string => tried(() => decodeURIComponent(text)) ?? text;

const proxyCredentials = ({ username, password }: URL): Record<string, string> => {
  if (username === '' && password === '') return {};
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
};

/**
 * Connections through a proxy, for a pool of undici: a tunnel by CONNECT (RFC 9110, section 9.3.6), and TLS with the
 * service in it, so that the proxy sees neither tokens nor texts. The ProxyAgent of undici has pools of its own, which
 * do not keep our idle limit.
 */
export const tunnelThrough = (proxy: string, timeout: number): buildConnector.connector => {
  const secured = buildConnector({ timeout, allowH2: false });
  const connectTo = async (target: string): Promise<Socket> => {
    const url = URL.canParse(proxy) ? new URL(proxy) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) throw proxyError('address');
    const client = new Client(url.origin, { allowH2: false });
    const headers = { host: target, ...proxyCredentials(url) };
    const asking = client.connect({ path: target, headers, signal: AbortSignal.timeout(timeout) });
    const { statusCode, socket } = await asking.catch((fault: unknown) => {
      const { code, name } = fault as NodeJS.ErrnoException;
      client.destroy().catch(() => undefined);
      throw proxyError(name === 'TimeoutError' ? 'timeout' : (code ?? name));
    });
    if (statusCode >= 200 && statusCode <= 299) return socket as Socket;
    socket.destroy();
    throw proxyError(`HTTP ${String(statusCode)}`);
  };
  return (options, callback) => {
    const { protocol, hostname, port } = options;
    // undici has removed the brackets of an IPv6 address (RFC 9112, section 3.2.3, wants them).
    const host = hostname.includes(':') ? `[${hostname}]` : hostname;
    connectTo(`${host}:${port || (protocol === 'https:' ? '443' : '80')}`).then(
      (socket) => {
        if (protocol === 'https:') secured({ ...options, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (fault: unknown) => callback(fault as Error, null),
    );
  };
};
