import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import 'should';
import { forgetAbsent } from '../../lib/state/absent';
import { Journal, type Resumed } from '../../lib/state/journal';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';
import { runChild } from './child';

const hour = 3_600_000;

describe('journal', () => {
  let store: Store;
  let now: number;
  const journal = (): Journal<string, string> => new Journal(store, () => now);
  const resume = (): Promise<Resumed<string, string>[]> => journal().resume('node', hour);
  const states = (resumed: readonly Resumed<string, string>[]): string[] =>
    resumed.flatMap(({ open }) => open.map(({ recipient, what }) => `${recipient} ${what}`));
  const keys = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const [key] of store.table('journal').entries()) found.push(key);
    return found;
  };

  beforeEach(() => {
    store = createMemoryStore();
    now = 1_700_000_000_000;
  });

  it('goes on with recipients not begun, calls begun ones unknown, and tells settled ones again', async () => {
    const first = journal();
    const entry = first.accept('node', {
      message: { payload: 1 },
      recipients: ['a', 'b', 'c', 'd'],
      context: { x: 1 },
    });
    await entry.begin(0);
    await entry.begin(1);
    await entry.outcome(1, 'sent');
    await entry.begin(2);
    await entry.outcome(2, 'sent');
    entry.told(2);
    await first.settle();

    const resumed = await resume();
    states(resumed).should.eql(['a unknown', 'b tell', 'd send']);
    resumed[0]?.message.should.eql({ payload: 1 });
    (resumed[0]?.context as object).should.eql({ x: 1 });
    (resumed[0]?.count ?? 0).should.equal(4);
    const b = resumed[0]?.open[1];
    (b?.what === 'tell' ? b.outcome : '').should.equal('sent');
  });

  it('calls recipients stale that waited longer than resumeWithin, but not those that had begun', async () => {
    const entry = journal().accept('node', { message: {}, recipients: ['a', 'b'] });
    await entry.begin(0);
    now += hour + 1;
    states(await resume()).should.eql(['a unknown', 'b stale']);
  });

  it('takes one write for a message whose request leaves in the same turn', async () => {
    let writes = 0;
    const table = store.table('journal');
    const counting: Store = {
      ...store,
      table: () =>
        ({
          ...table,
          write: (all: Parameters<typeof table.write>[0]) => {
            writes += 1;
            return table.write(all);
          },
        }) as never,
    };
    const entry = new Journal<string, string>(counting, () => now).accept('node', {
      message: {},
      recipients: ['a'],
    });
    await entry.begin(0);
    writes.should.equal(1);
    states(await resume()).should.eql(['a unknown']);
  });

  it('has a message on disk before it accepts the next', async () => {
    const first = journal();
    first.accept('node', { message: {}, recipients: ['a'] });
    first.accept('node', { message: {}, recipients: ['b'] });
    (await keys()).length.should.equal(1);
    await first.settle();
    (await keys()).length.should.equal(2);
  });

  for (const how of ['throws', 'rejects'] as const) {
    const faulty = (): { disk: { isFull: boolean }; journal: Journal<string, string> } => {
      const disk = { isFull: false };
      const table = store.table('journal');
      const write: typeof table.write = (writes) => {
        if (!disk.isFull) return table.write(writes);
        if (how === 'throws') throw new Error('no space');
        return Promise.reject(new Error('no space'));
      };
      const full: Store = { ...store, table: () => ({ ...table, write }) as never };
      return { disk, journal: new Journal<string, string>(full, () => now) };
    };

    it(`lets nothing begin that is not on disk, where a write ${how}`, async () => {
      const { disk, journal: first } = faulty();
      const one = first.accept('node', { message: {}, recipients: ['a'] });
      const begun = one.begin(0);
      disk.isFull = true;
      const two = first.accept('node', { message: {}, recipients: ['b', 'c'] });
      await begun.should.be.rejectedWith('no space');
      await two.begin(0).should.be.rejectedWith('no space');
      (await keys()).should.eql([]);

      disk.isFull = false;
      await first.settle();
      states(await resume()).should.eql(['a unknown', 'b unknown', 'c send']);
      await two.begin(1);
      states(await resume()).should.eql(['a unknown', 'b unknown', 'c unknown']);
    });

    it(`writes at the end of the turn what could not be written amid it, where a write ${how}`, async () => {
      const { disk, journal: first } = faulty();
      const one = first.accept('node', { message: {}, recipients: ['a', 'b'] });
      const begun = one.begin(0);
      disk.isFull = true;
      first.accept('node', { message: {}, recipients: ['c'] });
      await Promise.resolve();
      disk.isFull = false;
      await begun;
      states(await resume()).should.eql(['a unknown', 'b send', 'c send']);
    });

    it(`writes nothing any more of what was told meanwhile, where a write ${how}`, async () => {
      const { disk, journal: first } = faulty();
      disk.isFull = true;
      const one = first.accept('node', { message: {}, recipients: ['a'] });
      await one.begin(0).should.be.rejected();
      await one.outcome(0, 'failed').should.be.rejected();
      one.told(0);
      disk.isFull = false;
      await first.accept('node', { message: {}, recipients: ['b'] }).begin(0);
      states(await resume()).should.eql(['b unknown']);
    });
  }

  it('is not kept off the disk by a function in what a recipient brought along', async () => {
    const first = new Journal<object, object>(store, () => now);
    const recipient = { phone: '+12025550101', reply: () => 'still here' };
    const entry = first.accept('node', { message: {}, recipients: [recipient] });
    await entry.begin(0);
    await entry.outcome(0, { set: { recipient } });
    const [resumed] = await first.resume('node', hour);
    const kept = { phone: '+12025550101' };
    const outcome = { set: { recipient: kept } };
    (resumed?.open ?? []).should.eql([{ index: 0, recipient: kept, what: 'tell', outcome }]);
  });

  it('leaves nothing behind when everything was told', async () => {
    const first = journal();
    for (const count of [1, 250]) {
      const recipients = Array.from({ length: count }, (_, n) => String(n));
      const entry = first.accept('node', { message: {}, recipients });
      for (let index = 0; index < count; index++) {
        await entry.begin(index);
        await entry.outcome(index, 'sent');
        entry.told(index);
        if (index % 50 === 0) await first.settle();
      }
    }
    (await keys()).should.eql([]);
    (await resume()).should.eql([]);
  });

  it('never sends again what a lost part of the log may have begun', async () => {
    const entry = journal().accept('node', { message: {}, recipients: ['a', 'b', 'c'] });
    await new Promise((resolve) => setImmediate(resolve));
    await entry.begin(0);
    await entry.begin(1);
    const [, firstLog] = await keys();
    await store.table('journal').write([{ remove: firstLog ?? '' }]);
    states(await resume()).should.eql(['a unknown', 'b unknown', 'c unknown']);
  });

  it('keeps functions and connections while the process lives, and tells when they are gone', async () => {
    const message = { payload: 1, req: { socket: {} }, reply: () => 'still here' };
    journal().accept('node', { message, recipients: ['a'] });
    journal().accept('node', { message: { payload: 2 }, recipients: ['b'] });
    await new Promise((resolve) => setImmediate(resolve));
    const [alive, plain] = await resume();
    (alive?.message === message).should.be.true();
    (alive?.dropped ?? true).should.be.false();
    (plain?.dropped ?? true).should.be.false();
    const [key] = await keys();
    const elsewhere = createMemoryStore();
    const record = await store.table('journal').get(key ?? '');
    await elsewhere.table('journal').write([{ put: 'node/after-a-restart/a', value: record }]);
    const [gone] = await new Journal<string, string>(elsewhere, () => now).resume('node', hour);
    gone?.message.should.eql({ payload: 1 });
    (gone?.dropped ?? false).should.be.true();
  });

  it('keeps what a node left undone for seven days after it left the flow', async () => {
    journal().accept('node', { message: {}, recipients: ['a'] });
    await new Promise((resolve) => setImmediate(resolve));
    const day = 24 * hour;
    await forgetAbsent(store, new Set(['other']), now);
    await forgetAbsent(store, new Set(['other']), now + 6 * day);
    (await keys()).length.should.equal(1);
    await forgetAbsent(store, new Set(['node']), now + 6.5 * day);
    await forgetAbsent(store, new Set(['other']), now + 8 * day);
    await forgetAbsent(store, new Set(['other']), now + 14 * day);
    (await keys()).length.should.equal(1);
    await forgetAbsent(store, new Set(['other']), now + 15.1 * day);
    (await keys()).should.eql([]);
  });

  it('killed at random points: nothing received twice, every outcome told, a repeated one says so', async function () {
    this.timeout(120_000);
    const directory = mkdtempSync(join(tmpdir(), 'advisor-journal-'));
    let kills = 0;
    for (let finished = false; !finished;) {
      const child = runChild('sends-lists.ts', directory);
      if (kills < 8) {
        await child.printed(Math.floor(Math.random() * 90));
        await child.kill();
        kills += 1;
      } else await child.ended();
      finished = child.lines.includes('done');
    }
    const lines = (file: string): string[] => readFileSync(join(directory, file), 'utf8').trim().split('\n');
    const received = lines('received');
    new Set(received).size.should.equal(received.length);
    const told = new Set<string>();
    for (const line of lines('told')) {
      const [name = '', , again] = line.split(' ');
      if (told.has(name)) (again ?? '').should.equal('repeated', line);
      told.add(name);
    }
    for (const name of received) told.has(name).should.be.true();
    for (const job of lines('accepted')) {
      const size = Number(job) < 4 ? 150 : 1;
      for (let index = 0; index < size; index++) told.has(`${job}-${String(index)}`).should.be.true();
    }
    rmSync(directory, { recursive: true, force: true });
  });
});
