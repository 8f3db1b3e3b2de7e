import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLong, seed } from '../support/extent';
import { faultsIn, type Evidence, type Step } from './history';
import { day, hour, minute, World } from './week';

/** `npm run proof -- weeks` asks for so many seeds. */
const wanted = Number(process.env.WEEKS ?? 0);
/** Seeds that have found something, by scenario. */
const kept = join(__dirname, 'seeds.json');
/** So many moments of one process, and of three, unless seeds were given. */
const moments = isLong ? 1200 : 70;
/** The latest of the seeds that have found something. */
const latest = isLong ? Infinity : 2;
const which = isLong || wanted > 0 ? 'other seeds' : 'fixed seeds';

interface Life {
  readonly instances: number;
  readonly duration: number;
  readonly giveUpAfter: number;
  readonly events?: number;
  /** The number for one given seed. */
  readonly perSeed: number;
}

/** As much happens in a quarter of an hour as in a week, except for polls. */
const lives = {
  moments: { instances: 1, duration: minute, giveUpAfter: minute, events: 5, perSeed: 4 },
  minutes: { instances: 1, duration: 5 * minute, giveUpAfter: 5 * minute, events: 15, perSeed: 1 },
  quarter: { instances: 1, duration: hour / 4, giveUpAfter: hour / 4, perSeed: 1 / 4 },
  hours: { instances: 1, duration: 2 * hour, giveUpAfter: hour, perSeed: 1 / 10 },
  week: { instances: 1, duration: 7 * day, giveUpAfter: day, perSeed: 1 / 100 },
  threeMoments: { instances: 3, duration: minute, giveUpAfter: minute, events: 5, perSeed: 4 },
  threeMinutes: { instances: 3, duration: 5 * minute, giveUpAfter: 5 * minute, events: 15, perSeed: 1 },
  threeQuarter: { instances: 3, duration: hour / 4, giveUpAfter: hour / 4, perSeed: 1 / 4 },
  threeHours: { instances: 3, duration: 3 * hour, giveUpAfter: hour, perSeed: 1 / 10 },
} satisfies Record<string, Life>;
type LifeName = keyof typeof lives;

const readKept = (): Partial<Record<LifeName, number[]>> =>
  JSON.parse(readFileSync(kept, 'utf8')) as Partial<Record<LifeName, number[]>>;

const keep = (name: LifeName, found: number): void => {
  const known = readKept();
  known[name] = [...new Set([...(known[name] ?? []), found])];
  const lines = Object.entries(known).map(([life, seeds]) => `  "${life}": [${seeds.join(', ')}]`);
  writeFileSync(kept, `{\n${lines.join(',\n')}\n}\n`);
};

const live = async (name: LifeName, each: number): Promise<void> => {
  const { instances, duration, giveUpAfter, events }: Life = lives[name];
  const world = new World(each, instances, giveUpAfter);
  const wrong = await world.live(duration, events).catch((fault: unknown) => [String(fault)]);
  if (wrong.length === 0) return;
  if (wanted > 0) keep(name, each);
  assert.deepEqual(wrong, [], `TEST_SEED=${String(each)}, ${name}`);
};

/** Runs the given seeds, or those that have found something and others. */
const liveThrough = async (name: LifeName): Promise<void> => {
  const count = Math.ceil(wanted * lives[name].perSeed);
  for (let n = 0; n < count; n++) {
    await live(name, seed + n);
    if (n % 100 === 99 || n === count - 1) console.log(`      ${name}: ${String(n + 1)} of ${String(count)}`);
  }
  if (count > 0) return;
  for (const each of (readKept()[name] ?? []).slice(-latest)) await live(name, each);
  const others = lives[name].perSeed > 1 ? moments : 1;
  for (let n = 0; n < others; n++) await live(name, seed + n);
};

describe('processes, a store and a service with faults, on a movable clock', function () {
  this.timeout(wanted > 0 ? 0 : 300_000);
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);
  before(() => process.on('unhandledRejection', note));
  after(() => {
    process.off('unhandledRejection', note);
    assert.deepEqual(rejections, []);
  });

  for (const name of ['moments', 'minutes', 'quarter', 'hours'] as const)
    it(`one process, killed, deployed, stopped and with a clock that is set (${name}, ${which}): nothing twice, nothing lost, nobody asked or polled too often`, () =>
      liveThrough(name));

  if (wanted > 0) it('the same for a whole week', () => liveThrough('week'));

  for (const name of ['threeMoments', 'threeMinutes', 'threeQuarter', 'threeHours'] as const)
    it(`three processes that take over from each other (${name}, ${which}): nothing twice, nothing lost, nobody asked too often`, () =>
      liveThrough(name));
});

describe('an endless run', () => {
  it('is aborted and reported: consecutive polls would continue forever', async () => {
    const world = new World(1, 1, hour);
    for (let polls = 0; polls < 20_000; polls++) world.polled('+12025550101');
    assert.deepEqual(await world.live(hour), ['no end of polls at 2026-01-05T09:00:00.000Z']);
  });
});

describe('a full outage', () => {
  it('costs at most 1.1 requests per text, and a hundred: all have an outcome', async function () {
    this.timeout(120_000);
    const texts = 2000;
    assert.ok((await new World(1, 1, hour).outage(texts)) <= 1.1 + 100 / texts);
  });
});

describe('the check of a history', () => {
  const step = (type: Step['type'], more: Partial<Step> = {}): Step => ({
    name: 'one',
    kind: 'send',
    phone: '+12025550101',
    type,
    at: 1,
    ...more,
  });
  const of = (evidence: Partial<Evidence>): string[] =>
    faultsIn({
      steps: [],
      deeds: [],
      polls: [],
      acceptances: new Map(),
      askEvery: day,
      pollEvery: 30_000,
      starts: [],
      ...evidence,
    });
  const deed = { kind: 'send', name: 'one', phone: '+12025550101', at: 1, age: 1 } as const;
  const started = [step('invoked'), step('accepted')];

  it('accepts an operation that was done and emitted', () => {
    assert.deepEqual(
      of({ steps: [...started, step('ok'), step('ok', { repeated: true })], deeds: [deed] }),
      [],
    );
    assert.deepEqual(of({ steps: [...started, step('unknown')], deeds: [deed] }), []);
    assert.deepEqual(of({ steps: [step('invoked')] }), []);
  });

  const faulty: Record<string, Partial<Evidence>> = {
    'a text that was sent twice': { deeds: [deed, deed] },
    'a message that was lost': { steps: started },
    'an outcome emitted again as if for the first time': {
      steps: [...started, step('ok'), step('ok')],
      deeds: [deed],
    },
    'an outcome that changed': {
      steps: [...started, step('ok'), step('unknown', { repeated: true })],
      deeds: [deed],
    },
    'a false success': { steps: [...started, step('ok')] },
    'a false failure': { steps: [...started, step('failed')], deeds: [deed] },
    'somebody who was asked again too soon': {
      deeds: [
        { ...deed, kind: 'ask' },
        { ...deed, kind: 'ask', age: day - 120_000 },
      ],
    },
    'a wait that ended before its consent': { steps: [...started, step('ok', { kind: 'wait' })] },
    'consecutive polls': { polls: Array.from({ length: 16 }, (_, at) => ({ phone: '+12025550101', at })) },
  };
  for (const [what, evidence] of Object.entries(faulty))
    it(`finds ${what}`, () => {
      assert.equal(of(evidence).length, 1);
    });
});
