import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { judge, type Evidence, type Step } from './history';
import { day, hour, World } from './week';

/** `npm run weeks` asks for so many seeds, from one that it draws; a run that failed is repeated by its seed. */
const wanted = Number(process.env.WEEKS ?? 0);
const seed = Number(process.env.WEEK_SEED ?? 1);
/** Seeds of each part in a run without a number: always the same, so that it ends the same way on every machine. */
const usual = 1;
/** Seeds that have found something. */
const kept = join(__dirname, 'seeds.json');

/** Of so many seeds that were asked for, one is a whole week: as much happens in two hours, but for polls. */
const hoursToWeeks = 10;

const liveThrough = async (instances: number, duration: number, giveUpAfter: number): Promise<void> => {
  const known = JSON.parse(readFileSync(kept, 'utf8')) as number[];
  const seeds = new Set(Array.from({ length: wanted > 0 ? wanted : usual }, (_, n) => seed + n));
  if (wanted === 0) for (const each of known) seeds.add(each);
  for (const [done, each] of [...seeds].entries()) {
    const isWeek = instances === 1 && wanted > 0 && done % hoursToWeeks === 0;
    const wrong = await (isWeek
      ? new World(each, 1, day).live(7 * day)
      : new World(each, instances, giveUpAfter).live(duration));
    if (wanted > 0 && done % 100 === 99) console.log(`${String(done + 1)} of ${String(wanted)}`);
    if (wrong.length === 0) continue;
    if (wanted > 0) writeFileSync(kept, `${JSON.stringify([...new Set([...known, each])])}\n`);
    assert.deepEqual(wrong, [], `WEEK_SEED=${String(each)}, ${String(instances)} instances`);
  }
};

describe('processes, a store and a service with faults, on a time that is moved', function () {
  this.timeout(wanted > 0 ? 0 : 120_000);
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);
  before(() => process.on('unhandledRejection', note));
  after(() => {
    process.off('unhandledRejection', note);
    assert.deepEqual(rejections, []);
  });

  it('one process, killed, deployed, stopped and with a clock that is set: nothing twice, nothing lost, nobody asked or polled too often', () =>
    liveThrough(1, 2 * hour, hour));

  it('three processes that take over what another left: nothing twice, nothing lost, nobody asked too often', () =>
    liveThrough(3, 3 * hour, hour));

  it('three processes with waits that end while the service is away: nothing twice, nothing lost', () =>
    liveThrough(3, hour / 4, hour / 4));
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
