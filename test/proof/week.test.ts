import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLong, seedFrom } from '../support/extent';
import { judge, type Evidence, type Step } from './history';
import { day, hour, minute, World } from './week';

/** `npm run proof -- weeks` asks for so many seeds. */
const wanted = Number(process.env.WEEKS ?? 0);
const seed = seedFrom('WEEK_SEED');
/** Seeds that have found something, by what was lived through. */
const kept = join(__dirname, 'seeds.json');
/** So many moments of one process, and of three, unless seeds were asked for. */
const moments = isLong ? 1200 : 150;
const which = isLong || wanted > 0 ? 'fresh seeds' : 'fixed seeds';

interface Life {
  readonly instances: number;
  readonly duration: number;
  readonly giveUpAfter: number;
  readonly events?: number;
  /** How many there are for one seed that was asked for. */
  readonly perSeed: number;
}

/** As much happens in a quarter of an hour as in a week, but for polls. */
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
  assert.deepEqual(wrong, [], `WEEK_SEED=${String(each)}, ${name}`);
};

/** Lives through the seeds that were asked for, or those that have found something and others. */
const liveThrough = async (name: LifeName): Promise<void> => {
  const count = Math.ceil(wanted * lives[name].perSeed);
  for (let n = 0; n < count; n++) {
    await live(name, seed + n);
    if (n % 100 === 99 || n === count - 1) console.log(`      ${name}: ${String(n + 1)} of ${String(count)}`);
  }
  if (count > 0) return;
  for (const each of readKept()[name] ?? []) await live(name, each);
  const others = lives[name].perSeed > 1 ? moments : 1;
  for (let n = 0; n < others; n++) await live(name, seed + n);
};

describe('processes, a store and a service with faults, on a time that is moved', function () {
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
    it(`three processes that take over what another left (${name}, ${which}): nothing twice, nothing lost, nobody asked too often`, () =>
      liveThrough(name));
});

describe('a life without an end', () => {
  it('is given up, and found fault with: polls that come in a row would go on for ever', async () => {
    const world = new World(1, 1, hour);
    for (let polls = 0; polls < 20_000; polls++) world.polled('+12025550101');
    assert.deepEqual(await world.live(hour), ['no end of polls at 2026-01-05T09:00:00.000Z']);
  });
});

describe('a full outage', () => {
  it('costs at most 1.1 requests for a text, and a hundred: all have an outcome', async function () {
    this.timeout(120_000);
    const texts = 2000;
    assert.ok((await new World(1, 1, hour).outage(texts)) <= 1.1 + 100 / texts);
  });
});

describe('the judge of a history', () => {
  const step = (type: Step['type'], more: Partial<Step> = {}): Step => ({
    name: 'one',
    kind: 'send',
    phone: '+12025550101',
    type,
    at: 1,
    ...more,
  });
  const of = (evidence: Partial<Evidence>): string[] =>
    judge({
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
  const begun = [step('invoked'), step('accepted')];

  it('has nothing against an operation that was done and told', () => {
    assert.deepEqual(
      of({ steps: [...begun, step('ok'), step('ok', { repeated: true })], deeds: [deed] }),
      [],
    );
    assert.deepEqual(of({ steps: [...begun, step('unknown')], deeds: [deed] }), []);
    assert.deepEqual(of({ steps: [step('invoked')] }), []);
  });

  const faulty: Record<string, Partial<Evidence>> = {
    'a text that was sent twice': { deeds: [deed, deed] },
    'a message that was lost': { steps: begun },
    'an outcome told again as if for the first time': {
      steps: [...begun, step('ok'), step('ok')],
      deeds: [deed],
    },
    'an outcome that changed': {
      steps: [...begun, step('ok'), step('unknown', { repeated: true })],
      deeds: [deed],
    },
    'a success that was none': { steps: [...begun, step('ok')] },
    'a failure that was none': { steps: [...begun, step('failed')], deeds: [deed] },
    'somebody who was asked again too soon': {
      deeds: [
        { ...deed, kind: 'ask' },
        { ...deed, kind: 'ask', age: day - 120_000 },
      ],
    },
    'a wait that ended before its consent': { steps: [...begun, step('ok', { kind: 'wait' })] },
    'polls in a row': { polls: Array.from({ length: 16 }, (_, at) => ({ phone: '+12025550101', at })) },
  };
  for (const [what, evidence] of Object.entries(faulty))
    it(`finds ${what}`, () => {
      assert.equal(of(evidence).length, 1);
    });
});
