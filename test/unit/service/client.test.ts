import { mock } from 'node:test';
import { inspect } from 'node:util';
import should from 'should';
import { createClient } from '../../../lib/service/client';
import { RetryBudget } from '../../../lib/service/limits';
import { serviceError, type ServiceError } from '../../../lib/service/errors';
import { closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { clientOf, frozenClock, problemOf, problemReply, settle, text } from '../../support/service/setup';

const advisor = { advisor: 'ann' };

describe('a call to the service', () => {
  afterEach(closeAll);

  it('sends both credentials and the body, and returns the validated answer', async () => {
    const server = await startServer(() => ({ body: sent }));
    const answer = await clientOf(server.url).call('sendMessage', text, advisor);
    should(answer).eql({ data: sent, status: 200, attempts: 1 });
    const [request] = server.received;
    should(request?.method).equal('POST');
    should(request?.url).equal('/v1/text/messaging/messages');
    should(request?.body).equal('{"phone":"+14155550123","text":"Hello"}');
    should(request?.headers).containEql({
      authorization: 'Bearer token-1',
      'x-api-key': 'key-1',
      'content-type': 'application/json',
    });
  });

  it("puts ids into the path and the query under the contract's names", async () => {
    const server = await startServer(({ url }) => ({
      body: url.includes('consents')
        ? { state: 'none' }
        : url.includes('?')
          ? { data: [] }
          : { contactId: 12 },
    }));
    const client = clientOf(server.url, { names: { page: 'pageNumber', sortBy: 'order by' } });
    await client.call('getContact', { params: { contactId: 12 } }, advisor);
    await client.call('searchContacts', { query: { page: 2, pageSize: 50, sortBy: 'email' } }, advisor);
    await client.call('getConsent', { query: { phone: '+14155550123' } }, advisor);
    should(server.received.map(({ url }) => url)).eql([
      '/v1/core/contact/contacts/12',
      '/v1/core/contact/contacts?pageNumber=2&pageSize=50&order%20by=email',
      '/v1/text/messaging/consents?phone=%2B14155550123',
    ]);
  });

  it('fails as invalid_input without a request when no path can have an id', async () => {
    const server = await startServer(() => ({ body: sent }));
    const client = clientOf(server.url);
    const bad = [
      client.call('getContact', { params: { contactId: 1.5 } }, advisor),
      client.call('deleteGroup', { params: { groupId: Number.NaN } }, advisor),
    ];
    for (const call of bad) should(await problemOf(call)).containEql({ code: 'invalid_input', attempts: 0 });
    should(server.received).have.length(0);
  });

  it('asks again whether it may be made where the answer came late: others may have stopped waiting for it', async () => {
    const server = await startServer(() => ({ body: sent }));
    const clock = frozenClock();
    const client = clientOf(server.url, { clock });
    const { now } = Date;
    let permits = 0;
    const permit = async (): Promise<() => void> => {
      permits += 1;
      if (permits === 1) mock.method(Date, 'now', () => now() + 20_000);
      return () => undefined;
    };
    try {
      const answer = await settle(clock, client.call('sendMessage', text, { ...advisor, permit }));
      should(answer.attempts).equal(2);
    } finally {
      mock.restoreAll();
    }
    should(permits).equal(2);
    should(server.received).have.length(1);
  });

  it('fails as the service last said if its retry was forbidden or had no token', async () => {
    const forbidden = serviceError('blocked', 'token_unusable');
    for (const kind of ['permit', 'token'] as const) {
      const server = await startServer(({ index }) =>
        problemReply(index === 0 ? 'downstream_timeout' : 'unauthorized'),
      );
      const clock = frozenClock();
      const refuse = (): never => {
        throw forbidden;
      };
      const client = clientOf(server.url, {
        clock,
        token: (_advisor, rejected) => (rejected === undefined ? 'old' : refuse()),
      });
      const permit = async (): Promise<() => void> =>
        kind === 'permit' && server.received.length > 0 ? refuse() : () => undefined;
      const call = client.call('sendMessage', text, { ...advisor, permit });
      const attempts = kind === 'permit' ? 1 : 2;
      should(await problemOf(settle(clock, call))).containEql({ code: 'downstream_timeout', attempts });
    }
  });

  it('starts once, after its turn and its token, however often it is retried', async () => {
    const server = await startServer(({ index }) =>
      index < 2 ? problemReply('downstream_timeout') : { body: sent },
    );
    const clock = frozenClock();
    const seen: string[] = [];
    const client = clientOf(server.url, {
      clock,
      token: () => {
        seen.push('token');
        return 'token-1';
      },
    });
    const begin = async (): Promise<void> => {
      await nextIteration();
      seen.push(`begin, ${String(server.received.length)} received`);
    };
    const answer = await settle(clock, client.call('sendMessage', text, { ...advisor, begin }));
    should(answer.attempts).equal(3);
    should(seen).eql(['token', 'begin, 0 received', 'token', 'token']);
  });

  for (const [what, firstReply] of [
    ['a pause', { status: 429, headers: { 'retry-after': '60' } }],
    ['a service that hangs', undefined],
  ] as const)
    it(`is not kept as started while it waits for its turn, because of ${what}`, async () => {
      const server = await startServer(({ index }) => (index === 0 ? firstReply : { body: sent }));
      const clock = frozenClock();
      const client = clientOf(server.url, { clock, maxConcurrent: 1 });
      const started = new Set<number>();
      const calls = [0, 1, 2].map((index) =>
        client.call('sendMessage', text, {
          ...advisor,
          begin: async () => {
            await nextIteration();
            started.add(index);
          },
          undo: async () => {
            await nextIteration();
            started.delete(index);
          },
        }),
      );
      for (const call of calls) call.catch(() => undefined);
      await clock.move(0);
      should(server.received).have.length(1);
      await clock.move(1000);
      await nextIteration();
      should([...started]).eql(firstReply ? [] : [0]);
      if (!firstReply) return;
      await settle(clock, Promise.all(calls));
      should([...started].sort()).eql([0, 1, 2]);
      should(server.received).have.length(4);
    });

  it('gives back to the budget for retries when it succeeds', async () => {
    const server = await startServer(({ index }) =>
      index % 2 === 0 ? problemReply('downstream_timeout') : { body: sent },
    );
    const { spend } = RetryBudget.prototype;
    RetryBudget.prototype.spend = function () {
      this.left = RetryBudget.cost - 0.5;
    };
    try {
      const clock = frozenClock();
      const client = clientOf(server.url, { clock });
      for (let call = 0; call < 2; call++)
        should((await settle(clock, client.call('sendMessage', text, advisor))).attempts).equal(2);
    } finally {
      RetryBudget.prototype.spend = spend;
    }
  });

  it('gives up its slot when begin fails', async () => {
    const server = await startServer(() => ({ body: sent }));
    const client = clientOf(server.url, { maxConcurrent: 1 });
    const begin = (): Promise<void> => Promise.reject(new Error('disk full'));
    await client.call('sendMessage', text, { ...advisor, begin }).should.be.rejectedWith('disk full');
    should((await client.call('sendMessage', text, advisor)).attempts).equal(1);
    should(server.received).have.length(1);
  });

  it('respects the limit of concurrent requests', async () => {
    let running = 0;
    let most = 0;
    const server = await startServer(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 2));
      running--;
      return { body: sent };
    });
    const client = clientOf(server.url, { maxConcurrent: 3 });
    await Promise.all(Array.from({ length: 30 }, () => client.call('sendMessage', text, advisor)));
    should(most).equal(3);
  });

  it('shows neither token nor key when it fails, even if the service echoes them', async () => {
    const server = await startServer(({ headers }) => ({
      status: 400,
      body: {
        code: 'invalid_request',
        retryable: false,
        detail: `${headers.authorization ?? ''} ${String(headers['x-api-key'])}`,
      },
    }));
    const client = clientOf(server.url, { apiKey: 'canary-key', token: () => 'canary-token' });
    const error: unknown = await client.call('sendMessage', text, advisor).catch((thrown: unknown) => thrown);
    should((error as ServiceError).problem.detail).equal('Bearer … …');
    should(inspect(error, { depth: 9, showHidden: true })).not.match(/canary/);
  });

  it('cannot be made with an address or key that is unsafe for a token', () => {
    const make =
      (baseUrl: string, apiKey = 'key-1') =>
      () =>
        createClient({ baseUrl, apiKey, token: () => 'token-1' });
    for (const address of [
      'http://service.example/v1',
      'ftp://localhost/',
      'service',
      '',
      'http://localhost.evil.example/',
    ])
      should(make(address)).throw({ code: 'not_configured' });
    for (const key of ['', 'a b', 'a\r\nb'])
      should(make('https://service.example/v1', key)).throw({ code: 'not_configured' });
  });

  describe('answered with 401', () => {
    it('is retried once with a newer token', async () => {
      const server = await startServer(({ headers }) =>
        headers.authorization === 'Bearer new' ? { body: sent } : problemReply('unauthorized'),
      );
      const rejections: (string | undefined)[] = [];
      const client = clientOf(server.url, {
        repeatSends: 'never',
        token: (_advisor, rejected) => {
          rejections.push(rejected);
          return rejected === undefined ? 'old' : Promise.resolve('new');
        },
      });
      should((await client.call('sendMessage', text, advisor)).attempts).equal(2);
      should(rejections).eql([undefined, 'old']);
    });

    it('is retried with a newer token again if the last one worked in between', async () => {
      let valid = 1;
      let held = 1;
      const server = await startServer(({ headers }) =>
        headers.authorization === `Bearer ${String(valid)}` ? { body: sent } : problemReply('unauthorized'),
      );
      const client = clientOf(server.url, {
        token: (_advisor, rejected) => String(rejected === undefined ? held : (held = valid)),
      });
      for (; valid < 5; valid++) await client.call('sendMessage', text, advisor);
      should(server.received).have.length(7);
    });

    it('fails as unauthorized the second time, and mentions the API key', async () => {
      const server = await startServer(() => problemReply('unauthorized'));
      const problem = await problemOf(clientOf(server.url).call('sendMessage', text, advisor));
      should(problem).containEql({ code: 'unauthorized', attempts: 2, status: 401, retryable: false });
      should(problem.message).match(/API key/);
    });

    it('is not refreshed again for half a minute if two refreshed tokens were rejected too', async () => {
      const server = await startServer(() => problemReply('unauthorized'));
      const clock = frozenClock();
      let refreshes = 0;
      const token = (_advisor: string, rejected?: string): string => {
        if (rejected !== undefined) refreshes += 1;
        return `token-${String(refreshes)}`;
      };
      const client = clientOf(server.url, { clock, token });
      for (const [passed, expected] of [
        [0, 1],
        [0, 2],
        [29_000, 2],
        [2000, 3],
        [29_000, 3],
      ] as const) {
        await clock.move(passed);
        await problemOf(client.call('sendMessage', text, advisor));
        should(refreshes).equal(expected);
      }
    });

    it('fails like the refresh, and counts the requests made so far', async () => {
      const server = await startServer(() => problemReply('unauthorized'));
      const client = clientOf(server.url, {
        token: (_advisor, rejected) => {
          if (rejected === undefined) return 'old';
          throw serviceError('authorization_required', 'token_unusable');
        },
      });
      const problem = await problemOf(client.call('sendMessage', text, advisor));
      should(problem).containEql({ code: 'authorization_required', attempts: 1, retryable: true });
      should(problem.wording?.key).equal('token_unusable');
    });
  });

  describe('answered with 429', () => {
    it('pauses every call of the environment until Retry-After has passed, and uses up no retries', async () => {
      let limited = 6;
      const server = await startServer(() =>
        limited-- > 0
          ? { ...problemReply('rate_limited'), headers: { 'retry-after': '30' } }
          : { body: sent },
      );
      const clock = frozenClock();
      const pauses: number[] = [];
      const client = clientOf(server.url, {
        clock,
        retries: 0,
        repeatSends: 'never',
        onPause: (until) => pauses.push(until),
      });
      const first = client.call('sendMessage', text, advisor);
      await clock.move(0);
      should(client.limits.pausedUntil).equal(clock.now() + 30_000);
      should(pauses).eql([clock.now() + 30_000]);

      let begun = 0;
      const second = client.call(
        'getConsent',
        { query: { phone: '+14155550123' } },
        { ...advisor, lane: 'other', begin: () => void (begun += 1) },
      );
      second.catch(() => undefined);
      await clock.move(29_999);
      should(server.received).have.length(1);
      // A crash meanwhile leaves nothing that looks as if it had been sent.
      should(begun).equal(0);
      await clock.move(1);
      should(server.received.length).be.above(1);
      should((await settle(clock, first)).attempts).be.above(1);
    });

    it('is retried before requests of its lane that have not started', async () => {
      const server = await startServer(({ index }) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '5' } } : { body: sent },
      );
      const clock = frozenClock();
      const client = clientOf(server.url, { clock, maxConcurrent: 1 });
      const calls = ['first', 'second', 'third'].map((words) =>
        client.call('sendMessage', { body: { ...text.body, text: words } }, advisor),
      );
      await settle(clock, Promise.all(calls));
      should(server.received.map(({ body }) => /first|second|third/.exec(body)?.[0])).eql([
        'first',
        'first',
        'second',
        'third',
      ]);
    });

    it('understands a date, and limits both forms to an hour', async () => {
      const clock = frozenClock();
      const inHours = (hours: number): string => new Date(clock.now() + hours * 3_600_000).toUTCString();
      for (const write of [() => '100000000000', () => inHours(1.5)]) {
        const retryAfter = write();
        const server = await startServer(({ index }) =>
          index === 0
            ? { status: 429, headers: { date: inHours(0), 'Retry-After': retryAfter } }
            : { body: sent },
        );
        const client = clientOf(server.url, { clock });
        const call = client.call('sendMessage', text, advisor);
        await clock.move(3_599_999);
        should(server.received).have.length(1);
        await clock.move(1);
        should((await call).attempts).equal(2);
      }
    });

    it('pauses the environment for an hour at a time if told to wait longer, and sends nothing meanwhile', async () => {
      const server = await startServer(() => ({ status: 429, headers: { 'retry-after': '7200' } }));
      const frozen = frozenClock();
      let reads = 0;
      // Time passes between two readings of the clock.
      const clock = Object.assign(Object.create(frozen) as typeof frozen, {
        elapsed: () => frozen.now() + (reads += 0.001),
      });
      const client = clientOf(server.url, { clock });
      const first = problemOf(client.call('sendMessage', text, advisor));
      await frozen.move(0);
      const others = [1, 2, 3].map(() => problemOf(client.call('sendMessage', text, advisor)));
      should(server.received).have.length(1);
      should(client.limits.pausedUntil).be.above(frozen.now() + 3_599_000);
      await frozen.move(3_599_000);
      should(server.received).have.length(1);
      const ended = new AbortController();
      const all = Promise.all([first, ...others]).finally(() => {
        ended.abort();
      });
      for (let steps = 0; steps < 24 && !ended.signal.aborted; steps++) {
        const before = server.received.length;
        await frozen.move(1_800_000);
        should(server.received.length - before).be.belowOrEqual(4);
      }
      for (const problem of await all) should(problem).containEql({ code: 'rate_limited', attempts: 2 });
    });

    it('fails as rate_limited after an hour in total, while others go on waiting', async () => {
      const server = await startServer(() => ({
        ...problemReply('rate_limited'),
        headers: { 'retry-after': '600' },
      }));
      const clock = frozenClock();
      const client = clientOf(server.url, { clock });
      const problem = await problemOf(settle(clock, client.call('sendMessage', text, advisor), 600_000));
      should(problem).containEql({ code: 'rate_limited', status: 429, attempts: 7, retryable: true });
      should(client.limits.pausedUntil).be.above(clock.now());
    });
  });
});
