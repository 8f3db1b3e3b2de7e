import { statSync } from 'node:fs';
import { join } from 'node:path';
import { figureOf, interleaved, ratioOf, type Row } from '../figures';
import { firstToken, inFlight, outputs } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';

const megabyte = 1024 * 1024;

/** What looks took, and how many the server counted: a few are due by themselves meanwhile. */
export interface Polled extends Cost {
  readonly polls: number;
}

/** Looks at all waits now. */
export const pollAll = async (
  node: BenchRed,
  { service }: Pick<Surroundings, 'service'>,
  count: number,
): Promise<Polled> => {
  await service.reset();
  const before = await node.red.cpu();
  const from = performance.now();
  await node.order('flush', { output: outputs.waits });
  let { polls } = await service.counts();
  while (polls < count) {
    if (performance.now() - from > 300_000) throw new Error(`Only ${String(polls)} looks came.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    ({ polls } = await service.counts());
  }
  const after = await node.red.cpu();
  const used = after.user - before.user + after.system - before.system;
  return { cpu: used / 1000, wall: performance.now() - from, polls };
};

/** Consent status through the client alone. */
const bareCalls = async (
  node: BenchRed,
  { service }: Pick<Surroundings, 'service'>,
  count: number,
): Promise<Polled> => {
  const details = { url: service.url, token: firstToken, inFlight, count };
  return { ...(await node.order('calls', details)), polls: count };
};

const oneText = (node: BenchRed): Promise<Cost> =>
  node.order('texts', { output: outputs.on, end: 'on', count: 1, inFlight: 1 });

/** Begins waits, ten thousand a message unless told otherwise; the looks that are due at once are made. */
export const beginWaits = async (
  node: BenchRed,
  around: Surroundings,
  count: number,
  perMessage = 10_000,
): Promise<Cost> => {
  await oneText(node);
  const cost = await node.order('waits', { output: outputs.waits, count, perMessage });
  await pollAll(node, around, count);
  return cost;
};

const rss = async (node: BenchRed): Promise<number> =>
  (await node.order<{ rss: number }>('memory')).rss / megabyte;

const diskOf = (node: BenchRed): number =>
  statSync(join(node.red.userDir, 'advisor-texting', 'state.mdb')).size;

/** What it takes to start with waits, in seconds and in megabytes above the same flow without them. */
const startsWith = async (full: BenchRed, empty: BenchRed, count: number, around: Surroundings) => {
  const starts: number[] = [];
  const added: number[] = [];
  const afterPolls: number[] = [];
  const idle: number[] = [];
  const busy: number[] = [];
  for (let round = 0; round < around.rounds; round++) {
    await empty.restart();
    await full.restart();
    starts.push((await full.order<number>('ready', { count })) / 1000);
    // Whoever waits has asked before: what a first request loads is there with or without waits.
    for (const node of [empty, full]) await oneText(node);
    const [without, having] = [await rss(empty), await rss(full)];
    idle.push(without);
    added.push(having - without);
    // Work fills the space for young objects, whoever does it: so the one without waits makes as many bare calls.
    await bareCalls(empty, around, count);
    const busyWithout = await rss(empty);
    await pollAll(full, around, count);
    busy.push(busyWithout);
    afterPolls.push((await rss(full)) - busyWithout);
  }
  return { starts, added, afterPolls, idle, busy };
};

const rowsOf = (
  what: string,
  { starts, added, afterPolls, idle, busy }: Awaited<ReturnType<typeof startsWith>>,
  bytes: number,
): readonly Row[] => [
  {
    measurement: `${what}, resident memory added`,
    unit: 'MB',
    ours: figureOf(added),
    against: { what: 'the same flow without waits has', figure: figureOf(idle) },
    goal: { of: 'ours', atMost: 120 },
  },
  {
    measurement: `${what}, resident memory added once each was looked at`,
    unit: 'MB',
    ours: figureOf(afterPolls),
    against: { what: 'without waits, after as many bare calls', figure: figureOf(busy) },
    goal: { of: 'ours', atMost: 120 },
  },
  {
    measurement: `${what}, start until all of them wait again`,
    unit: 's',
    ours: figureOf(starts),
    goal: { of: 'ours', atMost: 3 },
  },
  { measurement: `${what}, bytes on disk each`, unit: 'B', ours: figureOf([bytes]) },
];

export const waits: Part = {
  name: 'waits',
  title: '100,000 waits for consent',
  roundsFor: (asked) => Math.min(asked, 3),
  async run(around) {
    const { rounds, scaled, versions, start } = around;
    const count = scaled(100_000);
    const named = count.toLocaleString('en-US');
    const rows: Row[] = [];
    for (const version of versions) {
      const where = `Node-RED ${version === 4 ? '4.1' : '5'}`;
      const empty = await start(version);
      const full = await start(version);
      const begun = await beginWaits(full, around, count);
      const callCount = scaled(20_000);
      const { polls = [], calls = [] } = await interleaved<Polled>(rounds, {
        polls: () => pollAll(full, around, count),
        calls: () => bareCalls(full, around, callCount),
      });
      const perEach = (costs: readonly Polled[]): number[] =>
        costs.map((each) => (each.cpu / each.polls) * 1000);
      const rates = (costs: readonly Polled[]): number[] =>
        costs.map((each) => (each.polls / each.wall) * 1000);
      const fromLists = await startsWith(full, empty, count, around);
      const single = await start(version);
      const begunSingly = await beginWaits(single, around, count, 1);
      const fromSingles = await startsWith(single, empty, count, around);
      rows.push(
        ...rowsOf(`${where}: ${named} waits`, fromLists, diskOf(full) / count),
        ...rowsOf(
          `${where}: ${named} waits, each with a message of its own`,
          fromSingles,
          diskOf(single) / count,
        ),
        {
          measurement: `${where}: CPU per poll with ${named} waits`,
          unit: 'µs',
          ours: figureOf(perEach(polls)),
          against: { what: 'bare client call', figure: figureOf(perEach(calls)) },
          ratio: ratioOf(perEach(polls), perEach(calls)),
          goal: { of: 'ratio', atMost: 1.3 },
        },
        {
          measurement: `${where}: polls per second with ${named} waits`,
          unit: '/s',
          ours: figureOf(rates(polls)),
          against: { what: 'bare client calls', figure: figureOf(rates(calls)) },
          ratio: ratioOf(rates(polls), rates(calls)),
        },
        {
          measurement: `${where}: CPU per wait begun, 10,000 a message`,
          unit: 'µs',
          ours: figureOf([(begun.cpu / count) * 1000]),
        },
        {
          measurement: `${where}: CPU per wait begun, one a message`,
          unit: 'µs',
          ours: figureOf([(begunSingly.cpu / count) * 1000]),
        },
      );
    }
    return rows;
  },
};
