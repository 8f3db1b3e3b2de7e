import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { activityOf } from '../../../lib/runtime/activity';
import type { Message } from '../../../lib/runtime/red';
import { endOf, key } from '../../../lib/state/store';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import { startSimulator, type Simulator } from '../../../simulator';
import { authorize, removeFolders } from '../../support/auth/setup';
import { Instance } from '../../support/instance';
import { Postgres } from '../../support/postgres';
import { SharedEnvironments } from '../../support/shared-environments';
import { until } from '../../support/until';
import { checkFolder, sendFolder } from '../../support/texting/setup';

const some = { page: 1, pageSize: 50 };

/** A Node-RED with a node that sends, and one that waits and polls once an hour. */
interface Process {
  readonly environment: RunningEnvironment;
  readonly sender: Instance;
  readonly waiter: Instance;
}

describe('the activity of several Node-RED instances on one PostgreSQL', function () {
  this.timeout(300_000);
  let server: Postgres;
  let simulator: Simulator;
  let environments: SharedEnvironments;
  let one: Process;
  let two: Process;
  const instances: Instance[] = [];

  before(async () => {
    server = await Postgres.start();
    simulator = await startSimulator({ contacts: 100, settings: { consentRequired: false } });
    environments = new SharedEnvironments(server, simulator);
  });
  beforeEach(async () => {
    environments.next();
    [one, two] = [process('one'), process('two')];
    await Promise.all([one.environment.opening, two.environment.opening]);
    await authorize(one.environment.services, one.environment.connection(), 'default', 'default');
    await until(
      () => two.environment.advisorState('default') === 'authorized' || undefined,
      'The authorization',
    );
  });
  afterEach(async () => {
    simulator.faults.clear();
    await Promise.all(instances.splice(0).map((instance) => instance.close()));
    await environments.closeAll();
  });
  after(async () => {
    await simulator.close();
    await server.close();
    removeFolders();
  });

  const process = (name: string): Process => {
    const environment = environments.start(name, 'a', { maxConcurrent: 4 });
    const sender = new Instance(sendFolder, environment, { id: 'sender' });
    const waiter = new Instance(checkFolder, environment, {
      id: 'waiter',
      mode: 'wait',
      pollEvery: 3600,
      pollFor: 3600,
      thenEvery: 3600,
    });
    instances.push(sender, waiter);
    return { environment, sender, waiter };
  };
  const number = (n: number): string => `+1300555${String(n).padStart(4, '0')}`;
  const looks = (phone: string): number =>
    simulator.ledger.entries().filter((each) => each.endpoint === 'getConsent' && each.phone === phone)
      .length;

  it('is shown by each: waits, wherever they started; and one checks and cancels those of another', async () => {
    const activity = activityOf(two.environment);
    one.waiter.send({ phone: [number(101), number(102)] });
    two.waiter.send({ phone: number(103) });
    const shown = await until(async () => {
      const { data, pageInfo } = await activity.waits(some);
      return pageInfo.totalRecord === 3 && data;
    }, 'All three waits');
    should(shown.map(({ phone }) => phone).toSorted()).deepEqual([101, 102, 103].map(number));
    should(shown.every(({ node, next }) => node.id === 'waiter' && next !== null)).be.true();
    should((await activity.waits({ ...some, phone: number(102) })).data).have.length(1);
    should(await activity.waitCount()).equal(1);
    should(await two.environment.pending()).deepEqual({ items: 0, waits: 3 });
    const idOf = (phone: string): string => shown.find((each) => each.phone === phone)?.id ?? '';

    const before = looks(number(101));
    should(await activity.check(idOf(number(101)))).be.true();
    await until(() => looks(number(101)) > before, 'A look by the one that has it');

    const leaving = one.waiter.arrivals.next();
    should(await activity.cancel(idOf(number(102)))).be.true();
    const [left] = await leaving;
    should(left?.port).equal(2);
    should(left?.msg).containDeep({ phone: number(102), payload: { reason: 'cancelled' } });
    should(await activity.cancel(idOf(number(102)))).be.false();
  });

  it('is not called cancelled by one that cannot save that for another', async () => {
    const activity = activityOf(two.environment);
    one.waiter.send({ phone: number(104) });
    const id = await until(async () => (await activity.waits(some)).data[0]?.id, 'The wait');
    const leaving = one.waiter.arrivals.next();
    server.query('alter table advisor_texting.work add constraint closed check (false) not valid');
    let isSaid = false;
    const cancelling = activity.cancel(id).then((isDone) => (isSaid = isDone));
    try {
      await pause(6000);
      should(isSaid).be.false();
    } finally {
      server.query('alter table advisor_texting.work drop constraint closed');
    }
    should(await cancelling).be.true();
    should((await leaving)[0]?.msg).containDeep({ phone: number(104), payload: { reason: 'cancelled' } });
  });

  it('ends by an acceptance that any of them sees', async () => {
    one.waiter.send({ phone: number(111) });
    await until(async () => {
      const { pageInfo } = await activityOf(two.environment).waits(some);
      return pageInfo.totalRecord === 1;
    }, 'The wait in the other');
    simulator.accept(number(111), 'default');
    const once = new Instance(checkFolder, two.environment, {
      id: 'once',
      mode: 'once',
    });
    instances.push(once);
    const ended = one.waiter.arrivals.next();
    once.send({ phone: number(111) });
    should((await ended)[0]?.port).equal(0);
  });

  it('is shown by each: texts and lists, and the failures of all; and one cancels and stops those of another', async () => {
    simulator.faults.add({ status: 429, retryAfter: 600, rate: 1, endpoint: 'sendMessage' });
    const activity = activityOf(two.environment);
    const phones = Array.from({ length: 39 }, (_, n) => number(161 + n));
    one.sender.send({ phone: phones, text: 'Hello' });
    const queued = await until(async () => {
      const { data, pageInfo } = await activity.queue(some);
      return pageInfo.totalRecord === phones.length && data;
    }, 'The list');
    should(await activity.queueLength()).equal(0);
    should(queued.map(({ phone }) => phone).toSorted()).deepEqual(phones);
    const [list] = (await activity.lists(some)).data;
    should(list).containDeep({ node: { id: 'sender' }, total: phones.length, done: 0 });
    // The first few may be saved as started; the last is far behind them.
    const last = queued.find(({ phone }) => phone === phones.at(-1));
    should(last?.state).equal('queued');
    const first = one.sender.arrivals.next();
    should(await activity.cancel(last?.id ?? '')).be.true();
    should((await first)[0]?.msg).containDeep({ phone: phones.at(-1), error: { code: 'cancelled' } });
    const rest = one.sender.arrivals.next(phones.length / 3);
    should(await activity.cancel(list?.id ?? '')).be.true();
    for (const { msg } of await rest) should(msg.error).containDeep({ code: 'cancelled' });
    const failures = await until(async () => {
      const { data } = await activity.failures(some);
      return data.length > phones.length / 3 && data;
    }, 'The failures');
    should(failures.every(({ code, node }) => code === 'cancelled' && node.id === 'sender')).be.true();
  });

  it('notifies viewers of one that something has changed in another', async () => {
    let changes = 0;
    activityOf(two.environment).changed = () => (changes += 1);
    one.waiter.send({ phone: number(131) });
    await until(() => changes > 0, 'A change');
  });

  describe('in a rolling deploy', () => {
    const oldNodes = ['sender', 'waiter'];
    let texts: string[];
    /** Different in each test, because a consent lasts. */
    let waiting: string;
    let used = 140;

    const withNewNodes = (environment: RunningEnvironment): readonly Instance[] => {
      const added = [
        new Instance(sendFolder, environment, { id: 'new sender' }),
        new Instance(checkFolder, environment, {
          id: 'new waiter',
          mode: 'wait',
          pollEvery: 1,
        }),
      ];
      instances.push(...added);
      environment.forgetRemovedNodes(new Set([...oldNodes, 'new sender', 'new waiter']));
      return added;
    };
    const isShown = async (environment: RunningEnvironment): Promise<boolean> => {
      const activity = activityOf(environment);
      const [waits, queue] = await Promise.all([activity.waits(some), activity.queue(some)]);
      return waits.pageInfo.totalRecord === 1 && queue.pageInfo.totalRecord === texts.length;
    };

    /**
     * The first instance has new nodes, and stops with work of theirs; the second takes that over without having them.
     */
    beforeEach(async () => {
      texts = [1, 2, 3].map((n) => number(used + n));
      waiting = number(used + 4);
      used += 4;
      two.environment.forgetRemovedNodes(new Set(oldNodes));
      simulator.faults.add({ status: 429, retryAfter: 1, rate: 1, endpoint: 'sendMessage' });
      const [sender, waiter] = withNewNodes(one.environment);
      sender?.send({ phone: texts, text: 'Hello' });
      waiter?.send({ phone: waiting });
      await until(() => isShown(two.environment), 'All of it saved');
      await Promise.all([sender, waiter, one.sender, one.waiter].map((each) => each?.close()));
      await one.environment.close();
      await until(async () => (await activityOf(two.environment).waitCount()) === 1, 'A successor');
      await until(() => isShown(two.environment), 'All of it at the successor');
      simulator.faults.clear();
      simulator.accept(waiting, 'default');
    });

    const allLeaveFrom = async (added: readonly Instance[]): Promise<void> => {
      const arrived = (): readonly { readonly port: number; readonly msg: Message }[] =>
        added.flatMap(({ arrivals }) => arrivals.all);
      await until(() => arrived().length >= 4, 'All four outcomes');
      should(
        arrived()
          .map(({ port, msg }) => `${String(msg.phone)} ${port}`)
          .toSorted(),
      ).deepEqual([...texts, waiting].map((phone) => `${phone} 0`));
      const sent = simulator.ledger
        .entries()
        .filter((each) => each.endpoint === 'sendMessage' && each.processed)
        .map(({ phone }) => phone)
        .filter((phone) => texts.includes(phone ?? ''));
      should(sent.toSorted()).deepEqual(texts);
    };

    it('stays with an instance that lacks its node until that has it: nothing is lost or sent twice', async () => {
      await allLeaveFrom(withNewNodes(two.environment));
    });

    it('meets a reset and a check that were given before any instance had its node', async () => {
      const store = await two.environment.store();
      const [left] = store.peers?.others() ?? [];
      const [wait] = (await activityOf(two.environment).waits(some)).data;
      two.environment.tellOthers('new sender', { reset: true });
      const check = { kind: 'item', at: store.now(), id: wait?.id, act: 'check' };
      left?.peers?.tellHolder(check).catch(() => undefined);
      const commands = key('command');
      const range = { from: commands, to: endOf(commands), limit: 2 };
      await until(async () => (await left?.keys('work', range))?.length === 2, 'The commands');
      const [sender, waiter] = withNewNodes(two.environment);
      const cancelled = await sender?.arrivals.next(texts.length);
      for (const { msg } of cancelled ?? []) should(msg.error).containDeep({ code: 'cancelled' });
      should(cancelled?.map(({ msg }) => msg.phone).toSorted()).deepEqual(texts);
      await until(() => waiter?.arrivals.all.length === 1, 'The accepted wait');
    });

    it('notifies viewers there that something has changed in what the stopped one has left', async () => {
      let changes = 0;
      activityOf(two.environment).changed = () => (changes += 1);
      await allLeaveFrom(withNewNodes(two.environment));
      should(changes).be.above(0);
    });

    it('moves from an instance that lacks its node to one that has it: nothing is lost or sent twice', async () => {
      const three = environments.start('three');
      await three.opening;
      await allLeaveFrom(withNewNodes(three));
      should(await activityOf(two.environment).waitCount()).equal(0);
      should((await two.sender.ask({ phone: number(190), text: 'Hello' }))[0]?.port).equal(0);
    });
  });
});
