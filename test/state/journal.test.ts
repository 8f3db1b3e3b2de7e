import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import 'should';
import { forgetAbsent } from '../../lib/state/absent';
import { liveJournal } from '../../lib/state/live-journal';
import { Journal, type JournalEntry, type Resumed } from '../../lib/state/journal';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';
import { gate } from '../support/gate';
import { runChild } from './child';

const hour = 3_600_000;

describe('journal', () => {
  let store: Store;
  let now: number;
  const journal = (): Journal<string, string> => new Journal(store, 'node', () => now);
  const resume = (): Promise<Resumed<string, string>[]> => journal().resume(hour);
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
    const entry = first.accept({
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
    const entry = journal().accept({ message: {}, recipients: ['a', 'b'] });
    await entry.begin(0);
    now += hour + 1;
    states(await resume()).should.eql(['a unknown', 'b stale']);
  });

  for (const [kind, begin] of [
    ['on disk', (): Pick<Journal<string, string>, 'accept' | 'resume' | 'settle'> => journal()],
    ['in memory', () => liveJournal<string, string>('a node of its own')],
  ] as const) {
    it(`${kind}: sends what had begun and was not carried out, and nothing that has begun again`, async () => {
      const before = begin();
      const single = before.accept({ message: {}, recipients: ['a'] });
      const list = before.accept({ message: {}, recipients: ['b', 'c'] });
      await Promise.all([single.begin(0), list.begin(0), list.begin(1)]);
      await Promise.all([single.undo(0), list.undo(0)]);
      const left = await begin().resume(hour);
      states(left).should.eql(['a send', 'b send', 'c unknown']);
      await Promise.all(left.map(({ entry }) => entry.begin(0)));
      states(await begin().resume(hour)).should.eql(['a unknown', 'b unknown', 'c unknown']);
    });
  }

  it('calls stale what had begun, was not carried out and then waited too long', async () => {
    const entry = journal().accept({ message: {}, recipients: ['a'] });
    await entry.begin(0);
    await entry.undo(0);
    now += hour + 1;
    states(await resume()).should.eql(['a stale']);
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
    const entry = new Journal<string, string>(counting, 'node', () => now).accept({
      message: {},
      recipients: ['a'],
    });
    await entry.begin(0);
    writes.should.equal(1);
    states(await resume()).should.eql(['a unknown']);
  });

  it('has a message on disk before it accepts the next', async () => {
    const first = journal();
    first.accept({ message: {}, recipients: ['a'] });
    first.accept({ message: {}, recipients: ['b'] });
    (await keys()).length.should.equal(1);
    await first.settle();
    (await keys()).length.should.equal(2);
  });

  it('has an outcome on disk when it says so, though the store is slow and more messages come', async () => {
    const table = store.table('journal');
    const slow = gate();
    let written = 0;
    const write: typeof table.write = async (writes) => {
      if (++written === 1) await slow.opened;
      return table.write(writes);
    };
    const first = new Journal<string, string>(
      { ...store, table: () => ({ ...table, write }) as never },
      'node',
      () => now,
    );
    const entry = first.accept({ message: {}, recipients: ['a'] });
    let isOnDisk = false;
    const kept = entry.outcome(0, 'sent').then(() => (isOnDisk = true));
    for (const recipient of ['b', 'c']) first.accept({ message: {}, recipients: [recipient] });
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    isOnDisk.should.be.false();
    slow.open();
    await kept;
    states(await resume()).should.containEql('a tell');
  });

  const faulty = (
    how: 'throws' | 'rejects',
  ): { disk: { isFull: boolean }; journal: Journal<string, string> } => {
    const disk = { isFull: false };
    const table = store.table('journal');
    const write: typeof table.write = (writes) => {
      if (!disk.isFull) return table.write(writes);
      if (how === 'throws') throw new Error('no space');
      return Promise.reject(new Error('no space'));
    };
    const full: Store = { ...store, table: () => ({ ...table, write }) as never };
    return { disk, journal: new Journal<string, string>(full, 'node', () => now) };
  };

  for (const how of ['throws', 'rejects'] as const) {
    it(`lets nothing begin that is not on disk, where a write ${how}`, async () => {
      const { disk, journal: first } = faulty(how);
      const one = first.accept({ message: {}, recipients: ['a'] });
      const begun = one.begin(0);
      disk.isFull = true;
      const two = first.accept({ message: {}, recipients: ['b', 'c'] });
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
      const { disk, journal: first } = faulty(how);
      const one = first.accept({ message: {}, recipients: ['a', 'b'] });
      const begun = one.begin(0);
      disk.isFull = true;
      first.accept({ message: {}, recipients: ['c'] });
      await Promise.resolve();
      disk.isFull = false;
      await begun;
      states(await resume()).should.eql(['a unknown', 'b send', 'c send']);
    });

    it(`writes nothing any more of what was told meanwhile, where a write ${how}`, async () => {
      const { disk, journal: first } = faulty(how);
      disk.isFull = true;
      const one = first.accept({ message: {}, recipients: ['a'] });
      await one.begin(0).should.be.rejected();
      await one.outcome(0, 'failed').should.be.rejected();
      one.told(0);
      disk.isFull = false;
      await first.accept({ message: {}, recipients: ['b'] }).begin(0);
      states(await resume()).should.eql(['b unknown']);
    });
  }

  it('is not kept off the disk by a function in what a recipient brought along', async () => {
    const first = new Journal<object, object>(store, 'node', () => now);
    const recipient = { phone: '+12025550101', reply: () => 'still here' };
    const entry = first.accept({ message: {}, recipients: [recipient] });
    await entry.begin(0);
    await entry.outcome(0, { set: { recipient } });
    const [resumed] = await first.resume(hour);
    const kept = { phone: '+12025550101' };
    const outcome = { set: { recipient: kept } };
    (resumed?.open ?? []).should.eql([{ index: 0, recipient: kept, what: 'tell', outcome }]);
  });

  it('leaves nothing behind when everything was told', async () => {
    const first = journal();
    for (const count of [1, 250]) {
      const recipients = Array.from({ length: count }, (_, n) => String(n));
      const entry = first.accept({ message: {}, recipients });
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
    const entry = journal().accept({ message: {}, recipients: ['a', 'b', 'c'] });
    await new Promise((resolve) => setImmediate(resolve));
    await entry.begin(0);
    await entry.begin(1);
    const [, firstLog] = await keys();
    await store.table('journal').write([{ remove: firstLog ?? '' }]);
    states(await resume()).should.eql(['a unknown', 'b unknown', 'c unknown']);
  });

  describe('with messages of one recipient each', () => {
    const begun = async (first: Journal<string, string>, ...recipients: string[]) => {
      const entries: JournalEntry<string>[] = [];
      const onDisk: Promise<void>[] = [];
      for (const recipient of recipients) {
        const entry = first.accept({ message: {}, recipients: [recipient] });
        entries.push(entry);
        onDisk.push(entry.begin(0));
      }
      await Promise.all(onDisk);
      return entries;
    };
    const endsOnDisk = async (): Promise<number> =>
      (await keys()).filter((key) => key.startsWith('node/ends/')).length;

    it('keeps the outcomes of a turn in one record, which goes with the last of them', async () => {
      const entries = await begun(journal(), 'a', 'b');
      await Promise.all(entries.map((entry) => entry.outcome(0, 'sent')));
      (await endsOnDisk()).should.equal(1);
      (await keys()).length.should.equal(3);
      entries[0]?.told(0);
      states(await resume()).should.eql(['b tell']);
      const [b] = await resume();
      b?.open.should.eql([{ index: 0, recipient: 'b', what: 'tell', outcome: 'sent' }]);
      b?.entry.told(0);
      (await keys()).should.eql([]);
    });

    it('leaves nothing behind when it is told before its outcome is on disk', async () => {
      const first = journal();
      const [entry] = await begun(first, 'a');
      const kept = entry?.outcome(0, 'sent');
      entry?.told(0);
      await kept;
      (await keys()).should.eql([]);
    });

    it('takes the later of two outcomes', async () => {
      const [entry] = await begun(journal(), 'a');
      await entry?.outcome(0, 'first');
      await entry?.outcome(0, 'second');
      const [a] = await resume();
      a?.open.should.eql([{ index: 0, recipient: 'a', what: 'tell', outcome: 'second' }]);
      // After a restart it is done again.
      await a?.entry.begin(0);
      await a?.entry.outcome(0, 'third');
      const [again] = await resume();
      again?.open.should.eql([{ index: 0, recipient: 'a', what: 'tell', outcome: 'third' }]);
      again?.entry.told(0);
      (await keys()).should.eql([]);
    });

    it('sends nobody again when the record of the outcomes is lost', async () => {
      const first = journal();
      const entries = await begun(first, 'a', 'b');
      const unbegun = first.accept({ message: {}, recipients: ['c'] });
      await Promise.all([...entries, unbegun].map((entry) => entry.outcome(0, 'done')));
      const lost = (await keys()).find((key) => key.startsWith('node/ends/'));
      await store.table('journal').write([{ remove: lost ?? '' }]);
      states(await resume()).should.eql(['a unknown', 'b unknown', 'c tell']);
    });

    it('clears away outcomes whose messages are gone', async () => {
      const entries = await begun(journal(), 'a', 'b');
      await Promise.all(entries.map((entry) => entry.outcome(0, 'sent')));
      for (const key of await keys())
        if (key.endsWith('/a')) await store.table('journal').write([{ remove: key }]);
      (await resume()).should.eql([]);
      (await keys()).should.eql([]);
    });

    it('writes no outcome any more that was told while the disk was full', async () => {
      const { disk, journal: first } = faulty('rejects');
      const entries = await begun(first, 'a', 'b');
      disk.isFull = true;
      await Promise.allSettled(entries.map((entry) => entry.outcome(0, 'sent')));
      for (const entry of entries) entry.told(0);
      disk.isFull = false;
      await first.settle();
      (await keys()).should.eql([]);
    });
  });

  it('keeps functions and connections while the process lives, and tells when they are gone', async () => {
    const message = { payload: 1, req: { socket: {} }, reply: () => 'still here' };
    journal().accept({ message, recipients: ['a'] });
    journal().accept({ message: { payload: 2 }, recipients: ['b'] });
    await new Promise((resolve) => setImmediate(resolve));
    const [alive, plain] = await resume();
    (alive?.message === message).should.be.true();
    (alive?.dropped ?? true).should.be.false();
    (plain?.dropped ?? true).should.be.false();
    const [key] = await keys();
    const elsewhere = createMemoryStore();
    const record = await store.table('journal').get(key ?? '');
    await elsewhere.table('journal').write([{ put: 'node/after-a-restart/a', value: record }]);
    const [gone] = await new Journal<string, string>(elsewhere, 'node', () => now).resume(hour);
    gone?.message.should.eql({ payload: 1 });
    (gone?.dropped ?? false).should.be.true();
  });

  it('keeps what a node left undone for seven days after it left the flow', async () => {
    journal().accept({ message: {}, recipients: ['a'] });
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
