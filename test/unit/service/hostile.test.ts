import fc from 'fast-check';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import http from 'node:http';
import net from 'node:net';
import should from 'should';
import { hour, second } from '../../../lib/durations';
import { closeAll } from '../../support/closing';
import { only } from '../../support/only';
import { sent } from '../../support/sent';
import { listen, startServer } from '../../support/server';
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

const megabyte = 1024 * 1024;

/** The most bytes that one read of a socket returns. */
const oneRead = 64 * 1024;

describe('a hostile or broken server', () => {
  afterEach(closeAll);

  it('that redirects elsewhere never makes the token arrive there', async () => {
    const thief = await startServer(() => ({ body: sent }));
    for (const status of [301, 302, 303, 307, 308]) {
      const server = await startServer(() => ({
        status,
        headers: { location: `${thief.url}/v1/text/messaging/messages` },
      }));
      should(await problemOf(clientOf(server.url).call('sendMessage', text, advisor))).containEql({
        code: 'invalid_response',
        status,
        attempts: 1,
      });
    }
    should(thief.received).have.length(0);
  });

  it('whose clock is an hour ahead makes requests pause no longer than it means', async () => {
    const clock = frozenClock();
    const at = (seconds: number): string => new Date(clock.now() + hour + seconds * second).toUTCString();
    const headers = { date: at(0), 'retry-after': at(5) };
    const server = await startServer(() => ({ status: 429, headers }));
    const pausedUntil = await new Promise<number>((resolve) => {
      const client = clientOf(server.url, { clock, onPause: resolve });
      client.call('sendMessage', text, advisor).catch(() => undefined);
    });
    should(pausedUntil - clock.now()).equal(5 * second);
  });

  it('that never stops answering is cut off after 5 MB, and the connection is closed', async () => {
    const chunk = 'x'.repeat(256 * 1024);
    const server = await startServer((_request, response) => {
      const more = (): void => {
        while (!response.destroyed) if (!response.write(chunk)) break;
      };
      response.on('drain', more);
      response.on('error', () => undefined);
      more();
      return undefined;
    });
    const connections: net.Socket[] = [];
    const onConnected = (event: unknown): void => {
      const { socket } = event as { socket: net.Socket };
      if (socket.remotePort === server.port) connections.push(socket);
    };
    subscribe('undici:client:connected', onConnected);
    const problem = await problemOf(clientOf(server.url).call('getContact', contact, advisor));
    unsubscribe('undici:client:connected', onConnected);
    should(problem).containEql({ code: 'invalid_response', attempts: 1 });
    should(problem.message).match(/larger than 5 MB/);
    const connection = only(connections);
    should(connection.destroyed).be.true();
    // One read may exceed the limit; the answer's headers and chunk framing are less than a second read.
    should(connection.bytesRead).be.within(5 * megabyte, 5 * megabyte + 2 * oneRead);
  });

  it('behind a gateway that answers for it leaves a send unknown and a read retried', async () => {
    for (const body of [
      '',
      '<html><h1>502 Bad Gateway</h1></html>',
      '{"message":"upstream',
      '{"error":"x"}',
    ]) {
      const server = await startServer(({ method, index }) =>
        method === 'POST' || index < 2 ? { status: 502, body } : { body: { contactId: 5 } },
      );
      const clock = frozenClock();
      const client = clientOf(server.url, { clock });
      const problem = await problemOf(client.call('sendMessage', text, advisor));
      should(problem).containEql({ code: 'outcome_unknown', status: 502, attempts: 1, retryable: false });
      should((await settle(clock, client.call('getContact', contact, advisor))).attempts).equal(2);
    }
  });

  it('that says retryable is believed as far as repeatSends allows', async () => {
    for (const [repeatSends, attempts] of [
      ['never', 1],
      ['contract', 5],
      ['always', 5],
    ] as const) {
      const server = await startServer(() => problemReply('internal_error'));
      const clock = frozenClock();
      const call = clientOf(server.url, { clock, repeatSends }).call('sendMessage', text, advisor);
      should(await problemOf(settle(clock, call))).containEql({
        code: 'internal_error',
        attempts,
        retryable: true,
      });
    }
  });

  it('that sends endless headers, a bad status line or an early upgrade breaks only that call', async () => {
    const answers = [
      `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`,
      'HTTP/9.9 what\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 10\r\ncontent-length: 11\r\n\r\n{}',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"successes":[]',
    ];
    for (const answer of answers) {
      const raw = net.createServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => socket.end(answer));
      });
      const port = await listen(raw);
      const client = clientOf(`http://127.0.0.1:${String(port)}`);
      should(await codeOf(client.call('sendMessage', text, advisor))).equal(
        'outcome_unknown',
        answer.slice(0, 40),
      );
      await client.close();
      raw.close();
    }
  });

  it('always produces an outcome, whatever it answers', async () => {
    let next = { status: 200, body: '' };
    const server = await startServer(() => ({
      ...next,
      headers: { 'retry-after': next.body.replace(/[^ -~]/g, '') },
    }));
    const clock = frozenClock();
    const client = clientOf(server.url, { clock, retries: 1 });
    const status = fc.constantFrom(200, 201, 204, 206, 302, 400, 401, 403, 404, 409, 418, 500, 502, 503, 599);
    await fc.assert(
      fc.asyncProperty(
        status,
        fc.oneof(fc.string(), fc.json(), fc.constant(JSON.stringify(sent))),
        async (code, body) => {
          next = { status: code, body };
          const call = client.call('sendMessage', text, advisor).then(
            ({ data }) => should(data).be.an.Object(),
            (error: unknown) => should(error).have.property('problem'),
          );
          await settle(clock, call);
        },
      ),
      { numRuns: 150, seed: 7 },
    );
  });

  it('that answers before it has the whole request still counts as one attempt', async () => {
    const server = http.createServer((_req, res) => {
      res.writeHead(413, { connection: 'close' });
      res.end();
    });
    const port = await listen(server);
    const client = clientOf(`http://127.0.0.1:${String(port)}`);
    const long = { body: { phone: '+14155550123', text: 'x'.repeat(100_000) } };
    should(await problemOf(client.call('sendMessage', long, advisor))).containEql({
      code: 'payload_too_large',
      attempts: 1,
    });
    await client.close();
    server.close();
  });
});
