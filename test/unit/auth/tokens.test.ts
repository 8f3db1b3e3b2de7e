import should from 'should';
import { newGrant, stateOf } from '../../../lib/auth/vault';
import { createClient } from '../../../lib/service/client';
import type { MovableClock } from '../../../simulator/movable-clock';
import { postForm } from '../../../lib/service/transport';
import { startSimulator, type Simulator } from '../../../simulator';
import { nextIteration } from '../../support/event-loop';
import {
  authorize,
  connectionTo,
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

describe('tokens', () => {
  let simulator: Simulator;
  let clock: MovableClock;
  let folder: string;
  let red: Process;

  beforeEach(async () => {
    clock = frozenClock();
    simulator = await startSimulator({
      clock,
      settings: { rotateRefreshTokens: true, accessTokenLifetime: lifetime },
    });
    folder = freshFolder();
    red = await start();
  });
  afterEach(() => simulator.close());
  after(removeFolders);

  const start = (options: ProcessOptions = {}): Promise<Process> =>
    startProcess(folder, { clock, ...options });
  const connection = (): ReturnType<typeof connectionTo> => connectionTo(simulator);
  const refreshes = (process = red): number =>
    process.posted.filter((fields) => fields['grant_type'] === 'refresh_token').length;
  const states = (): string[] => red.vault.list('env1').map(([, entry]) => stateOf(entry, clock.now()));
  const spend = (): Promise<void> => clock.move(lifetime * 1000);
  const status = async (token: string): Promise<number> => {
    const answer = await fetch(`${simulator.baseUrl}/core/contact/groups`, {
      headers: { authorization: `Bearer ${token}`, 'x-api-key': simulator.credentials.apiKey },
    });
    return answer.status;
  };

  it('are returned synchronously if they are available', async () => {
    await authorize(red, connection());
    should(red.tokens.token(connection(), 'default')).be.a.String();
    should(refreshes()).equal(0);
  });

  it('say who has not authorized', async () => {
    const fault = await failureOf(() => red.tokens.token(connection(), 'bob'));
    should(fault.code).equal('authorization_required');
    should(fault.message).match(/"bob" has not authorized "Sandbox"/);
    should(fault.problem.retryable).be.true();
  });

  it('are refreshed before they expire, while the current one is still used', async () => {
    await authorize(red, connection());
    const first = red.tokens.token(connection(), 'default');
    await clock.move((lifetime - 100) * 1000);
    should(red.tokens.token(connection(), 'default')).equal(first);
    should(red.tokens.token(connection(), 'default')).equal(first);
    while (red.tokens.token(connection(), 'default') === first) await nextIteration();
    should(refreshes()).equal(1);
  });

  it('are requested once for 1,000 callers when one expires', async () => {
    await authorize(red, connection());
    await spend();
    const tokens = await Promise.all(
      Array.from({ length: 1000 }, () => red.tokens.token(connection(), 'default')),
    );
    should(new Set(tokens).size).equal(1);
    should(refreshes()).equal(1);
  });

  it('survive ten rotations and a restart after each', async () => {
    await authorize(red, connection());
    for (let round = 0; round < 10; round += 1) {
      await spend();
      const process = await start();
      await process.tokens.token(connection(), 'default');
      should(refreshes(process)).equal(1);
    }
    should((await start()).tokens.token(connection(), 'default')).be.a.String();
  });

  it('are used only after the rotated refresh token is on disk', async () => {
    const seen = { isAnswered: false, isUsed: false };
    await authorize(red, connection());
    await spend();
    red = await start({
      post: async (...request) => {
        const answer = await postForm(...request);
        red.disk.fill('waits');
        seen.isAnswered = true;
        return answer;
      },
    });
    const asked = Promise.resolve(red.tokens.token(connection(), 'default')).finally(() => {
      seen.isUsed = true;
    });
    while (!seen.isAnswered) await nextIteration();
    for (let turn = 0; turn < 50; turn++) await nextIteration();
    should(seen.isUsed).be.false();
    red.disk.free();
    const token = await asked;
    should((await start()).tokens.token(connection(), 'default')).equal(token);
  });

  describe('while a refreshed one cannot be saved', () => {
    let stored: string;
    /** What happens to the disk while the service answers. */
    let meanwhile: () => void;
    const token = (step?: number): Promise<string> =>
      patiently(clock, async () => red.tokens.token(connection(), 'default'), step);

    beforeEach(async () => {
      meanwhile = () => undefined;
      red = await start({
        post: async (...request) => {
          const answer = await postForm(...request);
          meanwhile();
          return answer;
        },
      });
      await authorize(red, connection());
      stored = red.vault.get(connection(), 'default')?.grant.refreshToken ?? '';
      await spend();
    });

    for (const manner of ['refuses', 'waits'] as const) {
      it(`use it, warn, and save it once there is room (the store ${manner})`, async () => {
        meanwhile = () => red.disk.fill(manner);
        should(await status(await token())).equal(200);
        should(red.warnings.join()).match(/cannot be saved.*Check that the disk is writable/);
        await spend();
        const newest = await token();
        should(await status(newest)).equal(200);
        should(refreshes()).equal(2);
        should((await start()).vault.get(connection(), 'default')?.grant.refreshToken).equal(stored);
        red.disk.free();
        await patiently(clock, async () => {
          while (!red.warnings.join().includes('is now saved')) await nextIteration();
        });
        should((await start()).tokens.token(connection(), 'default')).equal(newest);
      });
    }

    it('are not requested while the store accepts nothing, and are afterwards', async () => {
      red.disk.fill('waits');
      // A write that waits holds the clock for a second at each step.
      const fault = await failureOf(() => token(10_000));
      should(fault.message).match(/could not be saved.*disk space/);
      should(fault.problem).containEql({ code: 'network_error', retryable: true });
      should(refreshes()).equal(0);
      red.disk.free();
      should(await status(await token())).equal(200);
    });

    it('do not bring back an advisor who is disconnected meanwhile', async () => {
      meanwhile = () => red.disk.fill('refuses');
      await token();
      red.disk.free();
      await red.vault.disconnect('env1', 'default');
      await clock.move(60_000);
      should((await failureOf(() => red.tokens.token(connection(), 'default'))).message).match(
        /has not authorized/,
      );
      should((await start()).vault.list('env1')).be.empty();
    });
  });

  it('are refreshed once after the service rejected one, and later callers get the newer one', async () => {
    await authorize(red, connection());
    const old = await red.tokens.token(connection(), 'default');
    await clock.move(1000);
    const [one, two] = await Promise.all([
      red.tokens.token(connection(), 'default', old),
      red.tokens.token(connection(), 'default', old),
    ]);
    should(one).equal(two).and.not.equal(old);
    should(red.tokens.token(connection(), 'default', old)).equal(one);
    should(refreshes()).equal(1);
  });

  it('require authorization after a 400, even after a restart, and are no longer requested', async () => {
    await authorize(red, connection());
    simulator.revoke();
    await spend();
    for (const process of [red, red, await start()]) {
      const fault = await failureOf(() => process.tokens.token(connection(), 'default'));
      should(fault.code).equal('authorization_required');
      should(fault.message).match(/has ended.*authorize again/);
    }
    should(refreshes()).equal(1);
  });

  it('are not carried over from sandbox to production, though the addresses are the same', async () => {
    await authorize(red, { ...connection(), service: 'sandbox' });
    const production = { ...connection(), service: 'production' };
    const fault = await failureOf(() => red.tokens.token(production, 'default'));
    should(fault.code).equal('authorization_required');
    should(await red.tokens.token({ ...connection(), service: 'sandbox' }, 'default')).be.a.String();
  });

  it('are taken from another process that refreshed them instead of giving up after a 400', async () => {
    await authorize(red, connection());
    const other = await start();
    await spend();
    const token = await other.tokens.token(connection(), 'default');
    should(await red.tokens.token(connection(), 'default')).equal(token);
    should(refreshes()).equal(0);
  });

  it('are taken from another process even if the service has issued the refresh token before', async () => {
    await authorize(red, connection());
    const issued = ['second', 'first', 'second'];
    const post: ProcessOptions['post'] = async () => {
      const body = { access_token: `token-${issued.length}`, refresh_token: issued.pop() };
      return { status: 200, text: JSON.stringify({ ...body, expires_in: lifetime }) };
    };
    const [one, other] = [await start({ post }), await start({ post })];
    for (const process of [one, one, other]) {
      await spend();
      await process.tokens.token(connection(), 'default');
    }
    should(await one.tokens.token(connection(), 'default')).equal('token-1');
    should(one.vault.get(connection(), 'default')?.grant.refreshToken).equal('second');
  });

  it('are read from the store once more when the service answers 400', async () => {
    await authorize(red, connection());
    const other = await start();
    await spend();
    let token: string | undefined;
    // As on machines that share the settings but no lease: the other one gets in between read and request.
    const late = await start({
      post: async (address, fields, options) => {
        token ??= await other.tokens.token(connection(), 'default');
        return postForm(address, fields, options);
      },
    });
    should(await late.tokens.token(connection(), 'default')).equal(token);
    should(refreshes(late)).equal(1);
  });

  for (const [what, answer] of [
    ['503', { status: 503, text: '' }],
    ['429', { status: 429, text: '' }],
    ['a redirect', { status: 307, text: '' }],
    ['a page instead of a token', { status: 200, text: '<html>' }],
    ['a temporary 400', { status: 400, text: '{"error":"temporarily_unavailable"}' }],
    ['a network failure', undefined],
  ] as const) {
    it(`keep the authorization over ${what} and continue later`, async () => {
      await authorize(red, connection());
      await spend();
      const broken = await start({
        post: () => (answer ? Promise.resolve(answer) : Promise.reject(new Error('down'))),
      });
      const fault = await failureOf(() =>
        patiently(clock, async () => broken.tokens.token(connection(), 'default'), 20_000),
      );
      should(fault.code).equal('network_error');
      should(fault.problem.retryable).be.true();
      should(await status(await (await start()).tokens.token(connection(), 'default'))).equal(200);
    });
  }

  it('continue with a valid one while the authorization service is down', async () => {
    await authorize(red, connection());
    await clock.move((lifetime - 100) * 1000);
    const broken = await start({ post: () => Promise.resolve({ status: 503, text: '' }) });
    const token = broken.tokens.token(connection(), 'default');
    await nextIteration();
    should(broken.tokens.token(connection(), 'default')).equal(token);
  });

  it('keep the authorization when the client secret is wrong, and say so', async () => {
    await authorize(red, connection());
    await spend();
    const wrong = { ...connection(), clientSecret: 'wrong' };
    const fault = await failureOf(() => red.tokens.token(wrong, 'default'));
    should(fault.message).match(/client ID or client secret.*correct them/);
    should(await red.tokens.token(connection(), 'default')).be.a.String();
  });

  it('are never sent to a server other than the one that issued them', async () => {
    await authorize(red, connection());
    await spend();
    const elsewhere = { ...connection(), tokenUrl: 'https://elsewhere.example/token' };
    const before = red.posted.length;
    const fault = await failureOf(() => red.tokens.token(elsewhere, 'default'));
    should(fault.code).equal('authorization_required');
    should(red.posted).have.length(before);
    should(await red.tokens.token(connection(), 'default')).be.a.String();
  });

  it('are never used for an application other than the one they were issued to', async () => {
    await authorize(red, connection());
    const before = red.posted.length;
    const fault = await failureOf(() =>
      red.tokens.token({ ...connection(), clientId: 'another' }, 'default'),
    );
    should(fault.code).equal('authorization_required');
    should(red.posted).have.length(before);
  });

  it('require authorization when there is no refresh token', async () => {
    const online = { ...connection(), scopes: ['openid', 'text.messaging.read'] };
    await authorize(red, online);
    should(states()).deepEqual(['authorized']);
    await spend();
    should(states()).deepEqual(['authorize_again']);
    const fault = await failureOf(() => red.tokens.token(online, 'default'));
    should(fault.code).equal('authorization_required');
    should(fault.message).match(/authorize again/);
    should(refreshes()).equal(0);
  });

  it('keep an authorization without a refresh token when the service answers 401', async () => {
    const online = { ...connection(), scopes: ['openid', 'core.contacts.read'] };
    await authorize(red, online);
    const client = createClient({
      baseUrl: simulator.baseUrl,
      apiKey: 'wrong',
      clock,
      token: (advisor, rejected) => red.tokens.token(online, advisor, rejected),
    });
    try {
      const fault = await failureOf(() =>
        client.call('searchContacts', { query: {} }, { advisor: 'default' }),
      );
      should(fault.problem).containEql({ code: 'unauthorized', status: 401 });
    } finally {
      await client.close();
    }
    should(states()).deepEqual(['authorized']);
    should(await status(await (await start()).tokens.token(online, 'default'))).equal(200);
  });

  it('do not bring back an advisor who was disconnected during a refresh', async () => {
    await authorize(red, connection());
    await spend();
    const slow = await start({
      post: async (address, fields, options) => {
        const answer = await postForm(address, fields, options);
        await slow.vault.disconnect('env1', 'default');
        return answer;
      },
    });
    const fault = await failureOf(() => slow.tokens.token(connection(), 'default'));
    should(fault.message).match(/has not authorized/);
    should((await start()).vault.list('env1')).be.empty();
  });

  it('do not replace an authorization that was made during a refresh', async () => {
    await authorize(red, connection());
    await spend();
    let isFirst = true;
    const slow = await start({
      post: async (address, fields, options) => {
        const answer = await postForm(address, fields, options);
        if (!isFirst) return answer;
        isFirst = false;
        const grant = { ...newGrant(connection(), 'default'), accessToken: 'new', refreshToken: 'newer' };
        await slow.vault.authorized(connection(), grant);
        return answer;
      },
    });
    should(await slow.tokens.token(connection(), 'default')).equal('new');
    should(slow.vault.get(connection(), 'default')?.grant.refreshToken).equal('newer');
  });

  it('are kept separately for each advisor', async () => {
    await authorize(red, connection(), 'alice', 'Alice');
    await authorize(red, connection(), 'bob', 'Bob');
    const [alice, bob] = ['alice', 'bob'].map((advisor) => red.tokens.token(connection(), advisor));
    should(alice).not.equal(bob);
    should(red.vault.list('env1').map(([, { grant }]) => grant.identity?.label)).deepEqual(['Alice', 'Bob']);
  });

  it('are kept separately for advisors named like JavaScript properties too', async () => {
    for (const advisor of ['__proto__', 'constructor', '["env1","x"]']) {
      await authorize(red, connection(), advisor);
      should((await start()).tokens.token(connection(), advisor)).be.a.String();
    }
    should(red.vault.list('env1')).have.length(3);
  });

  describe('with client credentials', () => {
    const own = (): ReturnType<typeof connectionTo> =>
      connectionTo(simulator, { grant: 'client_credentials' });

    it('are requested for the scopes less offline_access, for the advisor default', async () => {
      should(await status(await red.tokens.token(own(), 'default'))).equal(200);
      should(red.posted[0]).containEql({
        grant_type: 'client_credentials',
        scope: 'openid text.messaging.read core.contacts.read',
      });
      should(red.tokens.clientGrant(own())?.scopes).containDeep([
        'text.messaging.read',
        'core.contacts.read',
      ]);
      should((await failureOf(() => red.tokens.token(own(), 'bob'))).code).equal('authorization_required');
    });

    it('are requested once for many callers, and again when one has expired', async () => {
      await Promise.all(Array.from({ length: 100 }, () => red.tokens.token(own(), 'default')));
      should(red.posted).have.length(1);
      should(red.tokens.token(own(), 'default')).be.a.String();
      await spend();
      await red.tokens.token(own(), 'default');
      should(red.posted).have.length(2);
    });

    it('are requested before one expires, while it is still used', async () => {
      const first = await red.tokens.token(own(), 'default');
      await clock.move((lifetime - 100) * 1000);
      should(red.tokens.token(own(), 'default')).equal(first);
      while (red.tokens.token(own(), 'default') === first) await nextIteration();
      should(red.posted).have.length(2);
    });

    it('report when the client is refused, and when the service is down', async () => {
      const refused = await failureOf(() => red.tokens.token({ ...own(), clientSecret: 'wrong' }, 'default'));
      should(refused.code).equal('authorization_required');
      const down = await start({ post: () => Promise.resolve({ status: 503, text: '' }) });
      const failed = failureOf(() => patiently(clock, async () => down.tokens.token(own(), 'default')));
      should((await failed).code).equal('network_error');
    });
  });

  describe('seeded with a refresh token', () => {
    let seed: string;
    beforeEach(async () => {
      await authorize(red, connection());
      seed = red.vault.get(connection(), 'default')?.grant.refreshToken ?? '';
      folder = freshFolder();
      red = await start();
    });
    const seeded = (environment = 'env1'): ReturnType<typeof connectionTo> =>
      connectionTo(simulator, { seed, environment });

    it('start with it, and continue with the rotated one after a restart', async () => {
      await red.tokens.token(seeded(), 'default');
      should(red.posted[0]?.['refresh_token']).equal(seed);
      await spend();
      const later = await start();
      await later.tokens.token(seeded(), 'default');
      should(later.posted[0]?.['refresh_token']).not.equal(seed);
    });

    it('are listed before their first use', () => {
      should(red.vault.list('env1', seeded()).map(([advisor]) => advisor)).deepEqual(['default']);
    });

    it('share one authorization among environments with the same token', async () => {
      const tokens = await Promise.all(['env1', 'env2'].map((id) => red.tokens.token(seeded(id), 'default')));
      should(new Set(tokens).size).equal(1);
      should(refreshes()).equal(1);
    });

    it('keep a shared authorization when the environment that used it first is gone', async () => {
      await red.tokens.token(seeded('env1'), 'default');
      const forget = () => red.vault.forgetMissing(new Set(['env2']), 0, [seeded('env2')]);
      await forget();
      await forget();
      await red.tokens.token(seeded('env2'), 'default');
      should(refreshes()).equal(1);
      for (let times = 0; times < 2; times++) await red.vault.forgetMissing(new Set(['env2']), 0);
      should([...red.vault.environments()]).be.empty();
    });

    it('stay disconnected after a disconnect, until another token is set', async () => {
      await red.vault.disconnect('env1', 'default', seeded());
      const fault = await failureOf(async () => (await start()).tokens.token(seeded(), 'default'));
      should(fault.code).equal('authorization_required');
      should(red.posted).be.empty();
    });

    it('keep no secret after a disconnect, and another person who authorizes then need not be confirmed', async () => {
      await red.tokens.token(seeded(), 'default');
      await red.vault.disconnect('env1', 'default', seeded());
      const { vault, authorizations } = await start();
      const none = { accessToken: null, refreshToken: null };
      should(vault.get(seeded(), 'default')?.grant).containEql(none);
      await authorize({ authorizations }, seeded(), 'default', 'Bob');
      should(vault.get(seeded(), 'default')).containDeep({
        grant: { identity: { label: 'Bob' } },
        awaiting: null,
      });
    });
  });
});
