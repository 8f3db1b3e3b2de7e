import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  figureOf,
  interleaved,
  megabyte,
  microsOf,
  nameOf,
  ratioOf,
  type Figure,
  type Row,
} from '../figures';
import { firstToken, inFlight, outputs } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';

/** The cost of polls, and how many the server counted: a few are due by themselves meanwhile. */
export interface Polled extends Cost {
  readonly polls: number;
}

/** The cost of some work with its own young garbage, as the driver measures it, but from outside. */
const fromOutside = async (node: BenchRed, work: () => Promise<number>): Promise<Polled> => {
  await node.order('collect');
  const before = await node.red.cpu();
  const from = performance.now();
  const polls = await work();
  const wall = performance.now() - from;
  await node.order('collectYoung');
  const after = await node.red.cpu();
  const used = after.user - before.user + after.system - before.system;
  return { cpu: used / 1000, wall, polls };
};

/** Polls all waits now. */
export const pollAll = async (
  node: BenchRed,
  { service }: Pick<Surroundings, 'service'>,
  count: number,
): Promise<Polled> => {
  await service.reset();
  return fromOutside(node, async () => {
    const from = performance.now();
    await node.order('flush', { output: outputs.waits });
    let { polls } = await service.counts();
    while (polls < count) {
      if (performance.now() - from > 300_000) throw new Error(`Only ${String(polls)} looks came.`);
      await sleep(20);
      ({ polls } = await service.counts());
    }
    return polls;
  });
};

/** Consent status through the client alone. */
export const bareCalls = async (
  node: BenchRed,
  { service }: Pick<Surroundings, 'service'>,
  count: number,
): Promise<Polled> => {
  const details = { url: service.url, token: firstToken, inFlight, count };
  return { ...(await node.order('calls', details)), polls: count };
};

const oneText = (node: BenchRed): Promise<Cost> =>
  node.order('texts', { output: outputs.on, end: 'on', count: 1, inFlight: 1 });

/** Starts waits, ten thousand per message by default; the polls that are due immediately are made. */
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
  statSync(join(node.red.userDir, 'advisor-texting', 'store.mdb')).size;

interface Ready {
  readonly made: number;
  readonly waiting: number;
}

interface Side {
  /** Seconds from the start of the process until its nodes exist, and until all waits are waiting again. */
  readonly made: number;
  readonly waiting: number;
  /** Megabytes right after that, once it has been idle for a while, and after each wait was polled. */
  readonly fresh: number;
  readonly idle: number;
  readonly busy: number;
}

/** V8 keeps the space that a start has filled for about ten seconds, however little is left in it. */
const rest = 20_000;

/** Both sides, the one with waits first in one round and last in the next. */
const both = async <T>(round: number, work: (isFull: boolean) => Promise<T>) => {
  const isFullFirst = round % 2 === 0;
  const first = await work(isFullFirst);
  const second = await work(!isFullFirst);
  return isFullFirst ? { having: first, without: second } : { having: second, without: first };
};

/** The cost of a start with waits and without. */
const startsWith = async (
  full: BenchRed,
  empty: BenchRed,
  count: number,
  around: Surroundings,
): Promise<{ readonly having: readonly Side[]; readonly without: readonly Side[] }> => {
  const restarted = async (node: BenchRed, waiting: number) => {
    await node.restart();
    const ready = await node.order<Ready>('ready', { count: waiting });
    // Whoever waits has asked before: what a first request loads is there with or without waits.
    await oneText(node);
    return { made: ready.made / 1000, waiting: ready.waiting / 1000, fresh: await rss(node) };
  };
  const rested = async (node: BenchRed, work: () => Promise<unknown>) => {
    const idle = await rss(node);
    await work();
    return { idle, busy: await rss(node) };
  };
  const having: Side[] = [];
  const without: Side[] = [];
  for (let round = 0; round < around.rounds; round++) {
    const started = await both(round, (isFull) => (isFull ? restarted(full, count) : restarted(empty, 0)));
    await sleep(rest);
    // Any work fills the space for young objects, so the side without waits makes as many bare calls.
    const ended = await both(round, (isFull) =>
      isFull
        ? rested(full, () => pollAll(full, around, count))
        : rested(empty, () => bareCalls(empty, around, count)),
    );
    having.push({ ...started.having, ...ended.having });
    without.push({ ...started.without, ...ended.without });
  }
  return { having, without };
};

const rowsOf = (
  what: string,
  { having, without }: Awaited<ReturnType<typeof startsWith>>,
  bytes: number,
): readonly Row[] => {
  const of = (sides: readonly Side[], name: keyof Side): number[] => sides.map((side) => side[name]);
  const added = (name: keyof Side): Figure =>
    figureOf(having.map((side, round) => side[name] - (without[round]?.[name] ?? Number.NaN)));
  return [
    {
      measurement: `${what}, resident memory added`,
      unit: 'MB',
      ours: added('idle'),
      against: { what: 'the same flow without waits has', figure: figureOf(of(without, 'idle')) },
      goal: { of: 'ours', below: 120 },
    },
    {
      measurement: `${what}, resident memory added right after a start`,
      unit: 'MB',
      ours: added('fresh'),
      against: { what: 'without waits, right after a start', figure: figureOf(of(without, 'fresh')) },
    },
    {
      measurement: `${what}, resident memory added after a poll of each`,
      unit: 'MB',
      ours: added('busy'),
      against: { what: 'without waits, after as many bare calls', figure: figureOf(of(without, 'busy')) },
      goal: { of: 'ours', below: 120 },
    },
    {
      measurement: `${what}, time from ready nodes until all wait again`,
      unit: 's',
      ours: figureOf(having.map(({ made, waiting }) => waiting - made)),
      goal: { of: 'ours', below: 3 },
    },
    {
      measurement: `${what}, the same from the start of the process`,
      unit: 's',
      ours: figureOf(of(having, 'waiting')),
      against: { what: 'without waits, until the nodes are there', figure: figureOf(of(without, 'made')) },
    },
    { measurement: `${what}, bytes on disk each`, unit: 'B', ours: figureOf([bytes]) },
  ];
};

/** Without a rate: a status shows that all have started, and comes once a second. */
const startedRow = (what: string, cost: Cost, count: number): Row => ({
  measurement: `${what}: CPU per wait started`,
  unit: 'µs',
  ours: figureOf(microsOf([cost], count)),
});

export const waits: Part = {
  name: 'waits',
  title: '100,000 waits for consent',
  roundsFor: (asked) => Math.min(asked, 3),
  compared(around) {
    const count = around.scaled(20_000);
    return {
      each: 'poll',
      count,
      prepare: (node) => beginWaits(node, around, count),
      works: { waits: (node) => pollAll(node, around, count) },
    };
  },
  async run(around) {
    const { rounds, scaled, versions, start } = around;
    const count = scaled(100_000);
    const named = count.toLocaleString('en-US');
    const rows: Row[] = [];
    for (const version of versions) {
      const where = nameOf(version);
      const empty = await start(version);
      const full = await start(version);
      const started = await beginWaits(full, around, count);
      const { polls = [], calls = [] } = await interleaved<Polled>(rounds, {
        polls: () => pollAll(full, around, count),
        calls: () => bareCalls(full, around, count),
      });
      const perEach = (costs: readonly Polled[]): number[] =>
        costs.map((each) => (each.cpu / each.polls) * 1000);
      const rates = (costs: readonly Polled[]): number[] =>
        costs.map((each) => (each.polls / each.wall) * 1000);
      const fromLists = await startsWith(full, empty, count, around);
      const single = await start(version);
      const startedSingly = await beginWaits(single, around, count, 1);
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
          goal: { of: 'ratio', atMost: 1.25 },
        },
        {
          measurement: `${where}: polls per second with ${named} waits`,
          unit: '/s',
          ours: figureOf(rates(polls)),
          against: { what: 'bare client calls', figure: figureOf(rates(calls)) },
          ratio: ratioOf(rates(polls), rates(calls)),
        },
        startedRow(`${where}, 10,000 a message`, started, count),
        startedRow(`${where}, one a message`, startedSingly, count),
      );
    }
    return rows;
  },
};
