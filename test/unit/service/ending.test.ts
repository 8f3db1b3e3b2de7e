import should from 'should';
import { listenersOn } from '../../../lib/service/concurrency';
import type { Problem } from '../../../lib/service/errors';
import { closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { codeOf, clientOf, frozenClock, problemOf, problemReply, text } from '../../support/service/setup';

const advisor = { advisor: 'ann' };

describe('a call', () => {
  afterEach(closeAll);

  describe('that is cancelled', () => {
    it('before it starts makes no request', async () => {
      const server = await startServer(() => undefined);
      const client = clientOf(server.url, { maxConcurrent: 1 });
      const busy = client.call('sendMessage', text, advisor);
      while (server.received.length === 0) await nextIteration();
      const cancel = new AbortController();
      const waiting = client.call('sendMessage', text, { ...advisor, signal: cancel.signal });
      cancel.abort();
      should(await problemOf(waiting)).containEql({ code: 'cancelled', attempts: 0 });
      should(await codeOf(client.call('sendMessage', text, { ...advisor, signal: cancel.signal }))).equal(
        'cancelled',
      );
      should(server.received).have.length(1);
      const ended = codeOf(busy);
      await client.close(0);
      should(await ended).equal('outcome_unknown');
    });

    const inFlight = async (name: 'update' | 'read', retries: number): Promise<unknown> => {
      const cancel = new AbortController();
      const server = await startServer(() => {
        setImmediate(() => {
          cancel.abort();
        });
        return undefined;
      });
      const client = clientOf(server.url, { retries });
      const options = { ...advisor, signal: cancel.signal };
      const call =
        name === 'update'
          ? client.call('updateContact', { params: { contactId: 1 }, body: {} }, options)
          : client.call('getContact', { params: { contactId: 1 } }, options);
      const { code, attempts } = await problemOf(call);
      return [code, attempts];
    };

    for (const retries of [0, 4]) {
      it(`in flight is aborted if that is harmless, with ${String(retries)} retries`, async () => {
        should(await inFlight('update', retries)).eql(['outcome_unknown', 1]);
        should(await inFlight('read', retries)).eql(['cancelled', 1]);
      });
    }

    it('in flight completes if it must not happen twice', async () => {
      const cancel = new AbortController();
      const server = await startServer(() => {
        cancel.abort();
        return { body: sent };
      });
      const client = clientOf(server.url, {});
      const { attempts } = await client.call('sendMessage', text, { ...advisor, signal: cancel.signal });
      should(attempts).equal(1);
    });

    it('while it waits for a retry stops waiting, and fails as the service last said', async () => {
      const server = await startServer(() => problemReply('downstream_timeout'));
      const clock = frozenClock();
      const client = clientOf(server.url, { clock });
      const cancelled = async (name: 'send' | 'read'): Promise<Problem> => {
        const cancel = new AbortController();
        const options = { ...advisor, signal: cancel.signal };
        const call =
          name === 'send'
            ? client.call('sendMessage', text, options)
            : client.call('searchContacts', { query: {} }, options);
        const ended = problemOf(call);
        await clock.move(0);
        cancel.abort();
        return ended;
      };
      should(await cancelled('send')).containEql({
        code: 'downstream_timeout',
        attempts: 1,
        retryable: false,
      });
      should(await cancelled('read')).containEql({ code: 'cancelled', attempts: 1 });
    });
  });

  describe('whose token is slow to arrive', () => {
    const never = new Promise<string>(() => undefined);

    it('stops waiting when it is cancelled or the client is closed', async () => {
      const server = await startServer(() => ({ body: sent }));
      const client = clientOf(server.url, { token: () => never });
      const cancel = new AbortController();
      const cancelled = codeOf(client.call('sendMessage', text, { ...advisor, signal: cancel.signal }));
      const closed = codeOf(client.call('sendMessage', text, advisor));
      cancel.abort();
      should(await cancelled).equal('cancelled');
      await client.close();
      should(await closed).equal('cancelled');
      should(server.received).be.empty();
    });

    it('leaves no listener behind when it stops waiting', async () => {
      const waiting = new AbortController();
      const client = clientOf('http://127.0.0.1:1', { token: () => never });
      const call = codeOf(client.call('sendMessage', text, { ...advisor, signal: waiting.signal }));
      should(listenersOn(waiting.signal)).equal(1);
      await client.close();
      should(await call).equal('cancelled');
      should(listenersOn(waiting.signal)).equal(0);
    });

    it('causes no unhandled rejection if the token fails after the cancellation', async () => {
      const rejections: unknown[] = [];
      const note = (reason: unknown): void => void rejections.push(reason);
      const others = process.rawListeners('unhandledRejection') as NodeJS.UnhandledRejectionListener[];
      process.removeAllListeners('unhandledRejection').on('unhandledRejection', note);
      try {
        const cancel = new AbortController();
        const client = clientOf('http://127.0.0.1:1', {
          token: () => {
            cancel.abort();
            return Promise.reject(new Error('no token'));
          },
        });
        const call = client.call('sendMessage', text, { ...advisor, signal: cancel.signal });
        should(await codeOf(call)).equal('cancelled');
        await nextIteration();
      } finally {
        process.off('unhandledRejection', note);
        for (const other of others) process.on('unhandledRejection', other);
      }
      should(rejections).eql([]);
    });

    it('blocks no other call, even if the token expired in the queue', async () => {
      let release = (): void => undefined;
      const server = await startServer(async ({ index }) => {
        if (index === 0) await new Promise<void>((resolve) => (release = resolve));
        return { body: sent };
      });
      let hasEnded = false;
      const token = (who: string): string | Promise<string> => (who === 'slow' && hasEnded ? never : 'token');
      const client = clientOf(server.url, { maxConcurrent: 1, token });
      const first = client.call('sendMessage', text, advisor);
      while (server.received.length === 0) await nextIteration();
      const slow = codeOf(client.call('sendMessage', text, { advisor: 'slow' }));
      const other = client.call('sendMessage', text, advisor);
      hasEnded = true;
      release();
      await Promise.all([first, other]);
      await client.close();
      should(await slow).equal('cancelled');
      should(server.received).have.length(2);
    });
  });

  describe('when the client is closed', () => {
    it('finishes if it was in flight, and is cancelled otherwise', async () => {
      let answer: (() => void) | undefined;
      const server = await startServer(async () => {
        await new Promise<void>((resolve) => (answer = resolve));
        return { body: sent };
      });
      const client = clientOf(server.url, { maxConcurrent: 1 });
      const first = client.call('sendMessage', text, advisor);
      const second = codeOf(client.call('sendMessage', text, advisor));
      while (answer === undefined) await nextIteration();
      const closed = client.close();
      should(await second).equal('cancelled');
      answer();
      should((await first).attempts).equal(1);
      await closed;
      should(await codeOf(client.call('sendMessage', text, advisor))).equal('cancelled');
      should(server.received).have.length(1);
    });

    it('is reported within the time limit if the service does not answer', async () => {
      const server = await startServer(() => undefined);
      const client = clientOf(server.url);
      const send = codeOf(client.call('sendMessage', text, advisor));
      const read = codeOf(client.call('getContact', { params: { contactId: 1 } }, advisor));
      while (server.received.length < 2) await nextIteration();
      await client.close(10);
      should(await send).equal('outcome_unknown');
      should(await read).equal('cancelled');
    });

    it('stops waiting for a backoff or a pause', async () => {
      const server = await startServer(({ url }) =>
        url.includes('messages')
          ? problemReply('internal_error')
          : { status: 429, headers: { 'retry-after': '99' } },
      );
      const clock = frozenClock();
      const client = clientOf(server.url, { clock });
      const send = codeOf(client.call('sendMessage', text, advisor));
      const read = codeOf(client.call('getContact', { params: { contactId: 1 } }, advisor));
      await clock.move(0);
      await client.close();
      should(await send).equal('internal_error');
      should(await read).equal('cancelled');
    });
  });
});
