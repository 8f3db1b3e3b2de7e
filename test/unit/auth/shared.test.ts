import { mock } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import type { Red } from '../../../lib/runtime/red';
import { systemClock, type Clock } from '../../../lib/service/clock';
import { hour } from '../../../lib/durations';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import { endOf, key } from '../../../lib/state/store';
import { health } from '../../../nodes/environment/sidebar-data';
import { RunningEnvironment } from '../../../nodes/environment/environment';
import { runningOf } from '../../../nodes/environment/running';
import { startSimulator, type Simulator } from '../../../simulator';
import { sentenceOf } from '../../support/sentence';
import { until } from '../../support/until';
import { Postgres } from '../../support/postgres';
import { SharedEnvironments } from '../../support/shared-environments';
import { authorize, freshFolder, removeFolders } from '../../support/auth/setup';

describe('an environment that several Node-RED instances keep in PostgreSQL', function () {
  this.timeout(180_000);
  let server: Postgres;
  let simulator: Simulator;
  let environments: SharedEnvironments;
  /** Milliseconds by which the environments' clock is ahead. */
  let ahead = 0;
  const clock: Clock = { ...systemClock, elapsed: () => performance.now() + ahead };

  before(async () => {
    server = await Postgres.start();
    simulator = await startSimulator({ settings: { rotateRefreshTokens: true } });
    environments = new SharedEnvironments(server, simulator, clock);
  });
  beforeEach(() => {
    environments.next();
  });
  afterEach(() => environments.closeAll());
  after(async () => {
    await simulator.close();
    await server.close();
    removeFolders();
  });

  const start = (name: string, credentialSecret: string, changes?: object): RunningEnvironment =>
    environments.start(name, credentialSecret, changes);

  it('is authorized on all instances when it is on one, and disconnected as well', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    await authorize(one.services, one.connection(), 'alice');
    await until(() => two.advisorState('alice') === 'authorized');
    await two.services.vault.disconnect(two.id, 'alice');
    await until(() => one.advisorState('alice') === 'unknown');
  });

  it('keeps the authorization that all use when somebody authorizes for another service on one', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    await authorize(one.services, one.connection(), 'alice');
    await authorize(one.services, { ...one.connection(), service: 'production' }, 'alice', 'Bob');
    await authorize(one.services, one.connection(), 'carol');
    await until(() => two.advisorState('carol') === 'authorized');
    should(two.advisorState('alice')).equal('authorized');
    await two.close();
    const after = start('two', 'a', { service: 'production' });
    await after.opening;
    should(after.services.vault.get(after.connection(), 'alice')?.grant.identity?.label).equal('Bob');
  });

  it('refreshes a token once for all', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    await authorize(one.services, one.connection(), 'alice');
    await until(() => two.advisorState('alice') === 'authorized');
    const before = one.services.vault.get(one.connection(), 'alice')?.grant.accessToken ?? '';
    const asked = (): number =>
      simulator.ledger.entries().filter(({ endpoint }) => endpoint === 'token').length;
    const already = asked();
    const tokens = await Promise.all(
      [one, two].map(async (each) => each.services.tokens.token(each.connection(), 'alice', before)),
    );
    should(new Set(tokens).size).equal(1);
    should(asked() - already).equal(1);
  });

  it('stays authorized when the database loses the commit with a new refresh token, as in a failover', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    await authorize(one.services, one.connection(), 'alice');
    await until(() => two.advisorState('alice') === 'authorized');
    const tokenOf = (each: RunningEnvironment, rejected?: string): Promise<string> =>
      Promise.resolve(each.services.tokens.token(each.connection(), 'alice', rejected));
    const first = await tokenOf(one);
    server.query('create table before_failover as select * from advisor_texting.work');
    const second = await tokenOf(one, first);
    server.query(
      `delete from advisor_texting.work; insert into advisor_texting.work select * from before_failover;
       update advisor_texting.lease set seq = seq - 1 where slot > 0; drop table before_failover`,
    );
    const third = await tokenOf(one, second);
    should(new Set([first, second, third]).size).equal(3);
    const fourth = await tokenOf(two, first);
    should([third, fourth].includes(await tokenOf(one))).be.true();
    should([one, two].map((each) => each.advisorState('alice'))).eql(['authorized', 'authorized']);
  });

  it("texts nobody from any instance once one has blocked a number, and waits for another's request in flight", async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    const [here, there] = await Promise.all([doNotTextOf(one), doNotTextOf(two)]);
    const end = await there.begin('+13005550100');
    should(end).be.a.Function();
    const heard = new Promise<string>((resolve) => there.onBlock(resolve));
    let isBlocked = false;
    const blocking = here.block('+13005550100', null, 0).then(() => (isBlocked = true));
    should(await heard).equal('+13005550100');
    should(isBlocked).be.false();
    should(await there.begin('+13005550100')).have.property('phone', '+13005550100');
    // The timeout of a request may be long.
    const { now } = performance;
    const later = mock.method(performance, 'now', () => now.call(performance) + hour);
    try {
      const store = await one.store();
      for (const kind of ['later', 'much later']) await store.peers?.tellOthers({ kind, at: store.now() });
    } finally {
      later.mock.restore();
    }
    should(isBlocked).be.false();
    (end as () => void)();
    await blocking;
  });

  it('shares its do-not-text list with an environment of the same Node-RED that has another store', async () => {
    const running = new Set<RunningEnvironment>();
    const inDatabase = environments.start('one', 'a', {}, { running });
    const inFile = environments.start('two', 'a', { store: 'embedded' }, { id: 'in a file', running });
    const elsewhere = start('three', 'a');
    await Promise.all([inDatabase, inFile, elsewhere].map(({ opening }) => opening));
    const [here, there, far] = await Promise.all([inFile, inDatabase, elsewhere].map(doNotTextOf));
    const end = await here?.begin('+13005550100');
    let isBlocked = false;
    const heard = new Promise<string>((resolve) => here?.onBlock(resolve));
    const blocking = far?.block('+13005550100', null, 0).then(() => (isBlocked = true));
    should(await heard).equal('+13005550100');
    should(isBlocked).be.false();
    (end as () => void)();
    await blocking;
    should(await here?.check('+13005550100')).have.property('phone', '+13005550100');
    await here?.block('+13005550101', 'asked', 1);
    should(await Promise.all([there?.get('+13005550101'), far?.get('+13005550101')])).match([
      { reason: 'asked' },
      { reason: 'asked' },
    ]);
  });

  it('pauses on all instances when the service asks one to', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    await authorize(one.services, one.connection(), 'alice');
    await until(() => two.advisorState('alice') === 'authorized');
    const [here, there] = await Promise.all([one.client(), two.client()]);
    simulator.faults.add({ status: 429, retryAfter: 60, endpoint: 'getConsent' });
    const cancel = new AbortController();
    const asked = here
      .call('getConsent', { query: { phone: '+13005550100' } }, { advisor: 'alice', signal: cancel.signal })
      .catch((fault: unknown) => fault);
    await until(() => here.limits.pausedUntil > 0);
    await until(() => there.limits.pausedUntil > 0);
    cancel.abort();
    await asked;
  });

  it('says that the credential secrets differ, and sends nothing from there', async () => {
    const one = start('one', 'a');
    await one.opening;
    const two = start('two', 'another');
    await until(() => two.trouble !== undefined);
    should(two.trouble).match(/another credentialSecret.*Set the same credentialSecret/);
  });

  it('without a credential secret is opened with the key of its user directory, and by no other instance', async () => {
    const userDir = freshFolder();
    for (const secret of [false, false, 'set', 'set'] as const) {
      const one = environments.start('one', secret, {}, { userDir });
      await one.opening;
      await one.close();
    }
    environments.next();
    const own = environments.start('one', false, {}, { userDir });
    await own.opening;
    const two = environments.start('two', false);
    await until(() => two.trouble !== undefined);
    should(two.trouble).match(/another credentialSecret/);
  });

  /** What a Node-RED that runs these answers a load balancer. */
  const healthOf = (...environments: RunningEnvironment[]): number => {
    const RED = {} as Red;
    for (const environment of environments) runningOf(RED).add(environment);
    let answered = 0;
    const response = {
      status(status: number) {
        answered = status;
        return response;
      },
      set: () => response,
      json: () => undefined,
    };
    health(RED, response as never);
    return answered;
  };
  it('is unhealthy after PostgreSQL was unreachable for thirty seconds, and recovers with it', async () => {
    const one = start('one', 'a');
    await one.opening;
    should(healthOf(one)).equal(200);
    await server.stop();
    try {
      await until(() => one.trouble !== undefined);
      ahead += 31_000;
      should(healthOf(one)).equal(503);
    } finally {
      await server.run();
    }
    await until(() => one.trouble === undefined);
    should(healthOf(one)).equal(200);
  });

  it('is unhealthy if PostgreSQL could never be reached, even after a deploy', async () => {
    const one = start('one', 'a', { storeUrl: 'postgres://test@localhost/none?host=/nowhere' });
    await until(() => one.trouble !== undefined);
    ahead += 31_000;
    should(healthOf(one)).equal(503);
    // A deploy recreates the environment, which looks for the database again.
    await one.close();
    const next = new RunningEnvironment({ ...one.services, clock }, one.id, one.values, () => undefined);
    environments.open.push(next);
    should(healthOf(next)).equal(503);
  });

  it('is waited for no longer once it closes: a message in line would ask again at once, forever', async () => {
    const one = start('one', 'a', { storeUrl: 'postgres://test@localhost/none?host=/nowhere' });
    const opening = one.opening;
    should(opening).be.a.Promise();
    await Promise.all([opening, one.close()]);
    should(one.opening).be.undefined();
  });

  it('is opened before it closes, so that a message in line is saved', async () => {
    const one = start('one', 'a');
    const release = one.keepStoreOpen();
    const { opening } = one;
    const closed = one.close();
    await opening;
    should(one.advisors()).be.empty();
    const store = await one.store();
    should(await store.write([{ table: 'work', put: Buffer.from('item'), value: 0 }])).be.true();
    release();
    await closed;
  });

  it('must be authorized again on all instances once one finds out, and stays healthy: messages can be saved', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    await Promise.all([one.opening, two.opening]);
    await authorize(one.services, one.connection(), 'alice');
    await until(() => two.advisorState('alice') === 'authorized');
    const { vault, tokens } = one.services;
    const accessToken = vault.get(one.connection(), 'alice')?.grant.accessToken ?? '';
    simulator.faults.add({ endpoint: 'token', status: 400 });
    await should((async () => tokens.token(one.connection(), 'alice', accessToken))()).be.rejectedWith({
      code: 'authorization_required',
    });
    simulator.faults.clear();
    should(one.advisorState('alice')).equal('authorize_again');
    await until(() => two.advisorState('alice') === 'authorize_again');
    should(healthOf(one, two)).equal(200);
  });

  it('reports the items of deleted nodes as missed, once every instance has listed its nodes', async () => {
    const [one, two] = [start('one', 'a'), start('two', 'a')];
    const [store] = await Promise.all([one.store(), two.store()]);
    await store.write([{ table: 'work', put: key('item', 'gone', 'x'), value: 0 }]);
    const isMissed = async (): Promise<boolean> =>
      (await store.get('work', key('absent', 'gone'))) !== undefined;
    two.forgetRemovedNodes(new Set(['gone']));
    const isTold = async (): Promise<boolean> =>
      (await store.count('work', key('present'), endOf(key('present')))) > 0;
    await until(isTold);
    two.forgetRemovedNodes(new Set(['other']));
    // Until both know of each other and of their nodes.
    while (!(await isMissed())) {
      one.forgetRemovedNodes(new Set(['other']));
      await pause(100);
    }
    should(await store.get('work', key('item', 'gone', 'x'))).not.be.undefined();
  });

  it('says what is missing when it has no address', async () => {
    const asked = sentenceOf(() => start('one', 'a', { storeUrl: '' }).advisors());
    should(await asked).match(/fill in .*Database/);
  });
});
