import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { createMemoryStore } from '../../../lib/state/memory';
import { identityKey, StoreRecognition } from '../../../lib/state/recognition';
import type { Engine, Store } from '../../../lib/state/store';
import { startSimulator, type Simulator } from '../../../simulator';
import { freshFolder, removeFolders } from '../../support/auth/setup';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { errorOf } from '../../support/outcomes';
import { itInLongRun } from '../../support/extent';
import { Postgres } from '../../support/postgres';
import { ask, consented, unasked } from '../../support/guards/setup';
import { Started } from '../../support/guards/started';
import { overStore } from '../../support/state/over-store';

const storeFolder = (userDir: string): string => join(userDir, 'advisor-texting');

const turns = async (count = 200): Promise<void> => {
  for (let left = count; left > 0; left--) await nextIteration();
};

describe('the store in a place', () => {
  const durable = (engine: Partial<Engine> = {}): Store =>
    overStore(createMemoryStore(), {}, { durable: true, ...engine });
  let settings: { get(): unknown; set(property: string, value: unknown): Promise<void> };
  const look = async (store: Store, place = 'file', isAlone = true): Promise<StoreRecognition> => {
    const recognition = new StoreRecognition(settings, place);
    await recognition.look(store, isAlone);
    return recognition;
  };
  const isLost = async (...asked: Parameters<typeof look>): Promise<boolean> => (await look(...asked)).isLost;

  beforeEach(() => {
    let kept: unknown;
    settings = {
      get: () => kept,
      set: async (_, value) => {
        kept = value;
      },
    };
  });

  it('is lost if it is another than the one before, until somebody has confirmed each', async () => {
    const [first, second, third] = [durable(), durable(), durable()];
    should([await isLost(first), await isLost(first), await isLost(second)]).eql([false, false, true]);
    const before = settings.get();
    for (const next of [second, third]) {
      const lost = await look(next);
      should(await lost.confirm(next, true)).be.true();
      should([lost.isLost, await isLost(next)]).eql([false, false]);
      should(await lost.confirm(next, true)).be.false();
    }
    should(await (await look(second)).confirm(second, true)).be.true();
    // Another process still remembers the first.
    await settings.set('', before);
    should(await isLost(second)).be.false();
  });

  it('is lost if it is new and alone, but not beside one with the same list', async () => {
    should(await isLost(durable())).be.false();
    should(await isLost(durable(), 'database', false)).be.false();
    should(await isLost(durable(), 'another')).be.true();
  });

  it('is a new one once its list has moved elsewhere', async () => {
    const store = durable();
    await (await look(store)).leave(store);
    should(await store.get('work', identityKey)).be.undefined();
    should(await isLost(store)).be.false();
  });

  it('is not lost while it is only in memory, or damaged: that is reported elsewhere', async () => {
    should(await isLost(durable())).be.false();
    should(await isLost(createMemoryStore())).be.false();
    should(await isLost(durable({ hasLostKeys: true }))).be.false();
  });
});

describe('an environment whose store was lost', function () {
  this.timeout(180_000);
  let simulator: Simulator;
  let userDir: string;
  let running: Started[];

  const start = async (...args: [object?, string?]): Promise<Started> => {
    const started = await Started.on(simulator, args[1] ?? userDir, args[0]);
    running.push(started);
    return started;
  };
  const stop = async (started: Started): Promise<void> => {
    running.splice(running.indexOf(started), 1);
    await started.stop();
  };
  const asked = (): number =>
    simulator.ledger
      .entries()
      .filter(({ endpoint }) => endpoint === 'sendMessage' || endpoint === 'requestConsent').length;
  const text = { phone: consented, text: 'Hi' };

  beforeEach(async () => {
    simulator = await startSimulator();
    userDir = freshFolder();
    running = [];
  });
  afterEach(async () => {
    for (const each of [...running]) await stop(each);
    await simulator.close();
  });
  after(removeFolders);

  /** Somebody is blocked, a text is sent, and everything is lost. */
  const lose = async (values: object = {}): Promise<void> => {
    const before = await start(values);
    await ask(before.flow, { phone: consented }, 'block');
    should((await ask(before.flow, { ...text, phone: unasked }, 'send')).from).equal('send');
    await stop(before);
    rmSync(storeFolder(userDir), { recursive: true });
  };

  it('says so, texts and asks nobody, and keeps new messages until somebody confirms the empty store', async () => {
    await lose();
    const before = asked();
    let after = await start();
    should(after.environment.isStoreLost).be.true();
    should(after.environment.trouble).match(/do-not-text list.*store\/confirm/s);
    should(after.logged.join('\n')).match(/Office: The store of this environment is gone/);
    should(after.health).equal(503);
    await after.until(() => after.storeEvents().length > 0);
    should(after.storeEvents()).eql([false]);
    after.flow.send({ ...text }, 'send');
    after.flow.send({ phone: unasked }, 'request');
    await turns();
    should([asked(), after.outcomes()]).eql([before, []]);

    // What it has accepted survives, and a restart confirms nothing.
    await stop(after);
    after = await start();
    await turns();
    should([asked(), after.outcomes(), after.environment.isStoreLost]).eql([before, [], true]);

    await ask(after.flow, { phone: consented }, 'block');
    should(await after.environment.confirmStore()).be.true();
    await after.until(() => after.outcomes().length === 2);
    const codes = after.outcomes().map(({ port, msg }) => (port === 1 ? errorOf(msg).code : port));
    should(codes.sort()).eql([0, 'blocked']);
    should(after.health).equal(200);
    await after.until(() => after.storeEvents().includes(true));
    should(await after.environment.confirmStore()).be.false();

    await stop(after);
    after = await start();
    should([after.environment.isStoreLost, after.health]).eql([false, 200]);
  });

  it('can be cancelled while it texts nobody', async () => {
    await lose();
    const after = await start();
    after.flow.send({ ...text }, 'send');
    await turns();
    after.flow.send({ reset: true }, 'send');
    await after.until(() => after.outcomes().length === 1);
    should(errorOf(after.outcomes()[0]?.msg ?? {}).code).equal('cancelled');
  });

  it('is not assumed on a first start, here or on another machine, nor on a restart', async () => {
    const sends = async (started: Started): Promise<void> => {
      should([started.environment.isStoreLost, started.health]).eql([false, 200]);
      should((await ask(started.flow, { ...text, text: String(asked()) }, 'send')).port).equal(0);
      await stop(started);
    };
    await sends(await start());
    await sends(await start());
    await sends(await start({}, freshFolder()));
  });

  it('is never a simulator, which may be reset at any time', async () => {
    await lose();
    const after = await start({ service: 'simulator' });
    should([after.environment.isStoreLost, after.environment.trouble, after.health]).eql([
      false,
      undefined,
      200,
    ]);
  });

  it('notices the deletion within seconds, sends nothing, and resumes when it is restored', async () => {
    const on = await start();
    await ask(on.flow, { ...text, text: 'Before' }, 'send');
    const before = asked();
    renameSync(storeFolder(userDir), join(userDir, 'elsewhere'));
    await on.until(() => on.health === 503);
    should(on.environment.trouble).match(/was deleted or replaced/);
    await on.until(() => on.storeEvents().length > 0);
    on.flow.send({ ...text }, 'send');
    await turns();
    should(asked()).equal(before);
    renameSync(join(userDir, 'elsewhere'), storeFolder(userDir));
    await on.until(() => on.health === 200);
    await on.until(() => asked() === before + 1);
  });

  it('is noticed after a deploy, too, when the directory was deleted while in use', async () => {
    const on = await start();
    await ask(on.flow, { phone: consented }, 'block');
    rmSync(storeFolder(userDir), { recursive: true });
    await on.until(() => on.health === 503);
    await stop(on);
    const before = asked();
    const after = await start();
    after.flow.send({ ...text }, 'send');
    await turns();
    should([after.environment.isStoreLost, asked()]).eql([true, before]);
  });

  describe('in PostgreSQL', () => {
    let server: Postgres;
    before(async () => {
      server = await Postgres.start();
    });
    after(() => server.close());

    /** Each name is a process of its own. */
    const values = (name: string): object => ({
      store: 'postgres',
      storeUrl: `${server.url()}&application_name=${name}`,
    });

    it('is noticed while it runs and after a restart, by all instances, and one confirms it for all', async () => {
      const other = freshFolder();
      const first = await start(values('one'));
      await ask(first.flow, { phone: consented }, 'block');
      await Flow.unload();
      const second = await start(values('two'), other);
      should([first, second].map(({ environment }) => environment.isStoreLost)).eql([false, false]);
      server.query('drop schema advisor_texting cascade');
      await Promise.all([first, second].map((each) => each.until(() => each.health === 503)));
      should(second.environment.trouble).match(/are gone from the database/);
      await stop(first);
      await stop(second);

      const before = asked();
      const one = await start(values('one'));
      await Flow.unload();
      const two = await start(values('two'), other);
      should([one, two].map(({ environment }) => environment.isStoreLost)).eql([true, true]);
      two.flow.send({ ...text }, 'send');
      await turns();
      should(asked()).equal(before);
      await one.environment.confirmStore();
      await two.until(() => asked() === before + 1);
      should([one, two].map(({ environment }) => environment.isStoreLost)).eql([false, false]);
    });

    it('is noticed by all instances where somebody empties the tables while they run', async () => {
      const first = await start(values('one'));
      await Flow.unload();
      const second = await start(values('two'), freshFolder());
      // The first has carried out a command by then, and looked which store it is.
      await ask(second.flow, { phone: consented }, 'block');
      server.query('truncate advisor_texting.work, advisor_texting.wait');
      await Promise.all([first, second].map((each) => each.until(() => each.environment.isStoreLost)));
      const before = asked();
      second.flow.send({ ...text }, 'send');
      await turns();
      should(asked()).equal(before);
    });

    itInLongRun(
      'is noticed where another instance makes the tables again, and both read what either writes',
      async () => {
        const first = await start(values('one'));
        await ask(first.flow, { phone: consented }, 'block');
        await Flow.unload();
        const second = await start(values('two'), freshFolder());
        server.query('drop schema advisor_texting cascade');
        await Promise.all([first, second].map((each) => each.until(() => each.health === 503)));
        await Flow.unload();
        const third = await start(values('three'), freshFolder());
        await Promise.all([first, second].map((each) => each.until(() => each.environment.isStoreLost)));
        should(third.environment.isStoreLost).be.false();
        await ask(third.flow, { phone: consented }, 'block');
        const isBlocked = [first, second, third].map(({ environment }) => environment.isBlocked(consented));
        should(await Promise.all(isBlocked)).eql([true, true, true]);
      },
    );
  });
});
