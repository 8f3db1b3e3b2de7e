import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import should from 'should';
import { mailedLinkLifetime, type Finished, type Returning } from '../../../lib/auth/authorization';
import type { MovableClock } from '../../../simulator/movable-clock';
import { startSimulator, type Simulator } from '../../../simulator';
import {
  callbackUri,
  connectionTo,
  decide,
  freshFolder,
  frozenClock,
  removeFolders,
  startProcess,
  type Process,
} from '../../support/auth/setup';

const minutes = (count: number): number => count * 60_000;

describe('authorization', () => {
  let simulator: Simulator;
  let clock: MovableClock;
  let folder: string;
  let red: Process;

  before(async () => {
    clock = frozenClock();
    simulator = await startSimulator({ clock });
  });
  beforeEach(async () => {
    folder = freshFolder();
    red = await startProcess(folder, { clock });
  });
  after(async () => {
    await simulator.close();
    removeFolders();
  });

  const connection = (changes = {}): ReturnType<typeof connectionTo> => connectionTo(simulator, changes);
  const begin = (advisor = 'default'): Promise<string> => red.authorizations.begin(connection(), advisor);
  const finish = (
    query: URLSearchParams | string,
    returning: Returning = { browser: '' },
  ): Promise<Finished> => red.authorizations.finish(new URLSearchParams(query), returning);
  const returned = async (advisor = 'default', person = 'Alice'): Promise<URLSearchParams> =>
    (await decide(await begin(advisor), person)).searchParams;
  const known = (): string[] => red.vault.list('env1').map(([advisor]) => advisor);

  it('sends every parameter at top level, beside the query of the address', async () => {
    const authUrl = 'https://login.example/authorize?returnTo=%2Fa%20b%3Fc&x=1&state=fixed';
    const url = await red.authorizations.begin(connection({ authUrl }), 'default');
    should(url).startWith('https://login.example/authorize?returnTo=%2Fa%20b%3Fc&x=1&');
    const query = new URL(url).searchParams;
    should([...query.keys()].sort()).deepEqual(
      [
        'client_id',
        'code_challenge',
        'code_challenge_method',
        'redirect_uri',
        'response_type',
        'returnTo',
        'scope',
        'state',
        'x',
      ].sort(),
    );
    should(query.get('response_type')).equal('code');
    should(query.get('code_challenge_method')).equal('S256');
    should(query.get('redirect_uri')).equal(callbackUri);
    should(query.get('scope')).equal('openid offline_access text.messaging.read core.contacts.read');
    should(Buffer.from(query.get('state') ?? '', 'base64url')).have.length(16);
  });

  it('exchanges the code with the verifier of the 32-byte challenge, and sends everything in the body', async () => {
    const url = await begin();
    should(await finish((await decide(url)).searchParams)).containEql({ ok: true, state: 'authorized' });
    const [fields] = red.posted;
    should(Object.keys(fields ?? {}).sort()).deepEqual([
      'client_id',
      'client_secret',
      'code',
      'code_verifier',
      'grant_type',
      'redirect_uri',
    ]);
    const verifier = fields?.['code_verifier'] ?? '';
    should(verifier).have.length(43);
    should(Buffer.from(verifier, 'base64url')).have.length(32);
    should(new URL(url).searchParams.get('code_challenge')).equal(
      createHash('sha256').update(verifier).digest('base64url'),
    );
  });

  it('never uses a state or verifier twice', async () => {
    const urls = await Promise.all(Array.from({ length: 100 }, () => begin()));
    const values = urls.flatMap((url) => {
      const query = new URL(url).searchParams;
      return [query.get('state'), query.get('code_challenge')];
    });
    should(new Set(values).size).equal(200);
  });

  describe('changes nothing', () => {
    afterEach(() => {
      should(known()).be.empty();
    });

    it('without a state', async () => {
      const query = await returned();
      query.delete('state');
      should(await finish(query)).deepEqual({ ok: false, why: 'invalid' });
      should(red.posted).be.empty();
    });

    it('with an unknown state', async () => {
      const query = await returned();
      query.set('state', 'AAAAAAAAAAAAAAAAAAAAAA');
      should(await finish(query)).deepEqual({ ok: false, why: 'invalid' });
      should(red.posted).be.empty();
    });

    it('after ten minutes', async () => {
      const query = await returned();
      await clock.move(minutes(10));
      should(await finish(query)).deepEqual({ ok: false, why: 'expired' });
      should(red.posted).be.empty();
    });

    it("with the code of another advisor's request", async () => {
      const mine = await returned('mine');
      const theirs = await returned('theirs');
      mine.set('code', theirs.get('code') ?? '');
      should(await finish(mine)).deepEqual({ ok: false, why: 'refused' });
    });

    it('when finished for another environment, which leaves the request valid', async () => {
      const query = await returned();
      should(await finish(query, { pastedFor: 'env2' })).deepEqual({ ok: false, why: 'invalid' });
      should(await finish(query, { pastedFor: 'env1' })).containEql({ ok: true });
      await red.vault.disconnect('env1', 'default');
    });

    it('when access was denied, or the service reports another error', async () => {
      should(await finish((await decide(await begin(), 'Alice', 'deny')).searchParams)).deepEqual({
        ok: false,
        why: 'denied',
      });
      for (const [error, why] of [
        ['server_error', 'declined'],
        ['invalid_scope', 'scopes'],
      ] as const) {
        const state = new URL(await begin()).searchParams.get('state') ?? '';
        should(await finish(`state=${state}&error=${error}`)).deepEqual({ ok: false, why });
      }
    });

    it('when access was denied without a state, which leaves every request valid', async () => {
      const query = await returned();
      should(await finish('error=access_denied')).deepEqual({ ok: false, why: 'denied' });
      should(await finish('error=access_denied&state=x', { pastedFor: 'env1' })).deepEqual({
        ok: false,
        why: 'denied',
      });
      should(await finish(query)).containEql({ ok: true });
      await red.vault.disconnect('env1', 'default');
    });

    for (const name of ['code', 'state', 'error']) {
      it(`when ${name} occurs twice, which leaves the request valid`, async () => {
        const query = await returned();
        const twice = new URLSearchParams(query);
        twice.append(name, query.get(name) ?? 'x');
        twice.append(name, 'y');
        should(await finish(twice)).deepEqual({ ok: false, why: 'invalid' });
        should(await finish(query)).containEql({ ok: true });
        await red.vault.disconnect('env1', 'default');
      });
    }

    it('for any other query', async () => {
      const names = fc.constantFrom(
        'code',
        'state',
        'error',
        'code[]',
        '__proto__',
        'constructor',
        'advisor',
        'env',
      );
      const pairs = fc.array(fc.tuple(names, fc.string()), { maxLength: 8 });
      await fc.assert(
        fc.asyncProperty(pairs, async (query) => {
          await begin();
          const result = await finish(new URLSearchParams(query));
          should(result).deepEqual({ ok: false, why: 'invalid' });
          should(({} as { polluted?: unknown }).polluted).be.undefined();
        }),
        { numRuns: 300 },
      );
    });
  });

  describe('in a browser that showed our page', () => {
    const [here, there] = ['secret of this browser', 'secret of another'];
    const enter = (url: string, browser: string): unknown =>
      red.authorizations.enter(new URL(url).searchParams.get('state') ?? '', browser);

    it('can only be finished there, and an attempt elsewhere does no harm', async () => {
      const url = await begin();
      should(enter(url, here)).deepEqual({ url, isBound: true, isSecure: false });
      const { searchParams } = await decide(url);
      for (const browser of ['', there]) {
        should(await finish(searchParams, { browser })).deepEqual({ ok: false, why: 'otherBrowser' });
        const denied = new URLSearchParams({
          state: searchParams.get('state') ?? '',
          error: 'access_denied',
        });
        should(await finish(denied, { browser })).deepEqual({ ok: false, why: 'denied' });
      }
      should(red.posted).be.empty();
      should(await finish(searchParams, { browser: here })).containEql({ ok: true });
      should(await finish(searchParams, { browser: here })).deepEqual({ ok: false, why: 'invalid' });
    });

    it('belongs to the first browser that shows it, which may show it again', async () => {
      const url = await begin();
      enter(url, here);
      should(enter(url, here)).containEql({ url });
      should(enter(url, there)).equal('otherBrowser');
      should(await finish((await decide(url)).searchParams, { browser: here })).containEql({ ok: true });
    });

    it('can be finished from a pasted address by the state alone', async () => {
      const url = await begin();
      enter(url, here);
      const { searchParams } = await decide(url);
      should(await finish(searchParams, { pastedFor: 'env1' })).containEql({ ok: true });
    });

    it('does not start after ten minutes, nor with an unknown state', async () => {
      const url = await begin();
      await clock.move(minutes(10));
      should(enter(url, here)).equal('expired');
      should(red.authorizations.enter('nonsense', here)).equal('invalid');
    });
  });

  it('reports the progress of the window and its result to the dialog', async () => {
    const attempt = () => red.authorizations.attempt('env1', 'ann');
    should(attempt()).deepEqual({ state: 'none' });
    const first = await red.authorizations.begin(connection(), 'ann');
    should(attempt()).deepEqual({ state: 'open' });
    await finish((await decide(first, 'Ann', 'deny')).searchParams);
    should(attempt()).deepEqual({ state: 'failed', why: 'denied' });
    const second = await red.authorizations.begin(connection(), 'ann');
    should(attempt()).deepEqual({ state: 'open' });
    await finish((await decide(second, 'Ann')).searchParams);
    should(attempt()).deepEqual({ state: 'none' });
    should(red.authorizations.attempt('env2', 'ann')).deepEqual({ state: 'none' });
  });

  it('accepts a callback once', async () => {
    const query = await returned();
    should(await finish(query)).containEql({ ok: true });
    should(await finish(query)).deepEqual({ ok: false, why: 'invalid' });
    should(red.posted).have.length(1);
  });

  it('accepts only one of two simultaneous callbacks', async () => {
    const query = await returned();
    const results = await Promise.all([finish(query), finish(query)]);
    should(results.map(({ ok }) => ok).sort()).deepEqual([false, true]);
  });

  it('ignores unknown parameters, even those that name another advisor or environment', async () => {
    const query = await returned('alice');
    query.append('advisor', 'bob');
    query.append('env', 'env2');
    query.append('redirect_uri', 'https://elsewhere.example/');
    should(await finish(query)).containEql({ ok: true, advisor: 'alice', environment: 'env1' });
    should(red.posted[0]?.['redirect_uri']).equal(callbackUri);
  });

  it('keeps what the service says about scopes', async () => {
    simulator.change({ scopes: ['openid', 'offline_access', 'text.messaging.read'] });
    try {
      const back = await decide(
        await red.authorizations.begin(connection({ scopes: ['openid', 'text.messaging.read'] }), 'a'),
      );
      should(await finish(back.searchParams)).containEql({ ok: true });
      should(red.vault.list('env1')[0]?.[1].grant.scopes).containEql('text.messaging.read');
    } finally {
      simulator.change({ scopes: [...new Set([...simulator.settings.scopes, 'core.contacts.read'])] });
    }
  });

  it('keeps the old authorization until another person is confirmed', async () => {
    should(await finish(await returned('default', 'Alice'))).containEql({ state: 'authorized' });
    const token = red.tokens.token(connection(), 'default');
    should(await finish(await returned('default', 'Bob'))).containEql({ ok: true, state: 'confirm' });
    should(red.tokens.token(connection(), 'default')).equal(token);
    const later = await startProcess(folder, { clock });
    should(await later.vault.confirm('env1', 'default')).be.true();
    should(later.tokens.token(connection(), 'default')).not.equal(token);
    should(await later.vault.confirm('env1', 'default')).be.false();
  });

  it('is gone once it was disconnected, even if another person was confirmed at the same time', async () => {
    for (const isConfirmedFirst of [true, false]) {
      await finish(await returned('default', 'Alice'));
      await finish(await returned('default', 'Bob'));
      const { vault } = red;
      const confirm = (): Promise<boolean> => vault.confirm('env1', 'default');
      const disconnect = (): Promise<boolean> => vault.disconnect('env1', 'default');
      const decided = await Promise.all(
        isConfirmedFirst ? [confirm(), disconnect()] : [disconnect(), confirm()],
      );
      should(decided).deepEqual([true, isConfirmedFirst]);
      should(vault.list('env1')).be.empty();
    }
  });

  it('keeps a seeded authorization until another person is confirmed, and for other environments after that', async () => {
    await finish(await returned('default', 'Alice'));
    const seed = red.vault.get(connection(), 'default')?.grant.refreshToken ?? '';
    await red.vault.disconnect('env1', 'default');
    const [mine, theirs] = [connection({ seed }), connection({ seed, environment: 'env2' })];
    const token = await red.tokens.token(mine, 'default');
    const back = await decide(await red.authorizations.begin(mine, 'default'), 'Bob');
    should(await finish(back.searchParams)).containEql({ ok: true, state: 'confirm' });
    should(red.tokens.token(mine, 'default')).equal(token);
    should(await red.vault.confirm('env2', 'default', theirs)).be.false();
    should(await red.vault.confirm('env1', 'default', mine)).be.true();
    should(red.vault.get(mine, 'default')?.grant.identity?.label).equal('Bob');
    should(red.tokens.token(theirs, 'default')).equal(token);
  });

  it('accepts a new authorization by the same person immediately', async () => {
    await finish(await returned('default', 'Alice'));
    await clock.move(1000);
    should(await finish(await returned('default', 'Alice'))).containEql({ state: 'authorized' });
  });

  describe('by a link', () => {
    const visit = async (token: string): Promise<URLSearchParams> =>
      (await decide(await red.authorizations.begin(connection(), 'bob', token))).searchParams;

    it('survives previews and a restart, and is used up only by success', async () => {
      const token = await red.vault.createLink('env1', 'bob');
      red = await startProcess(folder, { clock });
      should(await red.vault.readLink(token)).containEql({ environment: 'env1', advisor: 'bob' });
      await visit(token);
      const denied = await decide(await red.authorizations.begin(connection(), 'bob', token), 'Bob', 'deny');
      await finish(denied.searchParams);
      should(await red.vault.readLink(token)).be.ok();
      should(await finish(await visit(token))).containEql({ ok: true, advisor: 'bob' });
      should(await red.vault.readLink(token)).be.undefined();
      should(await (await startProcess(folder, { clock })).vault.readLink(token)).be.undefined();
    });

    it('is valid for a day', async () => {
      const token = await red.vault.createLink('env1', 'bob');
      await clock.move(minutes(24 * 60) - 1);
      should(await red.vault.readLink(token)).be.ok();
      await clock.move(1);
      should(await red.vault.readLink(token)).be.undefined();
      await red.vault.forgetMissing(new Set(), 1);
      should(await red.vault.link(token)).be.undefined();
    });

    it('is valid for seven days when it is sent by mail', async () => {
      const token = await red.vault.createLink('env1', 'bob', mailedLinkLifetime);
      await clock.move(minutes(7 * 24 * 60) - 1);
      should(await red.vault.readLink(token)).be.ok();
      await clock.move(1);
      should(await red.vault.readLink(token)).be.undefined();
    });

    it('cannot be guessed from what is stored', async () => {
      const token = await red.vault.createLink('env1', 'bob');
      const range = { from: Buffer.from([0]), to: Buffer.from([0xff]), limit: 100 };
      const stored = await (await red.openStore()).page('work', range);
      should(stored.length).be.above(0);
      for (const { key, value } of stored)
        should(key.toString('latin1') + JSON.stringify(value)).not.containEql(token);
      should(await red.vault.readLink('')).be.undefined();
    });

    it('works for one success, however many visits have started', async () => {
      const token = await red.vault.createLink('env1', 'bob');
      const visits = [await visit(token), await visit(token), await visit(token)];
      const results = await Promise.all(visits.slice(0, 2).map((query) => finish(query)));
      should(results).containEql({ ok: false, why: 'spentLink' });
      should(results.filter(({ ok }) => ok)).have.length(1);
      const before = red.posted.length;
      should(await finish(visits[2] ?? '')).deepEqual({ ok: false, why: 'spentLink' });
      should(red.posted).have.length(before);
    });

    it('lets a visit that started in time finish after the link has expired', async () => {
      const token = await red.vault.createLink('env1', 'bob');
      await clock.move(minutes(24 * 60) - 1);
      const query = await visit(token);
      await clock.move(minutes(1));
      should(await finish(query)).containEql({ ok: true, advisor: 'bob' });
    });

    it('remembers a limited number of visits', async () => {
      const token = await red.vault.createLink('env1', 'bob');
      const first = await visit(token);
      for (let count = 0; count < 30; count += 1) await red.authorizations.begin(connection(), 'bob', token);
      should(await finish(first)).deepEqual({ ok: false, why: 'invalid' });
      should(await finish(await visit(token))).containEql({ ok: true });
    });
  });
});
