import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import axios, { type AxiosRequestConfig, type InternalAxiosRequestConfig } from 'axios';
import should from 'should';
import { postForm } from '../../../lib/service/transport';
import { closeAll } from '../../support/closing';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { clientOf, codeOf, text } from '../../support/service/setup';

const limits = { timeout: 10_000 };

describe('posting a form', () => {
  afterEach(closeAll);

  it('sends it form-encoded to exactly that address and returns any answer', async () => {
    const server = await startServer(() => ({ status: 400, body: { error: 'invalid_grant' } }));
    const answer = await postForm(
      `${server.url}/oauth/token?tenant=a`,
      { grant_type: 'x', code: 'a b&c=+' },
      limits,
    );
    should(answer).containEql({ status: 400, text: '{"error":"invalid_grant"}' });
    const [request] = server.received;
    should(request?.method).equal('POST');
    should(request?.url).equal('/oauth/token?tenant=a');
    should(request?.headers['content-type']).equal('application/x-www-form-urlencoded');
    should(Object.fromEntries(new URLSearchParams(request?.body))).eql({ grant_type: 'x', code: 'a b&c=+' });
  });

  it('reports how long the answer asks to wait', async () => {
    for (const status of [429, 503]) {
      const server = await startServer(() => ({ status, headers: { 'retry-after': '7' } }));
      should(await postForm(server.url, {}, limits)).containEql({ status, retryAfter: '7' });
    }
  });

  it('follows no redirect', async () => {
    const thief = await startServer(() => ({ body: {} }));
    const server = await startServer(() => ({ status: 307, headers: { location: thief.url } }));
    should((await postForm(server.url, { secret: 's' }, limits)).status).equal(307);
    should(thief.received).have.length(0);
  });

  it('requires TLS, except on localhost', async () => {
    should(await codeOf(postForm('http://auth.example/token', {}, limits))).equal('not_configured');
  });

  it('takes an answer that came in time, even if this process has stood still until its limit was over', async () => {
    const server = new Worker(
      `const { parentPort } = require('node:worker_threads');
      const server = require('node:http').createServer((request, response) => {
        parentPort.postMessage('asked');
        setTimeout(() => response.end('{}'), 50);
      });
      server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`,
      { eval: true },
    );
    const [port] = (await once(server, 'message')) as [number];
    const answer = postForm(`http://127.0.0.1:${port}`, {}, { timeout: 2000 });
    await once(server, 'message');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2200);
    should(await answer).containEql({ status: 200, text: '{}' });
    await server.terminate();
  });

  it('fails as network_error when no answer comes in time', async () => {
    const server = await startServer(() => undefined);
    should(await codeOf(postForm(server.url, {}, { timeout: 50 }))).equal('network_error');
  });
});

describe('every request', () => {
  afterEach(closeAll);

  it('identifies its sender and accepts problem bodies', async () => {
    const server = await startServer(() => ({ body: sent }));
    await clientOf(server.url).call('sendMessage', text, { advisor: 'ann' });
    await postForm(server.url, {}, limits);
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    should(server.received).have.length(2);
    for (const { headers } of server.received) {
      should(headers).containEql({
        'user-agent': `advisor-texting-node-red/${version}`,
        accept: 'application/json, application/problem+json',
      });
    }
  });

  it('passes through axios, whose interceptors see and may change all of it', async () => {
    const server = await startServer(({ url }) => ({ body: url.includes('contacts') ? { data: [] } : sent }));
    const seen: string[] = [];
    const { request } = axios.Axios.prototype;
    const watched = new WeakSet();
    const watch = (config: InternalAxiosRequestConfig): InternalAxiosRequestConfig => {
      seen.push(`${String(config.method)} ${String(config.baseURL)}${String(config.url)}`);
      config.headers['x-seen'] = 'yes';
      config.params = { ...(config.params as object), seen: 1 };
      return config;
    };
    axios.Axios.prototype.request = function (...asked: [string | AxiosRequestConfig, AxiosRequestConfig?]) {
      if (!watched.has(this)) this.interceptors.request.use(watch);
      watched.add(this);
      return request.apply(this, asked as Parameters<typeof request>) as never;
    };
    try {
      const client = clientOf(server.url);
      await client.call('sendMessage', text, { advisor: 'ann' });
      await client.call('searchContacts', { query: { page: 2 } }, { advisor: 'ann' });
      await postForm(`${server.url}/token`, {}, limits);
    } finally {
      axios.Axios.prototype.request = request;
    }
    should(seen).eql([
      `post ${server.url}/v1/text/messaging/messages`,
      `get ${server.url}/v1/core/contact/contacts`,
      `post ${server.url}/token`,
    ]);
    should(server.received.map(({ url, headers }) => [url.replace(/^[^?]*/, ''), headers['x-seen']])).eql([
      ['?seen=1', 'yes'],
      ['?page=2&seen=1', 'yes'],
      ['?seen=1', 'yes'],
    ]);
  });

  it('asks for an uncompressed answer, even from a service that compresses whenever it may', async () => {
    const server = await startServer(({ headers }, response) => {
      if (headers['accept-encoding'] === 'identity') return { body: sent };
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(JSON.stringify(sent)));
      return undefined;
    });
    const { data } = await clientOf(server.url).call('sendMessage', text, { advisor: 'ann' });
    should(data).eql(sent);
  });
});
