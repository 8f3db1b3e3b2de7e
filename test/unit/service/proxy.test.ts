import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { proxyFor } from '../../../lib/service/proxy';
import { createTransport, postForm } from '../../../lib/service/transport';
import type { Result } from '../../../lib/service/transport';
import { alsoClose, closeAll } from '../../support/closing';
import { sent } from '../../support/sent';
import { listen, startServer } from '../../support/server';
import { clientOf, codeOf, problemOf, text } from '../../support/service/setup';

interface ConnectProxy {
  readonly url: string;
  /** What was requested, and with which credentials. */
  readonly asked: { target: string; authorization: string | undefined }[];
  close(): Promise<void>;
}

/** An HTTP proxy that leads every CONNECT to one local port, whatever name was requested. */
const startConnectProxy = async (port: number, status = 200): Promise<ConnectProxy> => {
  const asked: ConnectProxy['asked'] = [];
  const open = new Set<net.Socket>();
  const server = http.createServer();
  server.on('connect', (request: http.IncomingMessage, client: net.Socket) => {
    asked.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] });
    const upstream = net.connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.write(`HTTP/1.1 ${String(status)} Whatever\r\n\r\n`);
    if (status === 200) client.pipe(upstream).pipe(client);
    else client.end();
  });
  const at = await listen(server);
  return alsoClose({
    url: `http://127.0.0.1:${String(at)}`,
    asked,
    async close() {
      for (const socket of open) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
};

const get = { method: 'GET', url: '/v1/x' } as const;

describe('an HTTP proxy', () => {
  afterEach(closeAll);

  const through = (origin: string, proxy: string, timeout = 10_000): (() => Promise<Result>) => {
    const transport = createTransport({ base: origin, timeout, connections: 1, proxy });
    alsoClose({ close: () => transport.destroy() });
    return () => transport.send(get);
  };

  it('opens one tunnel to the service for consecutive requests', async () => {
    const server = await startServer(() => ({ body: 'hello' }));
    const proxy = await startConnectProxy(server.port);
    const send = through('http://service.test', proxy.url);
    should(await send()).containEql({ state: 'answered', status: 200, text: 'hello' });
    should(await send()).containEql({ state: 'answered', text: 'hello' });
    should(proxy.asked).eql([{ target: 'service.test:80', authorization: undefined }]);
    should(server.received.map(({ url }) => url)).eql(['/v1/x', '/v1/x']);
  });

  it('gets an address of IPv6 in brackets', async () => {
    const server = await startServer(() => ({ body: 'hello' }));
    const proxy = await startConnectProxy(server.port);
    should(await through('http://[2001:db8::1]:8080', proxy.url)()).containEql({ text: 'hello' });
    should(proxy.asked.map(({ target }) => target)).eql(['[2001:db8::1]:8080']);
  });

  it('gets the user and password of its address', async () => {
    const server = await startServer(() => ({ body: 'hello' }));
    const proxy = await startConnectProxy(server.port);
    await through('http://service.test:8080', proxy.url.replace('://', '://ann:s%3Acret@'))();
    should(proxy.asked).eql([
      {
        target: 'service.test:8080',
        authorization: `Basic ${Buffer.from('ann:s:cret').toString('base64')}`,
      },
    ]);
    should(server.received[0]?.headers).not.have.property('proxy-authorization');
  });

  it('gets a password unchanged if its percent sign encodes nothing', async () => {
    const server = await startServer(() => ({ body: 'hello' }));
    const proxy = await startConnectProxy(server.port);
    await through('http://service.test', proxy.url.replace('://', '://ann:50%off@'))();
    const authorization = `Basic ${Buffer.from('ann:50%off').toString('base64')}`;
    should(proxy.asked).eql([{ target: 'service.test:80', authorization }]);
  });

  it('that refuses or is unreachable means no connection: nothing can have been carried out', async () => {
    const server = await startServer(() => ({ body: 'hello' }));
    const proxy = await startConnectProxy(server.port, 407);
    should(await through('http://service.test', proxy.url)()).eql({
      state: 'unreached',
      reason: 'proxy: HTTP 407',
    });
    should(await through('http://service.test', 'http://127.0.0.1:9')()).eql({
      state: 'unreached',
      reason: 'proxy: ECONNREFUSED',
    });
    const silent = net.createServer((socket) => {
      socket.resume();
    });
    const port = await listen(silent);
    alsoClose({
      close: () =>
        new Promise((resolve) =>
          silent.close(() => {
            resolve();
          }),
        ),
    });
    const { state } = await through('http://service.test', `http://127.0.0.1:${String(port)}`, 100)();
    should(state).equal('unreached');
    should(server.received).be.empty();
  });

  it('is never used for localhost', async () => {
    const server = await startServer(() => ({ body: sent }));
    await clientOf(server.url, { proxy: 'http://127.0.0.1:9' }).call('sendMessage', text, { advisor: 'ann' });
    await postForm(server.url, {}, { timeout: 10_000, proxy: 'http://127.0.0.1:9' });
    should(server.received).have.length(2);
  });

  it('carries API and token requests with TLS inside the tunnel', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'proxy-test-'));
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(folder, name)) as [string, string];
    const subject = ['-subj', '/CN=service.test', '-days', '1', '-nodes'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject],
      {
        stdio: 'ignore',
      },
    );
    const seen: string[] = [];
    const server = https.createServer(
      // One connection of HTTP/2 would carry all requests: it is not used, though the service offers it.
      { key: readFileSync(key), cert: readFileSync(cert), ALPNProtocols: ['h2', 'http/1.1'] },
      (request, response) => {
        seen.push(request.url ?? '');
        response.end(JSON.stringify(sent));
      },
    );
    const port = await listen(server);
    alsoClose({
      async close() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
        rmSync(folder, { recursive: true });
      },
    });
    const proxy = await startConnectProxy(port);
    const call = (): Promise<unknown> =>
      clientOf('https://service.test', { proxy: proxy.url, retries: 0 }).call('sendMessage', text, {
        advisor: 'ann',
      });
    // The certificate is not trusted: TLS inside the tunnel is verified as without a proxy.
    should((await problemOf(call())).code).equal('network_error');
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      await call();
      await postForm('https://login.test/token', {}, { timeout: 10_000, proxy: proxy.url });
      await postForm(`https://127.0.0.1:${String(port)}/direct`, {}, { timeout: 10_000 });
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    }
    should(seen).eql(['/v1/text/messaging/messages', '/token', '/direct']);
    should(proxy.asked.map(({ target }) => target)).eql([
      'service.test:443',
      'service.test:443',
      'login.test:443',
    ]);
  });

  it('configured for the process is used for token requests too', async () => {
    process.env['HTTPS_PROXY'] = 'http://127.0.0.1:9';
    try {
      should(await codeOf(postForm('https://login.test/token', {}, { timeout: 10_000 }))).equal(
        'network_error',
      );
      const { message } = await problemOf(postForm('https://login.test/token', {}, { timeout: 10_000 }));
      should(message).match(/proxy: ECONNREFUSED/);
    } finally {
      delete process.env['HTTPS_PROXY'];
    }
  });
});

describe('the choice of a proxy', () => {
  const target = new URL('https://api.service.example:8443/v1');
  const cases: [
    title: string,
    setting: string,
    variables: Record<string, string>,
    expected: string | undefined,
  ][] = [
    ['none without any', '', {}, undefined],
    [
      'the one that is set, whatever the process says',
      'http://a:1',
      { HTTPS_PROXY: 'http://b:1', NO_PROXY: '*' },
      'http://a:1',
    ],
    ['HTTPS_PROXY', '', { HTTPS_PROXY: 'http://b:1', HTTP_PROXY: 'http://c:1' }, 'http://b:1'],
    [
      'https_proxy before HTTPS_PROXY',
      '',
      { HTTPS_PROXY: 'http://b:1', https_proxy: 'http://d:1' },
      'http://d:1',
    ],
    ['a host and port alone', '', { HTTPS_PROXY: 'b:1' }, 'http://b:1'],
    ['not HTTP_PROXY for https', '', { HTTP_PROXY: 'http://c:1' }, undefined],
    ...[
      ['*', undefined],
      ['service.example', undefined],
      ['.service.example', undefined],
      ['*.service.example', undefined],
      ['other.example, api.service.example', undefined],
      ['API.service.example:8443', undefined],
      ['api.service.example:443', 'http://b:1'],
      ['vice.example', 'http://b:1'],
      ['', 'http://b:1'],
    ].map(([no, expected]): (typeof cases)[number] => [
      `NO_PROXY=${no ?? ''}`,
      '',
      { HTTPS_PROXY: 'http://b:1', NO_PROXY: no ?? '' },
      expected,
    ]),
  ];
  for (const [title, setting, variables, expected] of cases) {
    it(title, () => {
      should(proxyFor(target, setting, variables)).equal(expected);
    });
  }

  it('is none for localhost, by any name', () => {
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]'])
      should(proxyFor(new URL(`https://${host}/`), 'http://a:1', { HTTPS_PROXY: 'http://b:1' })).equal(
        undefined,
      );
  });
});
