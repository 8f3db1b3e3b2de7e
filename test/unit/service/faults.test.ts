import { once } from 'node:events';
import net from 'node:net';
import should from 'should';
import type { Client, ClientOptions } from '../../../lib/service/client';
import type { RepeatSends } from '../../../lib/service/retry';
import { alsoClose, closeAll } from '../../support/closing';
import { startProxy } from '../../support/proxy';
import type { Proxy } from '../../support/proxy';
import { sent } from '../../support/sent';
import { listen, type Scripted, startServer } from '../../support/server';
import {
  clientOf,
  codeOf,
  frozenClock,
  problemOf,
  problemReply,
  settle,
  text,
} from '../../support/service/setup';

const advisor = { advisor: 'ann' };
const contact = { params: { contactId: 5 } };

describe('a failing network', () => {
  afterEach(closeAll);

  const behindProxy = async (
    options: Partial<ClientOptions> = {},
  ): Promise<{ server: Scripted; proxy: Proxy; client: Client; clock: ReturnType<typeof frozenClock> }> => {
    const server = await startServer(({ method, url }) => {
      if (method === 'DELETE')
        return server.received.filter((r) => r.method === 'DELETE').length > 1
          ? problemReply('not_found')
          : { status: 204 };
      return { body: url.includes('messages') ? sent : { contactId: 5, id: 5 } };
    });
    const proxy = alsoClose(await startProxy(server.port));
    const clock = frozenClock();
    return { server, proxy, clock, client: clientOf(proxy.url, { clock, ...options }) };
  };

  const cuts = {
    'cut before the request': { kind: 'cut', at: 'request' },
    'cut after the request': { kind: 'cut', at: 'received' },
    'cut in the answer': { kind: 'cut', at: 'body' },
    garbage: { kind: 'garbage', at: 'received' },
  } as const;

  for (const [kind, fault] of Object.entries(cuts)) {
    for (const repeatSends of ['never', 'contract'] as RepeatSends[]) {
      it(`${kind}: a send is not retried with ${repeatSends}, and its outcome is unknown`, async () => {
        const { client, proxy } = await behindProxy({ repeatSends });
        proxy.next.push(fault);
        should(await problemOf(client.call('sendMessage', text, advisor))).containEql({
          code: 'outcome_unknown',
          attempts: 1,
          retryable: false,
        });
      });
    }

    it(`${kind}: a send is retried with always`, async () => {
      const { client, clock, proxy } = await behindProxy({ repeatSends: 'always' });
      proxy.next.push(fault);
      should((await settle(clock, client.call('sendMessage', text, advisor))).attempts).equal(2);
    });

    it(`${kind}: reads, updates and deletes are retried`, async () => {
      const { client, clock, proxy } = await behindProxy();
      proxy.next.push(fault);
      should((await settle(clock, client.call('getContact', contact, advisor))).attempts).equal(2);
      proxy.next.push(fault);
      should(
        (await settle(clock, client.call('updateContact', { ...contact, body: {} }, advisor))).attempts,
      ).equal(2);
      proxy.next.push(fault);
      should((await settle(clock, client.call('deleteContact', contact, advisor))).attempts).equal(2);
    });

    it(`permanent ${kind}: a read fails as network_error, a write as outcome_unknown`, async () => {
      const { client, clock, proxy } = await behindProxy({ repeatSends: 'always' });
      proxy.otherwise = () => fault;
      const ends = async (call: Promise<unknown>): Promise<unknown> => {
        const { code, attempts, retryable } = await problemOf(settle(clock, call));
        return [code, attempts, retryable];
      };
      should(await ends(client.call('getContact', contact, advisor))).eql(['network_error', 5, true]);
      should(await ends(client.call('deleteContact', contact, advisor))).eql(['outcome_unknown', 5, false]);
      should(await ends(client.call('updateContact', { ...contact, body: {} }, advisor))).eql([
        'outcome_unknown',
        5,
        false,
      ]);
      should(await ends(client.call('sendMessage', text, advisor))).eql(['outcome_unknown', 5, false]);
    });
  }

  it('a retried delete that finds nothing left to delete succeeds; a first 404 does not', async () => {
    const { client, clock, proxy, server } = await behindProxy();
    proxy.next.push({ kind: 'cut', at: 'received' });
    should(await settle(clock, client.call('deleteContact', contact, advisor))).containEql({
      status: 404,
      attempts: 2,
    });
    should(server.received).have.length(2);
    should(await codeOf(client.call('deleteContact', contact, advisor))).equal('not_found');
  });

  it('an answer that trickles in past the time limit is cut off', async () => {
    const { client, proxy } = await behindProxy({ timeout: 600 });
    proxy.otherwise = () => ({ kind: 'drip', ms: 20 });
    should(await codeOf(client.call('sendMessage', text, advisor))).equal('outcome_unknown');
  });

  it('a request that is delayed past the time limit is cut off', async () => {
    const { client, proxy } = await behindProxy({ timeout: 600 });
    proxy.otherwise = () => ({ kind: 'stall', at: 'request' });
    should(await codeOf(client.call('sendMessage', text, advisor))).equal('outcome_unknown');
  });

  it('an unreachable service is a network_error, and even a send is retried', async () => {
    const gone = net.createServer();
    const port = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    const clock = frozenClock();
    for (const repeatSends of ['never', 'contract', 'always'] as const) {
      const client = clientOf(`http://127.0.0.1:${String(port)}`, { clock, repeatSends });
      const problem = await problemOf(settle(clock, client.call('sendMessage', text, advisor)));
      should(problem).containEql({ code: 'network_error', attempts: 5, retryable: true });
      should(problem.message).match(/ECONNREFUSED/);
    }
  });

  it('a service that fails and then becomes unreachable may have carried out the failed attempt', async () => {
    for (const [call, code] of [
      [(client: Client) => client.call('sendMessage', text, advisor), 'outcome_unknown'],
      [(client: Client) => client.call('getContact', contact, advisor), 'network_error'],
    ] as const) {
      const server = await startServer(() => {
        server.server.close();
        const reply = problemReply('downstream_timeout');
        return { ...reply, headers: { ...reply.headers, connection: 'close' } };
      });
      const clock = frozenClock();
      const ended = problemOf(settle<unknown>(clock, call(clientOf(server.url, { clock }))));
      should(await ended).containEql({ code, attempts: 5 });
    }
  });

  it('a connection that was never established cannot have carried anything out', async () => {
    const silent = net.createServer((socket) => socket.on('error', () => undefined).resume());
    const port = await listen(silent);
    const client = clientOf(`https://127.0.0.1:${String(port)}`, { timeout: 60, retries: 0 });
    should(await codeOf(client.call('sendMessage', text, advisor))).equal('network_error');
    await client.close();
    silent.close();
  });

  it('a connection that the server closes while idle is not reused, and costs nothing', async () => {
    const server = await startServer(() => ({ body: sent }));
    server.server.keepAliveTimeout = 1;
    const client = clientOf(server.url, { clock: frozenClock() });
    for (let i = 0; i < 5; i++) {
      should((await client.call('sendMessage', text, advisor)).attempts).equal(1);
      server.server.closeIdleConnections();
    }
    should(server.received).have.length(5);
  });

  it('an idle connection is dropped before a server would close it, however long the server would keep it', async () => {
    const server = await startServer(() => ({ body: sent }));
    server.server.keepAliveTimeout = 60_000;
    const connected = once(server.server, 'connection') as Promise<[net.Socket]>;
    await clientOf(server.url, { clock: frozenClock() }).call('sendMessage', text, advisor);
    const [socket] = await connected;
    await once(socket, 'close', { signal: AbortSignal.timeout(20_000) });
  });

  it('an outage does not multiply the load once the retry budget is empty', async () => {
    let down = true;
    const server = await startServer(() => (down ? { status: 503 } : { body: { contactId: 5 } }));
    const clock = frozenClock();
    const client = clientOf(server.url, { clock, retries: 4 });
    const calls = async (count: number): Promise<void> => {
      const all = Array.from({ length: count }, () =>
        client.call('getContact', contact, advisor).catch(() => undefined),
      );
      await settle(clock, Promise.all(all));
    };
    await calls(200);
    should(server.received.length).equal(200 + 100);
    await calls(200);
    should(server.received.length).equal(300 + 200);

    // Half of them fail; the successes pay for a few retries.
    down = false;
    let turn = 0;
    server.server.removeAllListeners('request');
    let received = 0;
    server.server.on('request', (_req, res) => {
      received++;
      const failing = turn++ % 2 === 0;
      res.writeHead(failing ? 503 : 200).end(failing ? '' : '{"contactId":5}');
    });
    await calls(400);
    should(received).belowOrEqual(440);
  });
});
