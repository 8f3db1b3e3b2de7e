import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { openPostgres, type PostgresHandle, type PostgresStore } from '../../lib/state/postgres';
import { key } from '../../lib/state/store';
import { Postgres } from '../support/postgres';
import { runChild } from './child';
import { testEngine } from './engine-suite';
import { sealerOf } from './sealer';

let server: Postgres;
before(async function () {
  this.timeout(60_000);
  server = await Postgres.start();
});
after(() => server.close());

let databases = 0;

testEngine('PostgreSQL', async () => {
  const group = `group ${++databases}`;
  let handle: PostgresHandle;
  const open = async (): Promise<PostgresStore> => {
    handle = openPostgres({
      url: server.url(),
      group,
      sealer: async () => sealerOf('test'),
      warn: (text) => assert.fail(text),
    });
    return handle.opened;
  };
  return {
    open,
    reopen: async () => {
      await handle.close();
      return open();
    },
    dispose: () => handle.close(),
  };
});

describe('several processes on one PostgreSQL', () => {
  let group: string;
  let warnings: string[];
  const handles: PostgresHandle[] = [];
  const orphans = new Map<PostgresHandle, PostgresStore[]>();

  beforeEach(() => {
    group = `group ${++databases}`;
    warnings = [];
  });
  afterEach(async () => {
    await Promise.all(handles.splice(0).map((handle) => handle.close()));
  });

  /** As a process of its own would have it: what differs in its address is another one here. */
  const start = (name: string, leaseFor = 60_000): PostgresHandle => {
    const handle = openPostgres({
      url: `${server.url()}&application_name=${name}`,
      group,
      sealer: async () => sealerOf('test'),
      warn: (text) => warnings.push(text),
      leaseFor,
      pulseEvery: 20,
    });
    handles.push(handle);
    const left: PostgresStore[] = [];
    orphans.set(handle, left);
    handle.onOrphan((store) => left.push(store));
    return handle;
  };
  const orphanOf = async (handle: PostgresHandle): Promise<PostgresStore> => {
    for (;;) {
      const [first] = orphans.get(handle) ?? [];
      if (first) return first;
      await pause(10);
    }
  };
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await pause(10);
  };
  const put = (name: string, value: unknown) => ({ table: 'work' as const, put: key(name, 'n'), value });
  /** As when a process was stopped, or cut off, for longer than its lease. */
  const endLeases = (): string =>
    server.query(`update advisor_texting.lease set until = now() - interval '1 s' where slot > 0`);

  it('keep what each has apart', async () => {
    const [one, two] = await Promise.all([start('one').opened, start('two').opened]);
    await one.write([put('job', 1)]);
    assert.equal(await two.get('work', key('job', 'n')), undefined);
  });

  it('succeed one that ends, with all it had', async () => {
    const [one, two] = [start('one'), start('two')];
    const store = await one.opened;
    await two.opened;
    await store.write([put('job', 'on its way')]);
    await one.close();
    const left = await orphanOf(two);
    assert.equal((await left.get('work', key('job', 'n')))?.value, 'on its way');
    await left.write([put('job', 'told')]);
  });

  it('succeed one that is killed, once its lease has run out', async function () {
    this.timeout(60_000);
    const two = start('two');
    await two.opened;
    const killed = runChild('postgres-child.ts', server.url(), group);
    await killed.printed(1);
    // Its lease is renewed for as long as it lives.
    assert.deepEqual(orphans.get(two), []);
    await killed.kill();
    const left = await orphanOf(two);
    assert.equal((await left.get('work', key('job', 'n')))?.value, 'of the killed');
  });

  it('leave nothing to one whose lease was taken over: what it writes is refused', async () => {
    const one = start('one');
    const store = await one.opened;
    await store.write([put('job', 1)]);
    server.query(
      `update advisor_texting.lease set token = token + 1, holder = 'another' where holder <> '' and slot > 0`,
    );
    await assert.rejects(store.write([put('job', 2)]), /taken over/);
    await assert.rejects(store.write([put('job', 3)]), /taken over/);
    const again = await one.opened;
    assert.notEqual(again, store);
    await again.write([put('job', 4)]);
    assert.equal((await again.get('work', key('job', 'n')))?.value, 4);
  });

  it('take up themselves what ran out while nobody else was there', async () => {
    const one = start('one');
    await (await one.opened).write([put('job', 1)]);
    await one.close();
    endLeases();
    const again = await start('two').opened;
    assert.equal((await again.get('work', key('job', 'n')))?.value, 1);
  });

  it('share what belongs to all, and of many that want a record one has it', async () => {
    const stores = await Promise.all(['one', 'two', 'three'].map((name) => start(name).opened));
    const place = { table: 'work', key: key('grant', 'x') } as const;
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        stores[n % 3]?.write([{ table: 'work', put: place.key, value: n }], [place]),
      ),
    );
    assert.equal(results.filter(Boolean).length, 1);
    const values = await Promise.all(stores.map((store) => store.get('work', place.key)));
    assert.equal(new Set(values.map((entry) => entry?.value)).size, 1);
  });

  it('forget a slot that was taken over once nothing is left to do in it', async () => {
    const [one, two] = [start('one'), start('two')];
    const store = await one.opened;
    await two.opened;
    await store.write([put('job', 1), put('open', 1)]);
    await one.close();
    const left = await orphanOf(two);
    await left.write([{ table: 'work', remove: key('job', 'n') }]);
    await until(() => left.isLost);
  });

  it('wait while the database is away, say so, and go on by themselves: each write is made once', async function () {
    this.timeout(60_000);
    const one = start('one');
    const store = await one.opened;
    const written: Promise<boolean>[] = [];
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 20; n++) {
        const at = key('count', `${round} ${n}`);
        written.push(store.write([{ table: 'work', put: at, value: n }], [{ table: 'work', key: at }]));
        if (n === 10) await server.stop();
      }
      await until(() => one.trouble !== undefined);
      assert.match(one.trouble ?? '', /cannot be used.*goes on by itself/);
      await server.run();
      await Promise.all(written);
    }
    assert.deepEqual(new Set(await Promise.all(written)), new Set([true]));
    assert.equal(await store.count('work', key('count'), key('counu')), 60);
    await until(() => one.trouble === undefined);
  });

  it('say when the database takes no writes, and go on when it does', async () => {
    const one = start('one');
    const store = await one.opened;
    const setting = (value: string): void => {
      server.query(`alter system set default_transaction_read_only = ${value}`);
      server.query('select pg_reload_conf()');
    };
    setting('on');
    try {
      const written = store.write([put('job', 1)]);
      await until(() => one.trouble?.includes('read-only') === true);
      setting('off');
      assert.equal(await written, true);
    } finally {
      setting('off');
    }
  });

  it('leave a database of a newer version alone, and say so', async () => {
    await start('first').opened;
    const version = (value: number): string =>
      server.query(`update advisor_texting.meta set value = '${value}' where name = 'version'`);
    version(99);
    try {
      const one = start('one');
      await until(() => one.trouble?.includes('newer version') === true);
      version(1);
      await (await one.opened).write([put('job', 1)]);
    } finally {
      version(1);
    }
  });
});
