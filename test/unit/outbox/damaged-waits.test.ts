import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { open as openLmdb } from 'lmdb';
import { consentOf, type WaitItem, type WaitShared } from '../../../lib/consent/consent';
import { paceOf } from '../../../lib/consent/pace';
import { MovableClock } from '../../../simulator/movable-clock';
import { openEmbedded } from '../../../lib/state/embedded';
import { endOf, key, type Store } from '../../../lib/state/store';
import { space, WaitingQueue } from '../../support/outbox/waiting';
import { sealerOf } from '../../support/state/sealer';

const begin = 1_750_000_000_000;
const phone = '+12025550101';
// Its end lies beyond every second that the clock can move while the disk is slow.
const pace = paceOf({ pollEvery: 5, pollFor: 20, thenEvery: 10, giveUpAfter: 10_000_000 });
type Outbox = WaitingQueue<WaitItem, WaitShared>;

describe('a wait whose records are damaged', () => {
  let directory: string;
  let clock: MovableClock;
  let polls: number;
  let told: string[];
  let answer: string;
  let isLost: boolean;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-damaged-waits-'));
    clock = new MovableClock(() => begin);
    polls = 0;
    told = [];
    answer = 'pending';
    isLost = false;
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  /** A node, its environment and its store, as after a start. */
  const start = async (): Promise<{ store: Store; outbox: Outbox; stop(): Promise<void> }> => {
    const store = await openEmbedded({ directory, sealer: sealerOf('test'), warn: () => undefined, clock });
    if (isLost) Object.defineProperty(store.engine, 'hasLostKeys', { value: true });
    const consent = await consentOf({
      service: 'simulator',
      space,
      clock,
      store: () => store,
      isBlocked: async () => false,
      client: () => ({
        call: async () => {
          polls += 1;
          return { data: { memberId: 7, state: answer, lastChanged: 1 }, status: 200, attempts: 1 } as never;
        },
      }),
    });
    const outbox: Outbox = new WaitingQueue<WaitItem, WaitShared>({
      consent,
      outcomeOf: (outcome) => (outcome.kind === 'not_accepted' ? outcome.reason : outcome.kind),
      emit: async (_message, _item, { outcome }) => {
        told.push(outcome);
        return true;
      },
    });
    await outbox.start();
    const stop = async (): Promise<void> => {
      await outbox.close();
      await store.close();
    };
    return { store, outbox, stop };
  };

  const accept = (outbox: Outbox): Promise<void> =>
    outbox.accept([{ index: 0, phone }], { advisor: 'default', start: clock.now(), pace });

  /** Moves the clock until `isSo`; between two moves the commits get real time. */
  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    const late = Date.now() + 60_000;
    while (!isSo()) {
      assert.ok(Date.now() < late, `${what} did not come within a minute`);
      await clock.move(1000);
      await sleep(1);
    }
  };

  type Records = ReturnType<typeof openLmdb<Buffer, Buffer>>;

  /** Changes the records of a table whose keys begin with `kind`, below the store; gives their number. */
  const damage = async (
    name: 'wait' | 'work',
    kind: string,
    change: (table: Records, key: Buffer, value: Buffer) => void,
  ): Promise<number> => {
    const options = { encoding: 'binary', keyEncoding: 'binary', overlappingSync: false, maxDbs: 8 } as const;
    const root = openLmdb<Buffer, Buffer>(join(directory, 'store.mdb'), options);
    const table = root.openDB<Buffer, Buffer>(name, options);
    const found = Array.from(table.getRange()).filter(({ key }) =>
      key.toString('latin1').startsWith(`${kind}\0`),
    );
    for (const { key, value } of found) change(table as never, key, Buffer.from(value));
    await root.close();
    return found.length;
  };

  it('leaves as cancelled after a bit of its record has flipped, once', async () => {
    const first = await start();
    await accept(first.outbox);
    await until('the first look', () => polls > 0);
    await first.stop();
    const count = await damage('work', 'wait', (table, key, value) => {
      value[value.length - 1] = (value.at(-1) ?? 0) ^ 1;
      table.putSync(key, value);
    });
    assert.equal(count, 1);

    const second = await start();
    await until('the outcome', () => told.length > 0);
    await until('the end of the wait', () => second.outbox.count === 0);
    const { store } = second;
    for (const kind of ['number', 'member'])
      assert.equal(await store.count('wait', key(kind), endOf(key(kind))), 0, 'nobody finds it any more');
    await second.stop();
    assert.deepEqual(told, ['cancelled']);
  });

  it('is found again after a start when the page with its place in the timetable was lost', async () => {
    const first = await start();
    await accept(first.outbox);
    await until('the first look', () => polls > 0);
    await first.stop();
    const remove = (table: Records, key: Buffer): unknown => table.removeSync(key);
    assert.equal(await damage('wait', 'due', remove), 1);
    assert.equal(await damage('wait', 'number', remove), 1);

    // What a damaged page has left is that something was lost, and when.
    isLost = true;
    const second = await start();
    polls = 0;
    await until('the third look', () => polls > 2);
    second.outbox.reset([phone]);
    await until('the outcome', () => told.length > 0);
    await second.stop();
    assert.deepEqual(told, ['cancelled']);
  });
});
