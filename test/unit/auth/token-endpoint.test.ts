import should from 'should';
import { createClient } from '../../../lib/service/client';
import { day } from '../../../lib/durations';
import type { MovableClock } from '../../../simulator/movable-clock';
import { postForm } from '../../../lib/service/transport';
import { startSimulator, type Simulator } from '../../../simulator';
import { nextIteration } from '../../support/event-loop';
import { SettableClock } from '../../support/settable-clock';
import {
  authorize,
  connectionTo,
  decide,
  failureOf,
  freshFolder,
  frozenClock,
  patiently,
  removeFolders,
  startProcess,
  type Process,
  type ProcessOptions,
} from '../../support/auth/setup';

const lifetime = 3600;

describe('a failing token endpoint', () => {
  let simulator: Simulator;
  let clock: MovableClock;
  let folder: string;
  let red: Process;

  type Trouble = { status: number; text?: string; retryAfter?: string } | 'down' | 'fine';
  let trouble: Trouble[] | Trouble;
  /** When a request was made, in seconds since the trouble started. */
  let asked: number[];
  let began: number;
  let troubled: Process;

  const connection = (): ReturnType<typeof connectionTo> => connectionTo(simulator);
  const spend = (): Promise<void> => clock.move(lifetime * 1000);
  const troubledStart = (changes: ProcessOptions = {}): Promise<Process> =>
    startProcess(folder, {
      clock,
      post: (...request) => {
        asked.push(Math.round((clock.now() - began) / 100) / 10);
        const now = Array.isArray(trouble) ? (trouble.shift() ?? 'fine') : trouble;
        if (now === 'fine') return postForm(...request);
        return now === 'down' ? Promise.reject(new Error('down')) : Promise.resolve({ text: '', ...now });
      },
      ...changes,
    });
  const begin = (now: Trouble[] | Trouble): void => {
    trouble = now;
    asked = [];
    began = clock.now();
  };

  beforeEach(async () => {
    clock = frozenClock();
    simulator = await startSimulator({
      clock,
      settings: { rotateRefreshTokens: true, accessTokenLifetime: lifetime },
    });
    folder = freshFolder();
    red = await startProcess(folder, { clock });
    await authorize(red, connection());
    await spend();
    troubled = await troubledStart();
  });
  afterEach(() => simulator.close());
  after(removeFolders);

  it('has thirty seconds to answer where others have more: after that, another process uses the refresh token', async () => {
    for (const [timeout, asked] of [
      [600_000, 30_000],
      [5000, 5000],
    ] as const) {
      const limits: number[] = [];
      const post: ProcessOptions['post'] = (address, fields, options) => {
        limits.push(options.timeout);
        return postForm(address, fields, options);
      };
      const process = await startProcess(folder, { clock, post });
      await process.tokens.token({ ...connection(), timeout }, 'default');
      should(limits).eql([asked]);
      await spend();
    }
  });

  it('loses none of 60 messages over three 503 answers', async () => {
    const fails = { status: 503 };
    begin([fails, fails, fails]);
    const client = createClient({
      baseUrl: simulator.baseUrl,
      apiKey: simulator.credentials.apiKey,
      clock,
      token: (advisor, rejected) => troubled.tokens.token(connection(), advisor, rejected),
    });
    try {
      const answers = await patiently(clock, () =>
        Promise.all(
          Array.from({ length: 60 }, () =>
            client.call('searchContacts', { query: {} }, { advisor: 'default' }),
          ),
        ),
      );
      should(answers.map((answer) => answer.status)).deepEqual(Array(60).fill(200));
    } finally {
      await client.close();
    }
    should(asked).deepEqual([0, 0.5, 1.5, 3.5]);
  });

  it('is retried with backoff, then given up, and the failure is remembered for all later callers', async () => {
    begin('down');
    const outcomes = await patiently(clock, () =>
      Promise.all(
        Array.from({ length: 100 }, () =>
          failureOf(() => troubled.tokens.token(connection(), 'default')).then(({ code }) => code),
        ),
      ),
    );
    should(outcomes).deepEqual(Array(100).fill('network_error'));
    should(asked).deepEqual([0, 0.5, 1.5, 3.5, 7.5]);
    await failureOf(() => troubled.tokens.token(connection(), 'default'));
    should(asked).have.length(5);
  });

  it('is asked a handful of times for 100 messages over 100 seconds', async () => {
    begin({ status: 503 });
    for (let second = 0; second < 100; second++) {
      await failureOf(() => patiently(clock, async () => troubled.tokens.token(connection(), 'default')));
      await clock.move(1000);
    }
    should(asked.length).be.within(5, 15);
    begin('fine');
    await clock.move(20_000);
    should(await troubled.tokens.token(connection(), 'default')).be.a.String();
  });

  for (const grant of ['authorization_code', 'client_credentials'] as const) {
    it(`is asked a handful of times for 1,000 messages that fail because of a wrong key (${grant})`, async () => {
      begin('fine');
      const settings = { ...connection(), grant };
      const client = createClient({
        baseUrl: simulator.baseUrl,
        apiKey: 'wrong',
        clock,
        token: (advisor, rejected) => troubled.tokens.token(settings, advisor, rejected),
      });
      try {
        for (let second = 0; second < 100; second++) {
          const faults = await Promise.all(
            Array.from({ length: 10 }, () =>
              failureOf(() => client.call('searchContacts', { query: {} }, { advisor: 'default' })),
            ),
          );
          should(faults.map(({ code }) => code)).deepEqual(Array(10).fill('unauthorized'));
          await clock.move(1000);
        }
      } finally {
        await client.close();
      }
      should(asked.length).be.within(2, 6);
    });
  }

  it('reports to listeners until when it is paused', async () => {
    begin({ status: 429, retryAfter: '120' });
    const settings = connection();
    const told: number[] = [];
    troubled.endpoints.onPause(() => told.push((troubled.endpoints.pausedUntil(settings) - began) / 1000));
    const token = Promise.resolve(troubled.tokens.token(settings, 'default'));
    while (told.length === 0) await nextIteration();
    should(told).deepEqual([120]);
    trouble = 'fine';
    await patiently(clock, () => token);
    should(troubled.endpoints.pausedUntil(settings)).equal(0);
  });

  it('is not retried when retries is 0', async () => {
    begin('down');
    const impatient = { ...connection(), retries: 0 };
    await failureOf(() => troubled.tokens.token(impatient, 'default'));
    should(asked).deepEqual([0]);
  });

  for (const retryAfter of ['120', 'date']) {
    it(`is left alone as long as a 429 asks with a ${retryAfter === 'date' ? 'date' : 'number'}, and no caller is lost`, async () => {
      const until = new Date(Math.ceil(clock.now() / 1000) * 1000 + 120_000);
      begin([{ status: 429, retryAfter: retryAfter === 'date' ? until.toUTCString() : retryAfter }]);
      const tokens = await patiently(clock, () =>
        Promise.all(Array.from({ length: 100 }, () => troubled.tokens.token(connection(), 'default'))),
      );
      should(new Set(tokens).size).equal(1);
      should(asked).have.length(2);
      should(asked[1]).be.within(120, 121.5);
    });
  }

  for (const [how, days] of [
    ['back', -1],
    ['ahead', 1],
  ] as const)
    it(`is left alone as long when the wall clock is set ${how}`, async () => {
      const set = new SettableClock(Date.now());
      begin([{ status: 503, retryAfter: '30' }]);
      const own = { ...connection(), grant: 'client_credentials', retries: 0 } as const;
      const { tokens } = await troubledStart({ clock: set });
      const { message } = await failureOf(() => tokens.token(own, 'default'));
      // Nobody has authorized: there is no authorization to keep, and nothing to refresh.
      should(message).match(/^No token could be obtained for .+ Nobody has to authorize again/);
      set.jump(days * day);
      await set.monotonic.move(29_000);
      await failureOf(() => tokens.token(own, 'default'));
      await set.monotonic.move(1000);
      should(await tokens.token(own, 'default')).be.a.String();
      should(asked).have.length(2);
    });

  it('is left alone as long as a 503 asks', async () => {
    begin([{ status: 503, retryAfter: '30' }]);
    await patiently(clock, async () => troubled.tokens.token(connection(), 'default'));
    should(asked).deepEqual([0, 30]);
  });

  it('is given up after an hour in total when it is rate limited permanently', async () => {
    begin({ status: 429, retryAfter: '1000' });
    const fault = await failureOf(() =>
      patiently(clock, async () => troubled.tokens.token(connection(), 'default'), 50_000),
    );
    should(fault.code).equal('network_error');
    should(asked).deepEqual([0, 1000, 2000, 3000]);
  });

  it('is no longer waited for when the environment closes, and serves the one deployed next', async () => {
    begin([{ status: 429, retryAfter: '1000' }]);
    const before = connection();
    const waiting = failureOf(() => troubled.tokens.token(before, 'default'));
    await clock.move(1000);
    void troubled.tokens.leave(before);
    const next = troubled.tokens.token(connection(), 'default');
    should((await waiting).code).equal('cancelled');
    should(await patiently(clock, () => next, 10_000)).be.a.String();
    should(asked).deepEqual([0, 1000]);
  });

  it('is asked for one advisor until it answers, then for all', async () => {
    const advisors = Array.from({ length: 50 }, (_, index) => `advisor ${String(index)}`);
    for (const advisor of advisors) await authorize(red, connection(), advisor);
    await spend();
    troubled = await troubledStart();
    begin('down');
    const all = (): Promise<unknown[]> =>
      Promise.all(advisors.map(async (advisor) => troubled.tokens.token(connection(), advisor)));
    await failureOf(() => patiently(clock, all));
    should(asked.length).be.within(5, 12);
    begin('fine');
    await clock.move(1000);
    await patiently(clock, all);
    should(asked).have.length(50);
  });

  for (const [what, answer] of [
    ['401', { status: 401, text: '{"error":"invalid_client"}' }],
    ['400', { status: 400, text: '{"error":"invalid_client"}' }],
    ['403', { status: 403 }],
  ] as const) {
    for (const grant of ['authorization_code', 'client_credentials'] as const) {
      it(`has its rejection of the client remembered (${what}, ${grant}) until that is corrected`, async () => {
        begin(answer);
        const wrong = { ...connection(), grant, clientSecret: 'wrong' };
        for (let second = 0; second < 100; second++) {
          const fault = await failureOf(() => troubled.tokens.token(wrong, 'default'));
          should(fault.code).equal('authorization_required');
          should(fault.message).match(/client ID or client secret/);
          await clock.move(1000);
        }
        should(asked.length).be.within(2, 12);
        begin('fine');
        should(await troubled.tokens.token({ ...connection(), grant }, 'default')).be.a.String();
      });
    }
  }

  it('has its rejection of the scopes of client credentials remembered too', async () => {
    begin({ status: 400, text: '{"error":"invalid_scope"}' });
    const own = { ...connection(), grant: 'client_credentials' } as const;
    for (let count = 0; count < 100; count++) {
      await failureOf(() => troubled.tokens.token(own, 'default'));
      await clock.move(10);
    }
    should(asked.length).be.within(1, 3);
  });

  it('serves other environments of the application whose scopes it does not reject', async () => {
    begin({ status: 400, text: '{"error":"invalid_scope"}' });
    const own = { ...connection(), grant: 'client_credentials' } as const;
    await failureOf(() => troubled.tokens.token({ ...own, scopes: ['text.messaging.wirte'] }, 'default'));
    begin('fine');
    should(await troubled.tokens.token(own, 'default')).be.a.String();
  });

  it('does not block a connection test', async () => {
    begin([{ status: 429, retryAfter: '1000' }]);
    const looking = failureOf(() => troubled.tokens.tokenWithin(10_000, connection(), 'default'));
    const waiting = troubled.tokens.token(connection(), 'default');
    should((await patiently(clock, () => looking)).code).equal('network_error');
    should(await patiently(clock, () => waiting, 10_000)).be.a.String();
  });

  it('is asked for somebody who authorizes, even while a failure is remembered', async () => {
    begin({ status: 401 });
    await failureOf(() => troubled.tokens.token(connection(), 'default'));
    for (const [now, result] of [
      [{ status: 401 }, { ok: false, why: 'client' }],
      [
        { status: 401, text: '{"error":"invalid_grant"}' },
        { ok: false, why: 'refused' },
      ],
      [
        { status: 200, text: '{"access_token":"a","token_type":"DPoP"}' },
        { ok: false, why: 'tokenType' },
      ],
      ['fine', { ok: true, advisor: 'late' }],
    ] as const) {
      const back = await decide(await troubled.authorizations.begin(connection(), 'late'));
      begin(now);
      const finished = await troubled.authorizations.finish(back.searchParams, { browser: '' });
      should(finished).containEql(result);
      should(asked).have.length(1);
    }
  });

  it('exchanges a code after two 503 answers, while somebody watches the page', async () => {
    const back = await decide(await troubled.authorizations.begin(connection(), 'late'));
    begin([{ status: 503 }, 'down']);
    const finished = await patiently(clock, () =>
      troubled.authorizations.finish(back.searchParams, { browser: '' }),
    );
    should(finished).containEql({ ok: true, advisor: 'late' });
  });

  it('keeps nobody waiting at the page for more than a few seconds', async () => {
    const back = await decide(await troubled.authorizations.begin(connection(), 'late'));
    begin({ status: 429, retryAfter: '1000' });
    const finished = await patiently(clock, () =>
      troubled.authorizations.finish(back.searchParams, { browser: '' }),
    );
    should(finished).deepEqual({ ok: false, why: 'later' });
    should(clock.now() - began).be.within(20_000, 25_000);
  });
});
