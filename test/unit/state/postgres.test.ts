import should from 'should';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import {
  openPostgres,
  storeOf,
  troubleIn,
  type PostgresHandle,
  type Slot,
} from '../../../lib/state/postgres';
import { minute } from '../../../lib/durations';
import { newArrival } from '../../../lib/outbox/records';
import { faultInDatabase } from '../../../lib/state/postgres-connection';
import { existingEverywhere, forgetRemovedNodes } from '../../../lib/outbox/removed-nodes';
import { endOf, key, TakenOver, type Store } from '../../../lib/state/store';
import { Postgres } from '../../support/postgres';
import { until } from '../../support/until';
import { runChild } from '../../support/state/child';
import { testEngine } from '../../support/state/engine-suite';
import { sealerOf } from '../../support/state/sealer';
import { overStore } from '../../support/state/over-store';

let server: Postgres;
before(async function () {
  this.timeout(180_000);
  server = await Postgres.start();
});
after(() => server.close());

let databases = 0;

testEngine('PostgreSQL', async () => {
  const group = `group ${++databases}`;
  let handle: PostgresHandle;
  const open = async (word = 'test'): Promise<Store> => {
    handle = openPostgres({
      url: server.url(),
      group,
      sealer: async () => sealerOf(word),
      warn: (text) => word === 'test' && assert.fail(text),
    });
    return storeOf(await handle.opened, () => handle.close());
  };
  return {
    open,
    reopen: async (_store, word) => {
      await handle.close();
      return open(word);
    },
    dispose: () => handle.close(),
  };
});

describe('several processes on one PostgreSQL', () => {
  let group: string;
  let warnings: string[];
  const handles: PostgresHandle[] = [];
  const orphans = new Map<PostgresHandle, Slot[]>();

  beforeEach(() => {
    group = `group ${++databases}`;
    warnings = [];
  });
  afterEach(async () => {
    await Promise.all(handles.splice(0).map((handle) => handle.close()));
  });

  /** As a separate process would have it: a different address makes a separate client here. */
  const start = (name: string, leaseFor = 60_000, url = server.url()): PostgresHandle => {
    const handle = openPostgres({
      url: `${url}&application_name=${name}`,
      group,
      sealer: async () => sealerOf('test'),
      warn: (text) => warnings.push(text),
      leaseFor,
      pulseEvery: 20,
    });
    handles.push(handle);
    const left: Slot[] = [];
    orphans.set(handle, left);
    handle.database.onOrphan((store) => left.push(store));
    return handle;
  };
  /** The first orphan that one of these has taken over. */
  const orphanOf = (...successors: PostgresHandle[]): Promise<Slot> =>
    until(() => successors.flatMap((handle) => orphans.get(handle) ?? [])[0]);
  const put = (name: string, value: unknown) => ({ table: 'work' as const, put: key(name, 'n'), value });
  /** The first update of a table that matches `when` fails: "not now". */
  const whileFirstUpdateFails = async (
    table: string,
    when: string,
    task: () => Promise<void>,
  ): Promise<void> => {
    server.query(`create sequence advisor_texting.updates`);
    server.query(
      `create function advisor_texting.fail_once() returns trigger language plpgsql as
       $$ begin
         if ${when} and nextval('advisor_texting.updates') = 1 then raise exception 'not now'; end if;
         return new;
       end $$`,
    );
    server.query(
      `create trigger fail_once before update on advisor_texting.${table}
       for each row execute function advisor_texting.fail_once()`,
    );
    try {
      await task();
    } finally {
      server.query(`drop function advisor_texting.fail_once cascade`);
      server.query(`drop sequence advisor_texting.updates`);
    }
  };

  it('learn whether a database is reachable, and why not, without its password', async () => {
    should(await faultInDatabase(server.url())).be.undefined();
    // invalid_catalog_name
    should(await faultInDatabase(server.url('nowhere'))).equal('3D000');
  });

  it('connect through a pooler, which refuses parameters that it does not know', async () => {
    const known = ['user', 'database', 'application_name', 'client_encoding'];
    const pooler = createServer((client) => {
      client.once('data', (packet) => {
        // After the length and the version, names and values alternate, each with a zero at its end.
        const words = packet.toString('utf8', 8).split('\0');
        if (words.some((word, at) => at % 2 === 0 && word !== '' && !known.includes(word))) client.destroy();
        const database = connect(join(server.folder, '.s.PGSQL.5432'));
        database.write(packet);
        client.pipe(database).pipe(client);
      });
    }).listen(0, '127.0.0.1');
    await once(pooler, 'listening');
    const { port } = pooler.address() as AddressInfo;
    const handle = start('a', 60_000, `postgres://test@127.0.0.1:${port}/postgres?`);
    const store = storeOf(await handle.opened, () => handle.close());
    should(await store.write([{ table: 'work', put: key('a'), value: 1 }])).be.true();
    should(warnings).deepEqual([]);
    await store.close();
    pooler.close();
  });

  it('keep their records separate', async () => {
    const [one, two] = await Promise.all([start('one').opened, start('two').opened]);
    await one.write([put('item', 1)]);
    assert.equal(await two.get('work', key('item', 'n')), undefined);
  });

  it('keep their records separate for any node ids', async () => {
    const [one, two] = await Promise.all([start('one').opened, start('two').opened]);
    const ids = ['blocked', 'known', 'link'];
    await one.write(ids.map((id) => ({ table: 'work', put: key('item', id, 'n'), value: 1 })));
    for (const id of ids) assert.equal(await two.get('work', key('item', id, 'n')), undefined, id);
    const asked = key('known', 'environment/sandbox', 'asked', 'n');
    await one.write([{ table: 'work', put: asked, value: 'yesterday' }]);
    assert.equal((await two.get('work', asked))?.value, 'yesterday');
  });

  it('take over everything from one that stops', async () => {
    const [one, two] = [start('one'), start('two')];
    const store = await one.opened;
    await two.opened;
    await store.write([put('item', 'on its way')]);
    await one.close();
    const left = await orphanOf(two);
    assert.equal((await left.get('work', key('item', 'n')))?.value, 'on its way');
    await left.write([put('item', 'told')]);
  });

  it('take over from one that is killed, once its lease has expired', async function () {
    this.timeout(180_000);
    const two = start('two', 3000);
    await two.opened;
    const killed = runChild('postgres-child.ts', server.url(), group);
    await killed.printed(1);
    // Its lease is renewed as long as it runs.
    assert.deepEqual(orphans.get(two), []);
    await killed.kill();
    const left = await orphanOf(two);
    assert.equal((await left.get('work', key('item', 'n')))?.value, 'of the killed');
  });

  it('keep what belongs to a node that only another has, and delete it seven days after none had it', async () => {
    const [one, two] = [start('one'), start('two')];
    const [own, other] = await Promise.all([one.opened, two.opened]);
    await until(() => one.database.processes === 2 && two.database.processes === 2);
    await own.write([put('item', 'of a removed node')]);
    const sweepAfter = async (days: number, has: ReadonlySet<string>): Promise<boolean> => {
      const later: Store = overStore(own, {
        now: () => own.now() + days * 24 * 3_600_000,
      });
      const everywhere = await existingEverywhere(later, has, () => one.database.processes);
      if (everywhere) await forgetRemovedNodes(later, everywhere);
      return (await own.get('work', key('item', 'n'))) !== undefined;
    };
    const none = new Set(['some']);
    const tell = (ids: readonly string[]) =>
      existingEverywhere(other, new Set(ids), () => two.database.processes);
    // The other has not reported its nodes.
    assert.ok(await sweepAfter(0, none));
    assert.ok(await sweepAfter(30, none));
    await tell(['n']);
    assert.ok(await sweepAfter(60, none));
    await tell([]);
    assert.ok(await sweepAfter(90, none));
    assert.ok(await sweepAfter(96, none));
    // It was back in between.
    assert.ok(await sweepAfter(97, new Set(['n'])));
    assert.ok(await sweepAfter(98, none));
    assert.ok(await sweepAfter(104, none));
    assert.equal(await sweepAfter(105, none), false);
  });

  it('forget the nodes of one that has stopped', async () => {
    const [one, two] = [start('one'), start('two')];
    const [own, other] = await Promise.all([one.opened, two.opened]);
    await existingEverywhere(other, new Set(['n']), () => two.database.processes);
    await two.close();
    await until(() => one.database.processes === 1);
    const everywhere = await existingEverywhere(own, new Set(['m']), () => one.database.processes);
    assert.deepEqual([...(everywhere ?? [])], ['m']);
    assert.equal(await own.count('work', key('present'), endOf(key('present'))), 1);
  });

  it('reject writes from one whose lease was taken over', async () => {
    const one = start('one');
    const store = await one.opened;
    await store.write([put('item', 1)]);
    server.query(
      `update advisor_texting.lease set token = token + 1, holder = 'another' where holder <> '' and slot > 0`,
    );
    await assert.rejects(store.write([put('item', 2)]), /taken over/);
    await assert.rejects(store.write([put('item', 3)]), /taken over/);
    const again = await one.opened;
    assert.notEqual(again, store);
    await again.write([put('item', 4)]);
    assert.equal((await again.get('work', key('item', 'n')))?.value, 4);
  });

  it('leave nothing in doubt that was to be written after the lease was lost, while the database was unreachable', async () => {
    let isCut = false;
    let refused = 0;
    const clients = new Set<Socket>();
    const proxy = createServer((client) => {
      client.on('error', () => undefined);
      if (isCut) {
        refused += 1;
        client.destroy();
        return;
      }
      clients.add(client);
      const database = connect(join(server.folder, '.s.PGSQL.5432')).on('error', () => undefined);
      client.pipe(database).pipe(client);
      client.on('close', () => database.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const one = start('one', 60_000, `postgres://test@127.0.0.1:${port}/postgres?`);
    try {
      const store = await one.opened;
      isCut = true;
      for (const client of clients) client.destroy();
      await until(() => one.database.trouble !== undefined);
      const { slot, token } = store.engine.lease;
      server.query(
        `update advisor_texting.lease set token = token + 1, holder = 'another' where slot = ${slot} and token = ${token}`,
      );
      const before = refused;
      const written = store.write([put('item', 1)]).catch((fault: unknown) => fault);
      // The pulse connects too: of several connections, one is for the write.
      await until(() => refused > before + 5);
      isCut = false;
      const fault = await written;
      assert.ok(fault instanceof TakenOver);
      assert.equal(fault.isInDoubt, false);
    } finally {
      isCut = false;
      proxy.close();
    }
  });

  it('take over what expired while no other was running', async () => {
    const one = start('one');
    await (await one.opened).write([put('item', 1)]);
    await one.close();
    const two = start('two');
    const own = await two.opened;
    await until(async () => {
      const found = [own, ...(orphans.get(two) ?? [])].map((store) => store.get('work', key('item', 'n')));
      return (await Promise.all(found)).some((entry) => entry?.value === 1);
    });
  });

  it('get back what they gave up a moment ago, as in a deploy', async () => {
    const [one, two] = [start('one'), start('two')];
    await two.opened;
    await (await one.opened).write([put('item', 1)]);
    await one.close();
    const again = await start('one').opened;
    assert.equal((await again.get('work', key('item', 'n')))?.value, 1);
    assert.deepEqual(orphans.get(two), []);
  });

  it('take over from one that is stopped for longer than its lease, which then writes nothing more', async function () {
    this.timeout(180_000);
    const two = start('two', 3000);
    await two.opened;
    const stopped = runChild('postgres-child.ts', server.url(), group);
    await stopped.printed(1);
    stopped.signal('SIGSTOP');
    const left = await orphanOf(two);
    await left.write([put('item', 'of the survivor')]);
    stopped.signal('SIGCONT');
    await stopped.printed(2);
    assert.match(stopped.lines[1] ?? '', /taken over.*refused, and opened again/);
    assert.equal((await left.get('work', key('item', 'n')))?.value, 'of the survivor');
    await stopped.kill();
  });

  it('all resume after the database was unreachable for longer than a lease, and take over nothing', async function () {
    this.timeout(180_000);
    const started = [start('one', 3000), start('two', 3000), start('three', 3000)];
    const stores = await Promise.all(started.map((each) => each.opened));
    await server.stop();
    await until(() => started.every(({ database }) => database.trouble !== undefined));
    await pause(3500);
    const written = Promise.all(stores.map((store, n) => store.write([put('item', n)])));
    await server.run();
    assert.deepEqual(await written, [true, true, true]);
    for (const [n, store] of stores.entries())
      assert.equal((await store.get('work', key('item', 'n')))?.value, n);
  });

  it('make each write once while connections are cut in the middle of commits', async function () {
    this.timeout(180_000);
    const stores = await Promise.all(['one', 'two'].map((name) => start(name).opened));
    const place = { table: 'work', key: key('known', 'counter') } as const;
    const each = 40;
    let made = 0;
    const client = new Client({ connectionString: server.url() });
    await client.connect();
    const cutting = (async () => {
      for (let cut = 0; cut < 2 * each; cut += 5) {
        await until(() => made >= cut);
        await client.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('one', 'two')`,
        );
      }
      await client.end();
    })();
    const add = async (store: Slot): Promise<void> => {
      for (let n = 0; n < each;) {
        const found = await store.get<number>(place.table, place.key);
        const condition = found ? { ...place, version: found.version } : place;
        const operation = { table: place.table, put: place.key, value: (found?.value ?? 0) + 1 };
        if (!(await store.write([operation], [condition]))) continue;
        made += 1;
        n += 1;
      }
    };
    await Promise.all([...stores.map(add), cutting]);
    assert.equal((await stores[0]?.get<number>(place.table, place.key))?.value, made);
  });

  it('wait for the one that is about to change shared records, even without a condition', async () => {
    const store = await start('one').opened;
    const client = new Client({ connectionString: server.url() });
    await client.connect();
    try {
      await client.query('begin');
      await client.query(`select 1 from advisor_texting.lease where slot = 0 for update`);
      let isWritten = false;
      const writing = store
        .write([{ table: 'work', put: key('grant', 'x'), value: 1 }])
        .then(() => (isWritten = true));
      const waiting = `select 1 from pg_stat_activity where application_name = 'one' and wait_event_type = 'Lock'`;
      await until(() => server.query(waiting).trim() !== '');
      assert.equal(isWritten, false);
      await client.query('commit');
      await writing;
    } finally {
      await client.end();
    }
  });

  it('keep to conditions on shared records, whatever isolation the database has by default', async () => {
    const name = `isolated${++databases}`;
    const url = await server.database(name);
    server.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`);
    const [one, two] = ['one', 'two'].map((each) => start(each, 60_000, url));
    assert.ok(one && two);
    const stores = await Promise.all([one.opened, two.opened]);
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      await client.query('begin');
      await client.query(`select 1 from advisor_texting.lease where slot = 0 for update`);
      // Each writes only if the other has not.
      const [own, other] = [key('grant', 'x'), key('grant', 'y')];
      const writing = Promise.all([
        stores[0].write([{ table: 'work', put: own, value: 1 }], [{ table: 'work', key: other }]),
        stores[1].write([{ table: 'work', put: other, value: 1 }], [{ table: 'work', key: own }]),
      ]);
      const waiting = `select count(*) from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`;
      await until(() => server.query(waiting).trim() === '2');
      await client.query('commit');
      assert.equal((await writing).filter(Boolean).length, 1);
      assert.deepEqual(warnings, []);
    } finally {
      await client.end();
    }
  });

  it('have commits that survive a crash of the server, whatever the database has by default', async () => {
    for (const [setting, expected] of [
      ['off', 'on'],
      ['remote_apply', 'remote_apply'],
    ]) {
      server.query(`alter role test set synchronous_commit = ${setting}`);
      const { database, opened } = start(`with_${setting}`);
      await opened;
      const { rows } = await database.connection.writing.query('show synchronous_commit');
      assert.deepEqual(rows, [{ synchronous_commit: expected }]);
    }
    server.query('alter role test reset all');
  });

  it('are blocked by one that hangs in a transaction for no longer than its lease', async function () {
    this.timeout(180_000);
    let goOn = (): void => undefined;
    const standing = new Promise<void>((resolve) => (goOn = resolve));
    let isStanding = false;
    // The keys are locked while they are read.
    const still = openPostgres({
      url: `${server.url()}&application_name=still`,
      group,
      sealer: async () => {
        isStanding = true;
        await standing;
        return sealerOf('test');
      },
      warn: () => undefined,
      leaseFor: 1500,
    });
    handles.push(still);
    await until(() => isStanding);
    try {
      await (await start('one').opened).write([put('item', 1)]);
    } finally {
      goOn();
    }
    await (await still.opened).write([put('item', 2)]);
  });

  it('hand on what they took over to a live one, which gets it immediately and complete', async () => {
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await (await one.opened).write([put('item', 'left')]);
    await two.opened;
    await one.close();
    const left = await orphanOf(two, three);
    const [from, to] = (orphans.get(two) ?? []).includes(left) ? [two, three] : [three, two];
    const { processName } = (await to.opened).peers;
    assert.equal(await from.database.handOn(left, 'nobody'), false);
    await left.write([put('item', 'changed')]);
    assert.equal(await from.database.handOn(left, processName), true);
    await assert.rejects(left.write([put('item', 'too late')]), /taken over/);
    const handed = await orphanOf(to);
    assert.equal(handed.peers.part, left.peers.part);
    assert.equal((await handed.get('work', key('item', 'n')))?.value, 'changed');
  });

  it('take over slots with work when they start while another is running', async () => {
    const one = start('one');
    const { part } = (await one.opened).peers;
    await (await one.opened).write([put('item', 'left')]);
    await one.close();
    server.query(
      `insert into advisor_texting.lease select grp, 99, 'another', 1, 0, now() + interval '1 hour'
       from advisor_texting.lease where slot = ${part} and holder = '' and until > now() - interval '1 minute'
       order by until desc limit 1`,
    );
    server.query(`update advisor_texting.lease set until = now() where slot = ${part} and holder = ''`);
    const two = start('two');
    assert.notEqual((await two.opened).peers.part, part);
    const left = await orphanOf(two);
    assert.equal((await left.get('work', key('item', 'n')))?.value, 'left');
  });

  it('write to their own and to an orphaned slot in one commit, or to neither', async () => {
    const [one, two] = [start('one'), start('two')];
    await (await one.opened).write([put('item', 'left')]);
    const own = await two.opened;
    await one.close();
    const left = await orphanOf(two);
    const close = (): Promise<void> => Promise.resolve();
    const [here, there] = [storeOf(own, close), storeOf(left, close)];
    const writeBoth = (value: string): Promise<void> => {
      const jobs = [{ operations: () => [{ table: 'work', put: key('item', 'n'), value } as const] }];
      return here.saveTogether(jobs, { store: there, jobs });
    };
    const values = async () =>
      Promise.all([own, left].map(async (slot) => (await slot.get('work', key('item', 'n')))?.value));
    await writeBoth('emitted and accepted');
    assert.deepEqual(await values(), ['emitted and accepted', 'emitted and accepted']);
    server.query(
      `update advisor_texting.lease set token = token + 1, holder = 'another' where slot = ${left.engine.lease.slot}`,
    );
    await assert.rejects(writeBoth('too late'), /taken over/);
    assert.equal((await own.get('work', key('item', 'n')))?.value, 'emitted and accepted');
    assert.equal(own.peers.isLost, false);
    await own.write([put('item', 'goes on')]);
  });

  it('abandon nothing that was taken by a process that does not know of it', async function () {
    this.timeout(180_000);
    const [one, two] = [start('one'), start('two', 3000)];
    await (await one.opened).write([put('item', 'left')]);
    const own = await two.opened;
    const { slot } = (await one.opened).engine.lease;
    // As if the answer to the statement that took it was lost.
    server.query(
      `update advisor_texting.lease set token = token + 1, until = now() + interval '1 s',
       holder = (select holder from advisor_texting.lease where slot = ${own.engine.lease.slot} and grp = l.grp)
       from (select grp from advisor_texting.lease where slot = ${slot} and holder <> '' order by until desc limit 1) l
       where lease.grp = l.grp and slot = ${slot}`,
    );
    const left = await orphanOf(two);
    assert.equal((await left.get('work', key('item', 'n')))?.value, 'left');
  });

  it('notice that the database has lost commits, and leave in doubt what was accepted before', async function () {
    this.timeout(180_000);
    const one = start('one');
    const store = await one.opened;
    await store.write([put('item', 'accepted')]);
    const accepted = store.now();
    await store.write([put('item', 'started')]);
    assert.equal(store.peers.isInDoubt(accepted), false);
    // As after a failover to a standby that lacked the last commit.
    const { slot, token } = store.engine.lease;
    server.query(`update advisor_texting.lease set seq = seq - 1 where slot = ${slot} and token = ${token}`);
    const left = await orphanOf(one);
    assert.equal(left.engine.lease.slot, slot);
    assert.equal(left.peers.isInDoubt(accepted), true);
    await assert.rejects(store.write([put('item', 'ended')]), /taken over/);
    assert.match(warnings.join(), /lost commits that it had confirmed/);
    const again = await one.opened;
    assert.equal(again.peers.isInDoubt(again.now()), false);
    await again.write([put('item', 'new')]);
  });

  it('notice that, and leave in doubt what one had accepted that has ended since', async function () {
    this.timeout(180_000);
    const [one, two] = [start('one', 3000), start('two', 3000)];
    const [store, ended] = [await one.opened, await two.opened];
    await ended.write([put('item', 'accepted')]);
    const accepted = ended.now();
    const { slot } = store.engine.lease;
    // An older backup is restored: it has the slot of one that is gone, as it was then.
    await two.close();
    server.query(
      `update advisor_texting.lease set seq = seq - 1, holder = case when slot = ${slot} then holder else 'ended' end,
         until = now() + interval '1 min' where slot > 0 and grp = (select grp from advisor_texting.lease
         where slot = ${slot} and token = ${store.engine.lease.token})`,
    );
    const found = await until(() =>
      orphans.get(one)?.find(({ engine }) => engine.lease.slot === ended.engine.lease.slot),
    );
    assert.equal(found.peers.isInDoubt(accepted), true);
  });

  it('all carry out a command given to one, even for what a stopped process has left', async () => {
    const [one, two, three] = [start('one'), start('two'), start('three')];
    const stores = await Promise.all([one, two, three].map((each) => each.opened));
    await stores[2]?.write([put('item', 'left')]);
    await three.close();
    const left = await orphanOf(one, two);
    const obeyed: number[] = [];
    let isReady = false;
    for (const handle of [one, two])
      handle.database.onCommand(async (slot, command) => {
        if (!isReady) return false;
        assert.equal(command.kind, 'test');
        obeyed.push(slot.engine.lease.slot);
        return true;
      });
    const [own, others] = stores;
    assert.ok(own && others);
    let isAnswered = false;
    const told = own.peers.tellOthers({ kind: 'test', at: own.now() }).then(() => (isAnswered = true));
    const pending = `select count(*) from advisor_texting.work where substr(key, 13, 8) = 'command\\000'::bytea`;
    await until(() => server.query(pending).trim() === '2');
    assert.equal(isAnswered, false);
    isReady = true;
    await told;
    assert.deepEqual(obeyed.sort(), [others.engine.lease.slot, left.engine.lease.slot].sort());
    assert.equal(server.query(pending).trim(), '0');
  });

  it('carry out commands even behind many that nobody there can carry out', async () => {
    const [one, two] = [start('one'), start('two')];
    const [own, others] = await Promise.all([one.opened, two.opened]);
    let isObeyed = false;
    two.database.onCommand(async (slot, { kind }) => {
      isObeyed ||= slot === others && kind === 'block';
      return isObeyed;
    });
    for (let n = 0; n < 150; n++)
      own.peers.tellOthers({ kind: 'of a node elsewhere', at: own.now() }).catch(() => undefined);
    const pending = `select count(*) from advisor_texting.work where substr(key, 13, 8) = 'command\\000'::bytea`;
    await until(() => server.query(pending).trim() === '150');
    await one.close();
    const three = await start('three').opened;
    void three.peers.tellOthers({ kind: 'block', at: three.now() });
    await until(() => isObeyed);
  });

  it('find the records in their slot, even if the first attempt to open it fails halfway', async () => {
    const one = start('one');
    const { part } = (await one.opened).peers;
    await (await one.opened).write([put('item', 'left')]);
    await one.close();
    server.query(`update advisor_texting.lease set until = now() - interval '1 second' where slot = ${part}`);
    await whileFirstUpdateFails('lease', 'new.token = old.token', async () => {
      const store = await start('two').opened;
      assert.equal((await store.get('work', key('item', 'n')))?.value, 'left');
      assert.match(warnings.join(), /not now/);
    });
  });

  it('stop waiting for records of another once they are closed', async () => {
    const [one, two] = [start('one'), start('two')];
    await two.opened;
    const own = await one.opened;
    await until(() => own.peers.others().length > 0);
    const [other] = own.peers.others();
    await one.close();
    await assert.rejects(async () => other?.get('work', key('item', 'n')), /closed/);
    await assert.rejects(
      async () => other?.page('work', { from: key('a'), to: key('b'), limit: 1 }),
      /closed/,
    );
    assert.deepEqual(warnings, []);
  });

  it('encrypt nothing with keys that the database did not save', async () => {
    const made: object[] = [];
    const read: unknown[] = [];
    const open = (name: string): PostgresHandle => {
      const handle = openPostgres({
        url: `${server.url()}&application_name=${name}`,
        group,
        sealer: async (keys) => {
          read.push(keys.read());
          if (keys.read() !== undefined) return sealerOf('test');
          made.push({ by: name, attempt: made.length });
          const isUnsaved = !(await keys.write(made.at(-1) ?? {}, true, false));
          return { ...sealerOf('test'), isUnsaved };
        },
        warn: () => undefined,
      });
      handles.push(handle);
      return handle;
    };
    await start('first').opened;
    group = `group ${++databases}`;
    await whileFirstUpdateFails('meta', 'true', async () => {
      await open('one').opened;
      await open('two').opened;
      assert.deepEqual(read, [undefined, undefined, { by: 'one', attempt: 1 }]);
    });
  });

  it('wait while the database is out of connections, and resume when it has one', async function () {
    this.timeout(180_000);
    await start('first').opened;
    server.query(`create role few login connection limit 10`);
    server.query(`grant usage on schema advisor_texting to few`);
    server.query(`grant select, insert, update, delete on all tables in schema advisor_texting to few`);
    const one = start('one', 60_000, server.url().replace('test@', 'few@'));
    const store = await one.opened;
    server.query(`alter role few connection limit 0`);
    server.query(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'few'`);
    const written = store.write([put('item', 1)]);
    const read = store.get('work', key('item', 'n'));
    await until(() => one.database.trouble?.includes('too many connections') === true);
    server.query(`alter role few connection limit 10`);
    assert.equal(await written, true);
    await read;
    // More at once than it has connections.
    await Promise.all(Array.from({ length: 200 }, () => store.get('work', key('item', 'n'))));
  });

  it("report that the database's disk is full as long as it is, and resume when there is room", async () => {
    const one = start('one');
    const store = await one.opened;
    server.query(
      `create function advisor_texting.no_room() returns trigger language plpgsql as
       $$ begin raise exception using errcode = '53100', message = 'No space left on device'; end $$`,
    );
    server.query(
      `create trigger no_room before insert on advisor_texting.work for each row execute function advisor_texting.no_room()`,
    );
    const troubles = new Set<string | undefined>();
    try {
      const written = store.write([put('item', 1)]);
      await until(() => one.database.trouble?.includes('full') === true);
      one.database.onChange(() => troubles.add(one.database.trouble));
      const renewed = (): string =>
        server.query(`select until from advisor_texting.lease where token = ${store.engine.lease.token}`);
      for (let pulses = 0; pulses < 3; pulses++) {
        const before = renewed();
        await until(() => renewed() !== before);
      }
      assert.deepEqual([...troubles], []);
      server.query('drop trigger no_room on advisor_texting.work');
      assert.equal(await written, true);
    } finally {
      server.query('drop function advisor_texting.no_room() cascade');
    }
  });

  it('leave concurrent requests to the one that needs them, and return them when another does', async () => {
    const [one, two, three] = [start('one'), start('two'), start('three')];
    await Promise.all([one, two, three].map((each) => each.opened));
    const wanted = new Map([one, two, three].map((each) => [each, 0]));
    for (const each of [one, two, three]) each.database.addLoad(() => wanted.get(each) ?? 0);
    const shares = (): string => [one, two, three].map((each) => each.database.share(16)).join(' ');
    wanted.set(one, 100);
    await until(() => shares() === '14 1 1');
    wanted.set(three, 2);
    await until(() => shares() === '7 1 7');
    wanted.set(one, 1);
    await until(() => shares() === '1 1 14');
    await Promise.all([two.close(), three.close()]);
    await until(() => one.database.share(16) === 16);
  });

  it('share common records, and only one of many that want a record gets it', async () => {
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

  it('forget a slot that was taken over once its work is done', async () => {
    const [one, two] = [start('one'), start('two')];
    const store = await one.opened;
    await two.opened;
    await store.write([put('item', 1), put('open', 1)]);
    await one.close();
    const left = await orphanOf(two);
    await left.write([{ table: 'work', remove: key('item', 'n') }]);
    await until(() => left.peers.isLost);
  });

  it('wait while the database is unreachable, say so, and resume by themselves: each write is made once', async function () {
    this.timeout(180_000);
    const one = start('one');
    const store = await one.opened;
    const written: Promise<boolean>[] = [];
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 20; n++) {
        const at = key('count', `${round} ${n}`);
        written.push(store.write([{ table: 'work', put: at, value: n }], [{ table: 'work', key: at }]));
        if (n === 10) await server.stop();
      }
      await until(() => one.database.trouble !== undefined);
      assert.match(one.database.trouble ?? '', /cannot be used.*resumes on its own/);
      await server.run();
      await Promise.all(written);
    }
    assert.deepEqual(new Set(await Promise.all(written)), new Set([true]));
    assert.equal(await store.count('work', key('count'), key('counu')), 60);
    await until(() => one.database.trouble === undefined);
  });

  it('say one thing, and not each of three in turn, while the database does not answer', () => {
    const ofDriver = [
      'Query read timeout',
      'Connection terminated due to connection timeout',
      'timeout exceeded when trying to connect',
    ];
    const said = new Set(ofDriver.map((reason) => troubleIn(new Error(reason))));
    assert.deepEqual(
      [...said],
      ['The database does not answer: nothing is sent until it does. Sending then resumes on its own.'],
    );
  });

  describe("when the database's clock is changed", () => {
    let [name, url] = ['', ''];
    beforeEach(async () => {
      name = `clock_${++databases}`;
      url = await server.database(name);
      // They are found before PostgreSQL's own.
      const ofSystem = (clock: string): string =>
        `create function changed.${clock}() returns timestamptz language sql volatile as
         'select pg_catalog.${clock}() + ahead from changed.clock';`;
      server.query(
        `create schema changed; create table changed.clock as select interval '0' as ahead;
         ${ofSystem('now')} ${ofSystem('clock_timestamp')}
         alter database ${name} set search_path = changed, pg_catalog`,
        name,
      );
    });
    const change = (by: string): string => server.query(`update changed.clock set ahead = '${by}'`, name);

    for (const by of ['1 hour', '-1 hour'])
      it(`by ${by}, one that starts after that tells the same time as the others`, async () => {
        const first = await start('first', 60_000, url).opened;
        change(by);
        await until(() => warnings.some((text) => text.includes('clock of the database was changed')));
        const next = await start('next', 60_000, url).opened;
        should(Math.abs(next.now() - first.now())).be.below(minute);
      });

    it('back while all are stopped, what they accept still sorts after everything saved before', async () => {
      const before = start('first', 60_000, url);
      const store = await before.opened;
      const last = newArrival(store);
      await before.close();
      change('-1 hour');
      const next = await start('first', 60_000, url).opened;
      assert.equal(Buffer.compare(last, newArrival(next)), -1);
    });
  });

  it('report that the database accepts no writes, and resume when it does', async () => {
    const one = start('one');
    const store = await one.opened;
    const setting = (value: string): void => {
      server.query(`alter system set default_transaction_read_only = ${value}`);
      server.query('select pg_reload_conf()');
    };
    setting('on');
    try {
      const written = store.write([put('item', 1)]);
      await until(() => one.database.trouble?.includes('read-only') === true);
      setting('off');
      assert.equal(await written, true);
    } finally {
      setting('off');
    }
  });

  it('report only that while they have lost their slot too', async () => {
    let connections = 0;
    const proxy = createServer((client) => {
      connections += 1;
      const database = connect(join(server.folder, '.s.PGSQL.5432'));
      client.pipe(database).pipe(client);
      client.on('error', () => undefined).on('close', () => database.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const one = start('one', 60_000, `postgres://test@127.0.0.1:${port}/postgres?`);
    const store = await one.opened;
    const setting = (value: string): void => {
      server.query(`alter system set default_transaction_read_only = ${value}`);
      server.query('select pg_reload_conf()');
    };
    const { slot, token } = store.engine.lease;
    server.query(`update advisor_texting.lease set token = 0 where slot = ${slot} and token = ${token}`);
    setting('on');
    try {
      await assert.rejects(store.write([put('item', 1)]), /taken over/);
      const again = one.opened;
      const told = one.database.tell({ allBut: slot }, { kind: 'none', at: 0 });
      // Each attempt connects again; between two, there is no connection, and several pulses.
      const before = connections;
      await until(() => connections > before + 2);
      setting('off');
      await (await again).write([put('item', 1)]);
      await told;
    } finally {
      setting('off');
      proxy.close();
    }
    assert.deepEqual(
      warnings.filter((text) => text.includes('cannot be used')),
      [],
    );
  });

  it('leave a database of a newer version alone, and say so', async () => {
    await start('first').opened;
    const version = (value: string): string =>
      server.query(`update advisor_texting.meta set value = '${value}' where name = 'version'`);
    const current = '1';
    version('99');
    try {
      const one = start('one');
      await until(() => one.database.trouble?.includes('newer version') === true);
      version(current);
      await (await one.opened).write([put('item', 1)]);
    } finally {
      version(current);
    }
  });

  it('create the tables of an empty database silently, though all start at once', async function () {
    this.timeout(180_000);
    const url = await server.database('empty');
    const started = ['one', 'two', 'three', 'four', 'five'].map((name) => start(name, 60_000, url));
    const stores = await Promise.all(started.map((each) => each.opened));
    assert.equal(new Set(stores.map(({ peers: { part } }) => part)).size, stores.length);
    for (const store of stores) await store.write([put('item', store.peers.part)]);
    assert.deepEqual(warnings, []);
  });

  it('report that their role lacks a permission, and resume when it has it', async () => {
    const url = await server.database('owned');
    await start('first', 60_000, url).opened;
    server.query('create role least login; grant usage on schema advisor_texting to least', 'owned');
    const one = start('one', 60_000, url.replace('test@', 'least@'));
    await until(() => one.database.trouble?.includes('lacks a permission') === true);
    const grant = 'grant select, insert, update, delete on all tables in schema advisor_texting to least';
    server.query(grant, 'owned');
    await (await one.opened).write([put('item', 1)]);
  });

  it('report row-level security, which would hide records from them, and resume when it is off', async () => {
    const url = await server.database('secured');
    await start('first', 60_000, url).opened;
    server.query(
      `create role secured login; grant usage on schema advisor_texting to secured;
       grant select, insert, update, delete on all tables in schema advisor_texting to secured`,
      'secured',
    );
    const one = start('one', 60_000, url.replace('test@', 'secured@'));
    const store = await one.opened;
    await store.write([put('item', 1)]);
    server.query('alter table advisor_texting.work enable row level security', 'secured');
    const reading = store.get('work', key('item', 'n'));
    await until(() => one.database.trouble?.includes('row-level security') === true);
    server.query('alter table advisor_texting.work disable row level security', 'secured');
    assert.equal((await reading)?.value, 1);
  });
});
