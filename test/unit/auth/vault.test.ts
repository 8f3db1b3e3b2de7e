import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { day } from '../../../lib/durations';
import { movableGrants, newGrant, type Grant, Vault } from '../../../lib/auth/vault';
import type { MovableClock } from '../../../simulator/movable-clock';
import { postForm } from '../../../lib/service/transport';
import { Listeners } from '../../../lib/listeners';
import { createMemoryStore } from '../../../lib/state/memory';
import { moveRecords, type Movable } from '../../../lib/state/moving';
import { key, type Store } from '../../../lib/state/store';
import { startSimulator, type Simulator } from '../../../simulator';
import { runChild, type Child } from '../../support/state/child';
import { nextIteration } from '../../support/event-loop';
import {
  authorize,
  connectionTo,
  failureOf,
  freshFolder,
  frozenClock,
  removeFolders,
  startProcess,
  type Process,
  type ProcessOptions,
} from '../../support/auth/setup';
import { peers } from '../../support/state/peers';
import { overStore } from '../../support/state/over-store';

const lifetime = 3600;

describe('the vault', () => {
  let simulator: Simulator;
  let clock: MovableClock;
  let folder: string;
  const open: Process[] = [];

  beforeEach(async () => {
    clock = frozenClock();
    simulator = await startSimulator({ clock, settings: { rotateRefreshTokens: true } });
    folder = freshFolder();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((process) => process.close()));
    await simulator.close();
  });
  after(removeFolders);

  const start = async (options: ProcessOptions = {}): Promise<Process> => {
    const process = await startProcess(folder, { clock, isOnDisk: true, ...options });
    open.push(process);
    return process;
  };
  const restart = async (options: ProcessOptions = {}): Promise<Process> => {
    await Promise.all(open.splice(0).map((process) => process.close()));
    return start(options);
  };
  const connection = (): ReturnType<typeof connectionTo> => connectionTo(simulator);
  const known = ({ vault }: Process): string[] => vault.list('env1').map(([advisor]) => advisor);

  it('has an authorization on disk when it says so, and after a restart', async () => {
    await authorize(await start(), connection(), 'alice');
    should(known(await restart())).deepEqual(['alice']);
  });

  it('lets one of two visits at once spend a link', async () => {
    const store = createMemoryStore();
    const options = { openStore: () => Promise.resolve(store), clock, startId: 'a', warn: () => undefined };
    const vault = new Vault(options);
    const token = await vault.createLink('env1', 'alice');
    const spent = await Promise.all([vault.spendLink(token), vault.spendLink(token)]);
    should(spent.toSorted()).eql([false, true]);
  });

  it('lets other work go on while it reads very many authorizations', async () => {
    const memory = createMemoryStore();
    const over = (store: Store): Vault =>
      new Vault({ openStore: () => Promise.resolve(store), clock, startId: 'a', warn: () => undefined });
    const first = over(memory);
    for (let index = 0; index < 1_500; index++)
      await first.authorized(connection(), newGrant(connection(), `advisor ${String(index)}`));

    let turn = 0;
    const turns: number[] = [];
    const next = (): unknown => setImmediate(() => (turn += 1));
    const page: Store['page'] = (table, range) => {
      turns.push(turn);
      next();
      return memory.page(table, range);
    };
    const again = over(overStore(memory, { page }));
    await again.use(() => undefined);
    should(turns.slice(0, 3)).deepEqual([0, 1, 2]);
  });

  it('does not use a refresh token that another process used between its read and its write', async () => {
    const memory = createMemoryStore();
    const shared = (write: Store['write']): Store => overStore(memory, { peers: peers(), write });
    const open = (startId: string, store: Store): Vault =>
      new Vault({ openStore: () => Promise.resolve(store), clock, startId, warn: () => undefined });
    const grant = (refreshToken: string): Grant => ({ ...newGrant(connection(), 'alice'), refreshToken });
    const other = open(
      'other',
      shared((...written) => memory.write(...written)),
    );
    let between = async (): Promise<void> => undefined;
    const vault = open(
      'ours',
      shared(async (...written) => {
        await between();
        return memory.write(...written);
      }),
    );
    await other.authorized(connection(), grant('first'));
    await vault.opening;
    const name = vault.name(connection(), 'alice');
    const first = { grant: grant('first'), awaiting: null };
    between = async () => {
      between = async () => undefined;
      should(await other.intend(name, first)).be.true();
      await other.refreshed(name, { grant: grant('second'), awaiting: null }, 'first');
    };
    should(await vault.intend(name, first)).be.false();
    const second = vault.get(connection(), 'alice') ?? first;
    should(second.grant.refreshToken).equal('second');
    should(await vault.intend(name, second)).be.true();
  });

  describe('on a shared store', () => {
    let memory: Store;
    const news = new Listeners();
    const peersWithNews = (): ReturnType<typeof peers> => peers({ onNews: news.add });
    const write: Store['write'] = async (...written) => {
      const isMade = await memory.write(...written);
      setImmediate(news.call);
      return isMade;
    };
    const vaultOn = (startId: string, page: Store['page']): Vault => {
      const store = overStore(memory, { peers: peersWithNews(), page, write });
      return new Vault({ openStore: () => Promise.resolve(store), clock, startId, warn: () => undefined });
    };
    const grant = (advisor: string, refreshToken: string): Grant => ({
      ...newGrant(connection(), advisor),
      refreshToken,
    });
    const hears = (vault: Vault, advisor: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (vault.get(connection(), advisor)) resolve();
        };
        vault.onChange(look);
        look();
      });
    let other: Vault;
    beforeEach(() => {
      memory = createMemoryStore();
      other = vaultOn('other', (table, range) => memory.page(table, range));
    });

    it('notices an authorization that another process saves while it opens', async () => {
      let isFirst = true;
      const vault = vaultOn('ours', async (table, range) => {
        const found = await memory.page(table, range);
        if (isFirst) await other.authorized(connection(), grant('alice', 'first'));
        isFirst = false;
        return found as never;
      });
      const release = vault.keepOpen();
      await hears(vault, 'alice');
      await release();
    });

    it('notices one even while it constantly refreshes others', async () => {
      let renewals = 0;
      const vault: Vault = vaultOn('ours', async (table, range) => {
        const found = await memory.page(table, range);
        if (vault.isOpen) {
          const before = vault.get(connection(), 'bob')?.grant.refreshToken ?? '';
          const entry = { grant: grant('bob', `renewed ${++renewals}`), awaiting: null };
          await vault.refreshed(vault.name(connection(), 'bob'), entry, before);
        }
        return found as never;
      });
      await other.authorized(connection(), grant('bob', 'first'));
      const release = vault.keepOpen();
      await vault.opening;
      await other.authorized(connection(), grant('alice', 'first'));
      await hears(vault, 'alice');
      should(vault.get(connection(), 'bob')?.grant.refreshToken).equal(`renewed ${renewals}`);
      await release();
    });

    it('notices one that another process saves after it has lost its own slot', async () => {
      const close = (): Promise<void> => Promise.resolve();
      const lost = { ...peersWithNews() };
      const stores = [lost, peersWithNews()].map((each) => overStore(memory, { peers: each, close }));
      const openStore = (): Promise<Store> => Promise.resolve(stores.shift() as Store);
      const vault = new Vault({ openStore, clock, startId: 'ours', warn: () => undefined });
      const release = vault.keepOpen();
      await vault.opening;
      Object.assign(lost, { isLost: true });
      await other.authorized(connection(), grant('alice', 'first'));
      await hears(vault, 'alice');
      await release();
    });

    const person = (advisor: string, refreshToken: string, subject: string): Grant => ({
      ...grant(advisor, refreshToken),
      identity: { subject, label: subject },
    });
    const stored = async (): Promise<string[]> => {
      const later = vaultOn('later', (table, range) => memory.page(table, range));
      await later.opening;
      const { grant: used, awaiting } = later.get(connection(), 'alice') ?? {};
      return [used?.refreshToken ?? '', awaiting?.refreshToken ?? ''];
    };

    it('keeps a refresh of another process when somebody else authorizes here, and the intent of one', async () => {
      const vault = vaultOn('ours', (table, range) => memory.page(table, range));
      await other.authorized(connection(), person('alice', 'first', 'Alice'));
      await vault.opening;
      const name = other.name(connection(), 'alice');
      const refreshed = { grant: person('alice', 'second', 'Alice'), awaiting: null };
      await other.intend(name, { ...refreshed, grant: person('alice', 'first', 'Alice') });
      await other.refreshed(name, refreshed, 'first');
      await vault.authorized(connection(), person('alice', 'of Bob', 'Bob'));
      should(await stored()).deepEqual(['second', 'of Bob']);

      await other.reread(name);
      should(await other.intend(name, refreshed)).be.true();
      await vault.authorized(connection(), person('alice', 'of Carol', 'Carol'));
      should(await vault.intend(name, refreshed)).be.false();
      should(await stored()).deepEqual(['second', 'of Carol']);
    });

    it('keeps a person who waits for confirmation here when another process finishes a refresh', async () => {
      const vault = vaultOn('ours', (table, range) => memory.page(table, range));
      const first = { grant: person('alice', 'first', 'Alice'), awaiting: null };
      await other.authorized(connection(), first.grant);
      await vault.opening;
      const name = other.name(connection(), 'alice');
      should(await other.intend(name, first)).be.true();
      await vault.authorized(connection(), person('alice', 'of Bob', 'Bob'));
      await other.refreshed(name, { ...first, grant: person('alice', 'second', 'Alice') }, 'first');
      should(await stored()).deepEqual(['second', 'of Bob']);
    });

    it('keeps a refresh of a shared refresh token when an authorization beside it is confirmed', async () => {
      const seeded = { ...connection(), seed: 'first' };
      const person = (refreshToken: string, subject: string): Grant => ({
        ...newGrant(seeded, 'default'),
        refreshToken,
        identity: { subject, label: subject },
      });
      const vault = vaultOn('ours', (table, range) => memory.page(table, range));
      const name = other.name(seeded, 'default');
      await other.refreshed(name, { grant: person('second', 'Alice'), awaiting: null }, 'first');
      await vault.opening;
      await vault.authorized(seeded, person('of Bob', 'Bob'));
      await other.reread(name);
      const third = { grant: person('third', 'Alice'), awaiting: null };
      await other.refreshed(name, third, 'second');
      should(await vault.confirm('env1', 'default', seeded)).be.true();
      await other.reread(name);
      const kept = other.get({ ...seeded, environment: 'env2' }, 'default');
      should([kept?.grant.refreshToken, kept?.awaiting]).deepEqual(['third', null]);
      should(vault.get(seeded, 'default')?.grant.refreshToken).equal('of Bob');
    });
  });

  it('reads a shared authorization that an earlier version has saved, with the token that it had rotated to', async () => {
    const store = createMemoryStore();
    const vaultOver = (): Vault =>
      new Vault({ openStore: () => Promise.resolve(store), clock, startId: 'a', warn: () => undefined });
    const seeded = { ...connection(), seed: 'first' };
    const seed = vaultOver().name(seeded, 'default');
    const grant: Grant = { ...newGrant(seeded, 'default'), refreshToken: 'second' };
    const put = key('grant', store.hash(seed));
    await store.write([{ table: 'work', put, value: { grant, awaiting: null, seed } }]);
    const vault = vaultOver();
    await vault.opening;
    for (const environment of ['env1', 'env2'])
      should(vault.get({ ...seeded, environment }, 'default')?.grant.refreshToken).equal('second');
  });

  it('asks nobody to confirm the first authorization for another service, which names people in its own way', async () => {
    const { vault } = await start();
    const sandbox = { ...connection(), service: 'sandbox' };
    const production = { ...connection(), service: 'production' };
    const person = (subject: string): Grant['identity'] => ({ subject, label: subject });
    const first = { ...newGrant(sandbox, 'alice'), refreshToken: 'first', identity: person('7') };
    await vault.authorized(sandbox, first);
    const second = { ...newGrant(production, 'alice'), refreshToken: 'second', identity: person('a1') };
    await vault.authorized(production, second);
    should(vault.get(production, 'alice')).containDeep({ grant: second, awaiting: null });
  });

  describe('when somebody authorizes for another service in a dialog that is not deployed', () => {
    const production = (): ReturnType<typeof connection> => ({ ...connection(), service: 'production' });
    const sandbox = (): ReturnType<typeof connection> => ({ ...connection(), service: 'sandbox' });
    const grant = (from: ReturnType<typeof connection>, refreshToken: string, subject = 'Alice'): Grant => ({
      ...newGrant(from, 'default'),
      refreshToken,
      identity: { subject, label: subject },
    });
    const tokenIn = ({ vault }: Process, from: ReturnType<typeof connection>): string | null | undefined =>
      vault.get(from, 'default')?.grant.refreshToken;

    it('keeps the authorization that flows use, and uses each with its service, also after a restart', async () => {
      const first = await start();
      await authorize(first, production());
      await authorize(first, sandbox(), 'default', 'Bob');
      await clock.move(lifetime * 1000);
      for (const from of [production(), sandbox()]) await first.tokens.token(from, 'default');
      const later = await restart();
      await clock.move(lifetime * 1000);
      for (const [from, person] of [
        [production(), 'Alice'],
        [sandbox(), 'Bob'],
      ] as const) {
        should(await later.tokens.token(from, 'default')).be.a.String();
        should(later.vault.list('env1', from)).have.length(1);
        should(later.vault.get(from, 'default')?.grant.identity?.label).equal(person);
      }
      should(known(later)).deepEqual(['default']);
      should(later.posted).have.length(2);
    });

    it('keeps that of a refresh token from the credentials', async () => {
      const seeded = { ...production(), seed: 'given' };
      const { vault } = await start();
      await vault.authorized(sandbox(), grant(sandbox(), 'of the sandbox'));
      should(vault.get(seeded, 'default')?.grant.refreshToken).equal('given');
      should(vault.get(sandbox(), 'default')?.grant.refreshToken).equal('of the sandbox');
    });

    it('counts nobody as an advisor of the deployed service who authorized only there', async () => {
      const red = await start();
      await red.vault.authorized(production(), grant(production(), 'first'));
      await red.vault.authorized(sandbox(), { ...grant(sandbox(), 'second'), advisor: 'bob' });
      should(red.vault.advisors(production())).deepEqual(['default']);
      should(red.vault.list('env1', production()).map(([advisor]) => advisor)).deepEqual(['default', 'bob']);
    });

    it('lets another person be confirmed there, and disconnects the advisor from both', async () => {
      const red = await start();
      await red.vault.authorized(production(), grant(production(), 'first'));
      await red.vault.authorized(sandbox(), grant(sandbox(), 'second'));
      await red.vault.authorized(sandbox(), grant(sandbox(), 'third', 'Bob'));
      should(tokenIn(red, sandbox())).equal('second');
      should(await red.vault.confirm('env1', 'default', sandbox())).be.true();
      should(await red.vault.confirm('env1', 'default', sandbox())).be.false();
      const later = await restart();
      should([production(), sandbox()].map((from) => tokenIn(later, from))).deepEqual(['first', 'third']);
      should(await later.vault.disconnect('env1', 'default', production())).be.true();
      should(known(await restart())).be.empty();
    });

    it('confirms the person who is shown, and not one who waits at the other service', async () => {
      const red = await start();
      for (const [index, from] of [production(), sandbox()].entries()) {
        await red.vault.authorized(from, grant(from, `first ${String(index)}`));
        await red.vault.authorized(from, grant(from, `second ${String(index)}`, 'Bob'));
      }
      for (const isFirst of [true, false])
        should(await red.vault.confirm('env1', 'default', sandbox())).equal(isFirst);
      should([production(), sandbox()].map((from) => tokenIn(red, from))).deepEqual(['first 0', 'second 1']);
    });

    it('uses what was authorized last, also where a database had one for that service', async () => {
      const red = await start();
      const advisors = Array.from({ length: 8 }, (_, index) => `advisor ${String(index)}`);
      const authorizeAll = async (
        vault: Vault,
        from: ReturnType<typeof connection>,
        refreshToken: string,
        refreshedAt: number | null = null,
      ): Promise<void> => {
        for (const advisor of advisors)
          await vault.authorized(from, { ...grant(from, refreshToken), advisor, refreshedAt });
      };
      await authorizeAll(red.vault, production(), 'first');
      await authorizeAll(red.vault, sandbox(), 'second');
      const store = createMemoryStore();
      const openOn = async (): Promise<Vault> => {
        const vault = new Vault({ openStore: async () => store, clock, startId: 'a', warn: () => undefined });
        await vault.opening;
        return vault;
      };
      await authorizeAll(await openOn(), sandbox(), 'third', 1);
      const file = await red.openStore();
      await moveRecords(file, store, [movableGrants('env1', production()) as Movable]);
      await file.close();
      const vault = await openOn();
      await authorizeAll(vault, sandbox(), 'fourth');
      for (const advisor of advisors)
        should(vault.get(sandbox(), advisor)?.grant.refreshToken).equal('fourth');
    });

    it('moves both to a database', async () => {
      const red = await start();
      await red.vault.authorized(production(), grant(production(), 'first'));
      await red.vault.authorized(sandbox(), grant(sandbox(), 'second'));
      const store = createMemoryStore();
      const file = await red.openStore();
      await moveRecords(file, store, [movableGrants('env1', production()) as Movable]);
      await file.close();
      const vault = new Vault({ openStore: async () => store, clock, startId: 'a', warn: () => undefined });
      await vault.opening;
      should([production(), sandbox()].map((from) => tokenIn({ ...red, vault }, from))).deepEqual([
        'first',
        'second',
      ]);
    });
  });

  it('forgets no missing environment early because the clock was wrong when it was missed', async () => {
    const store = createMemoryStore();
    const ours = new Vault({ openStore: async () => store, clock, startId: 'a', warn: () => undefined });
    await ours.authorized(connection(), newGrant(connection(), 'alice'));
    await ours.forgetMissing(new Set(), day);
    await clock.move(3650 * day);
    await ours.forgetMissing(new Set(), day);
    should(ours.list('env1')).have.length(1);
  });

  it('forgets no environment early because it was missing for a while before', async () => {
    let now = 0;
    const store = overStore(createMemoryStore(), { now: () => now });
    const ours = new Vault({ openStore: async () => store, clock, startId: 'a', warn: () => undefined });
    await ours.authorized(connection(), newGrant(connection(), 'alice'));
    for (const existing of [[], ['env1'], [], []]) {
      await ours.forgetMissing(new Set(existing), 7 * day);
      now += 3 * day;
    }
    should(ours.list('env1')).have.length(1);
  });

  it('leaves nothing readable on disk', async () => {
    const red = await start();
    await authorize(red, connection(), 'canary-advisor');
    const { accessToken, refreshToken, identity } =
      red.vault.get(connection(), 'canary-advisor')?.grant ?? {};
    await restart();
    const secrets = [accessToken, refreshToken, identity?.subject, 'canary-advisor'];
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    );
    const text = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1')).join();
    for (const secret of secrets) {
      should(secret).be.a.String();
      for (const encoding of ['utf8', 'base64', 'hex', 'base64url'] as const)
        should(text).not.containEql(Buffer.from(String(secret)).toString(encoding).slice(0, 30));
    }
  });

  it('keeps a disconnected advisor disconnected', async () => {
    const red = await start();
    await authorize(red, connection(), 'alice');
    await red.vault.disconnect('env1', 'alice');
    should(known(await restart())).be.empty();
  });

  it('writes less than 3 kB when one of 1,000 authorizations is refreshed', async () => {
    const red = await start();
    await authorize(red, connection(), 'default');
    const entry = red.vault.get(connection(), 'default');
    if (!entry) throw new Error('nobody authorized');
    await Promise.all(
      Array.from({ length: 999 }, (_, n) =>
        red.vault.authorized(connection(), { ...entry.grant, advisor: `advisor ${n}` }),
      ),
    );
    const later = await restart();
    should(known(later)).have.length(1000);
    await clock.move(lifetime * 1000);
    later.disk.bytes = 0;
    await later.tokens.token(connection(), 'default');
    should(later.disk.bytes).be.above(300).and.below(3000);
    should((await restart()).tokens.token(connection(), 'default')).be.a.String();
  });

  describe('of a process that is killed during a refresh', () => {
    /** A child process that stops at a given point of a refresh so that it can be killed there. */
    const killedAt = async (moment: string, ahead: number): Promise<void> => {
      const settings = JSON.stringify({ connection: connection(), now: clock.now() + ahead, moment });
      const child: Child = runChild('../auth/renews.ts', folder, settings);
      await child.printed(1);
      should(child.lines).deepEqual([moment]);
      await child.kill();
    };
    beforeEach(async () => {
      await authorize(await start(), connection());
      await restart().then(({ close }) => close());
    });

    it('before the request: the authorization continues', async () => {
      await killedAt('intended', lifetime * 1000);
      await clock.move(lifetime * 1000);
      const next = await start();
      should(await next.tokens.token(connection(), 'default')).be.a.String();
    });

    it('after the answer, before it is saved: the token at hand is used until it expires, and only then the old one', async () => {
      const nearEnd = (lifetime - 100) * 1000;
      await killedAt('answered', nearEnd);
      await clock.move(nearEnd);
      const next = await start();
      const first = next.tokens.token(connection(), 'default');
      should(first).be.a.String();
      for (let round = 0; round < 20; round += 1) await nextIteration();
      should(next.posted).be.empty();
      await clock.move(100_000);
      const fault = await failureOf(() => next.tokens.token(connection(), 'default'));
      should(fault.message).match(/authorize again/);
      should(next.posted).have.length(1);
      const later = await restart();
      should((await failureOf(() => later.tokens.token(connection(), 'default'))).message).match(
        /authorize again/,
      );
      should(later.posted).be.empty();
    });

    it('after the answer, if the service still accepts the old token: the authorization continues', async () => {
      simulator.change({ rotateRefreshTokens: false });
      await killedAt('answered', lifetime * 1000);
      await clock.move(lifetime * 1000);
      const next = await start();
      should(await next.tokens.token(connection(), 'default')).be.a.String();
      should((await restart()).tokens.token(connection(), 'default')).be.a.String();
    });

    it('after the answer is saved: the next process continues with the rotated token', async () => {
      await killedAt('stored', lifetime * 1000);
      await clock.move(lifetime * 1000);
      const next = await start();
      should(next.tokens.token(connection(), 'default')).be.a.String();
      await clock.move(lifetime * 1000);
      should(await next.tokens.token(connection(), 'default')).be.a.String();
      should(next.posted).have.length(1);
    });
  });

  it('does not use a refresh token before the intent to use it is saved', async () => {
    const written: number[] = [];
    const red = await start({
      post: async (...request) => {
        if (request[1]['grant_type'] === 'refresh_token') written.push(red.disk.bytes);
        return postForm(...request);
      },
    });
    await authorize(red, connection());
    // A service may keep its refresh tokens: the second refresh uses the same one.
    simulator.change({ rotateRefreshTokens: false });
    for (const refresh of [1, 2]) {
      await clock.move(lifetime * 1000);
      red.disk.bytes = 0;
      await red.tokens.token(connection(), 'default');
      should(written).have.length(refresh);
      should(written.at(-1)).be.above(0);
    }
  });
});
