import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Later, Queue } from '../../../lib/outbox/queue';
import type { ItemData, Shared } from '../../../lib/outbox/records';
import { MovableClock } from '../../../simulator/movable-clock';
import type { Operation } from '../../../lib/state/store';
import { nextIteration } from '../../support/event-loop';
import { andOften, howOften } from '../../support/extent';
import { Disk, never, type Process } from '../../support/outbox/process';
import { hosted, nobodys, type NodeHost } from '../../support/outbox/requests';

const resumeWithin = 3_600_000;
const phones = ['+12025550101', '+12025550102'] as const;
const everything = [Buffer.of(0), Buffer.of(0xff)] as const;

interface Text extends ItemData {
  readonly nth: number;
  readonly phone: string;
  /** Every second item of a held list is held. */
  readonly notBefore: number;
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('accept' as const),
      count: fc.constantFrom(1, 1, 1, 2, 2, 3, 130),
      heldFor: fc.constantFrom(0, 0, 0, 1000, 60_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), ms: fc.nat({ max: 70_000 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pass' as const), turns: fc.nat({ max: 12 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), commits: fc.nat({ max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deploy' as const), turns: fc.nat({ max: 8 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('recheck' as const), phone: fc.constantFrom(...phones) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), on: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('reset' as const), phone: fc.constantFrom(undefined, ...phones) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('jump' as const), ms: fc.integer({ min: -1e8, max: 1e8 }) }),
  },
);

interface SavedItem {
  readonly item: Text;
  readonly single?: object;
}

/** Ticks that reads of the store take, one after the other. */
const delays = fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 8 });

interface Life {
  readonly process: Process;
  readonly outbox: Queue<Text>;
  readonly closed: AbortController;
}

/** One process after the other on one store, and a service that records what it gets. */
class Machine {
  readonly sent: number[] = [];
  readonly told: { readonly nth: number; readonly outcome: string; readonly repeated: boolean }[] = [];
  readonly accepted = new Set<number>();
  /** Texts that a saved reset came before. */
  readonly cancelled = new Set<number>();
  private isPaused = false;
  private time = 1_750_000_000_000;
  private readonly clock = new MovableClock(() => 1_750_000_000_000);
  private readonly disk: Disk;
  private readonly texts: Text[] = [];
  private readonly started = new Set<number>();
  /** Items of lists, which are accepted once their list is complete. */
  private readonly saved: { readonly list: string; readonly nth: number }[] = [];
  private readonly complete = new Set<string>();
  private resets: (readonly number[])[] = [];
  private life: Life;

  constructor(delays: readonly number[]) {
    this.disk = new Disk(delays, { now: () => this.time });
    this.life = this.start();
  }

  private start(
    process = this.disk.start((operations) => {
      this.note(operations);
    }),
  ): Life {
    const closed = new AbortController();
    const outbox = new Queue({
      store: process.store,
      node: 'node',
      type: 'type',
      space: 'space',
      width: 4,
      resumeWithin,
      clock: this.disk.clockOf(process, this.clock),
      ...hosted(this.hostIn(process, closed.signal)),
    });
    void outbox.start();
    return { process, outbox, closed };
  }

  /** What a commit saves. */
  private note(operations: readonly Operation[]): void {
    for (const operation of operations) {
      if (!('put' in operation)) continue;
      const key = operation.put.toString('latin1');
      if (key.startsWith('cancel\0')) for (const nth of this.resets.shift() ?? []) this.cancelled.add(nth);
      if (key.startsWith('item\0')) this.noteItem(key, operation.value as SavedItem);
      if (key.startsWith('list\0') && (operation.value as { readonly isComplete: boolean }).isComplete)
        this.complete.add(key.slice('list\0'.length));
    }
    for (const { list, nth } of this.saved) if (this.complete.has(list)) this.accepted.add(nth);
  }

  private noteItem(key: string, { item, single }: SavedItem): void {
    if (single) this.accepted.add(item.nth);
    else this.saved.push({ list: key.slice('item\0'.length, -6), nth: item.nth });
  }

  private hostIn(process: Process, closed: AbortSignal): NodeHost<Text, Shared, string> {
    return {
      work: async (item) => {
        const { signal } = item;
        const { nth, notBefore } = item.data;
        const held = this.heldUntil(process, notBefore);
        if (held) return held;
        for (;;) {
          if (signal.aborted) return item.isReset ? 'reset' : undefined;
          this.started.add(nth);
          await item.start();
          if (!this.mustWait()) break;
          // As after a 429: certainly not carried out.
          await item.undo();
          this.started.delete(nth);
          while (this.mustWait(signal)) await nextIteration();
        }
        for (let turns = nth % 4; turns > 0; turns--) await nextIteration();
        if (process.isDead) return never;
        this.sent.push(nth);
        await nextIteration();
        return 'sent';
      },
      outcomeFor: async ({ data: { nth } }, reason) => {
        // As with a key, which is released first.
        for (let turns = nth % 5; turns > 0; turns--) await nextIteration();
        return reason;
      },
      kindsOf: (outcome) => [outcome],
      emit: async (job, { nth }, { outcome, repeated, isLast, counts }) => {
        if (process.isDead) return never;
        if (closed.aborted) return false;
        this.told.push({ nth, outcome, repeated });
        for (let turns = nth % 3; turns > 0; turns--) await nextIteration();
        if (isLast) {
          const { total: _total, ...kinds } = counts;
          const sum = Object.values(kinds).reduce((all, count) => all + count, 0);
          assert.equal(sum, job.record.count, 'the last outcome comes with all of them counted');
        }
        return true;
      },
      fault: (fault) => {
        throw fault;
      },
    };
  }

  /** A dead process emits nothing any more. */
  private heldUntil(process: Process, notBefore: number): Promise<never> | undefined {
    if (process.isDead) return never;
    return this.clock.now() < notBefore ? Promise.reject(new Later(notBefore)) : undefined;
  }

  private mustWait(signal?: AbortSignal): boolean {
    return this.isPaused && signal?.aborted !== true;
  }

  pause(isOn: boolean): void {
    this.isPaused = isOn;
  }

  accept(count: number, heldFor: number): void {
    const until = this.clock.now() + heldFor;
    const items = Array.from({ length: count }, (_, index): Text => {
      const nth = this.texts.length + index;
      return { index, nth, phone: phones[nth % 2] ?? phones[0], notBefore: index % 2 ? 0 : until };
    });
    this.texts.push(...items);
    this.life.outbox.accept({}, { shared: nobodys, items, count });
  }

  reset(phone: string | undefined): void {
    const isMeant = (text: Text): boolean => phone === undefined || text.phone === phone;
    const meant = this.texts.filter((text) => isMeant(text) && !this.started.has(text.nth));
    this.resets.push(meant.map(({ nth }) => nth));
    this.life.outbox.reset(phone === undefined ? undefined : [phone]);
  }

  move(ms: number): Promise<void> {
    return this.clock.move(ms);
  }

  jump(ms: number): void {
    this.time += ms;
  }

  async kill(commits: number): Promise<void> {
    await this.disk.kill(this.life.process, commits);
    this.resets = [];
    this.life = this.start();
  }

  recheck(phone: string): void {
    this.life.outbox.recheck(phone);
  }

  async restart(): Promise<void> {
    await this.life.outbox.close();
    await this.disk.end(this.life.process);
    this.life = this.start();
  }

  /** The next start of the node does not wait until the close has finished. */
  async deploy(turns: number): Promise<void> {
    const { process, outbox, closed } = this.life;
    closed.abort();
    void outbox.close();
    for (let left = turns; left > 0; left--) await nextIteration();
    this.life = this.start(process);
  }

  /** The number of records that belong to a text. */
  private async left(): Promise<number> {
    const range = { from: everything[0], to: everything[1], limit: 1000 };
    const tables = [this.disk.memory.keys('work', range), this.disk.memory.keys('wait', range)];
    const keys = (await Promise.all(tables)).flat();
    return keys.filter((key) => !key.toString('latin1').startsWith('home\0')).length;
  }

  async settle(): Promise<number> {
    this.isPaused = false;
    let left = 0;
    for (let turns = 0; turns < 3000; turns++) {
      await nextIteration();
      if (turns % 100 === 99) await this.move(60_000);
      left = await this.left();
      if (left === 0 && turns > 20) break;
    }
    return left;
  }
}

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
/**
 * What failed once: a cancellation that its start had not saved yet; one of texts that an earlier start was reading; one
 * of a text that a killed process had sent.
 */
const found: [Step[], number[]][] = [
  [
    [
      { do: 'reset', phone: undefined },
      { do: 'deploy', turns: 0 },
    ],
    [0],
  ],
  [
    [
      { do: 'reset', phone: undefined },
      { do: 'accept', count: 130, heldFor: 0 },
      { do: 'accept', count: 1, heldFor: 0 },
      { do: 'restart' },
      { do: 'accept', count: 3, heldFor: 0 },
      { do: 'deploy', turns: 0 },
      { do: 'pass', turns: 12 },
      { do: 'deploy', turns: 3 },
      { do: 'pass', turns: 7 },
      { do: 'reset', phone: undefined },
      { do: 'accept', count: 1, heldFor: 0 },
      { do: 'pass', turns: 7 },
      { do: 'deploy', turns: 4 },
    ],
    [6, 1, 0, 0, 1, 6, 2],
  ],
  [
    [
      { do: 'accept', count: 2, heldFor: 0 },
      { do: 'kill', commits: 1 },
      { do: 'accept', count: 130, heldFor: 0 },
      { do: 'kill', commits: 4 },
      { do: 'move', ms: 0 },
      { do: 'reset', phone: undefined },
    ],
    [0, 3, 0, 0, 0, 1],
  ],
];

describe('an outbox against a naive one', () => {
  it(`sends nothing twice and loses nothing, over kills at any commit, restarts, deploys, pauses, holds, resets and clock jumps${andOften}`, async function () {
    this.timeout(120_000);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), delays, async (steps, slow) => {
        const machine = new Machine(slow);
        for (const each of steps) {
          if (each.do === 'accept') machine.accept(each.count, each.heldFor);
          else if (each.do === 'pause') machine.pause(each.on);
          else if (each.do === 'reset') machine.reset(each.phone);
          else if (each.do === 'move') await machine.move(each.ms);
          else if (each.do === 'jump') machine.jump(each.ms);
          else if (each.do === 'restart') await machine.restart();
          else if (each.do === 'deploy') await machine.deploy(each.turns);
          else if (each.do === 'recheck') machine.recheck(each.phone);
          else if (each.do === 'kill') await machine.kill(each.commits);
          else for (let turns = 0; turns < each.turns; turns++) await nextIteration();
        }
        assert.equal(await machine.settle(), 0, 'nothing is left in the store');
        const { sent, told, accepted, cancelled } = machine;
        assert.equal(new Set(sent).size, sent.length, 'nothing is sent twice');
        const first = new Map<number, string>();
        for (const { nth, outcome, repeated } of told) {
          const before = first.get(nth);
          if (before !== undefined) assert.ok(repeated, `${nth} was emitted before`);
          assert.equal(outcome, before ?? outcome, 'and the same is emitted');
          first.set(nth, outcome);
          if (outcome !== 'unknown')
            assert.equal(outcome === 'sent', sent.includes(nth), `${nth} ${outcome}`);
        }
        for (const nth of accepted) assert.ok(first.has(nth), `${nth} is emitted`);
        for (const nth of first.keys()) assert.ok(accepted.has(nth), `${nth} was saved`);
        for (const nth of cancelled) assert.ok(!sent.includes(nth), `${nth} was cancelled`);
      }),
      { numRuns: howOften(150), examples: found },
    );
  });
});
