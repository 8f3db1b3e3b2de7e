import type { Version } from '../../test/support/installation';
import { figureOf, microsOf, nameOf, ratesOf, ratioOf, type Row } from '../figures';
import { outputs, pageSize } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';
import { beginWaits, pollAll } from './waits';

/** The small sizes run often enough to take a measurable time. */
const timesOf = (size: number, { scaled }: Surroundings): number =>
  Math.max(1, Math.ceil(scaled(20_000) / size));

/** What one item costs, in milliseconds. */
const perItem = (size: number, costs: readonly Cost[]): Cost => {
  const each = (of: keyof Cost): number =>
    costs.reduce((sum, cost) => sum + cost[of], 0) / (costs.length * size);
  return { cpu: each('cpu'), wall: each('wall') };
};

const repeated = async (size: number, around: Surroundings, run: () => Promise<Cost>): Promise<Cost> => {
  const costs: Cost[] = [];
  for (let time = timesOf(size, around); time > 0; time--) costs.push(await run());
  return perItem(size, costs);
};

/** Each size against the smallest; only the largest has a goal. */
const growthRows = (
  what: string,
  sizes: readonly number[],
  rounds: readonly (readonly Cost[])[],
  hasRates = true,
): readonly Row[] => {
  const at = (place: number): readonly Cost[] => rounds.flatMap((round) => round[place] ?? []);
  const named = sizes.map((size) => size.toLocaleString('en-US'));
  const smallest = `at ${named[0] ?? ''}`;
  return sizes.slice(1).flatMap((_, before): Row[] => {
    const place = before + 1;
    const isLargest = place === sizes.length - 1;
    const size = named[place] ?? '';
    const row = (kind: string, unit: string, valuesOf: typeof microsOf): Row => ({
      measurement: `${what}: ${kind} at ${size}`,
      unit,
      ours: figureOf(valuesOf(at(place), 1)),
      against: { what: smallest, figure: figureOf(valuesOf(at(0), 1)) },
      ratio: ratioOf(valuesOf(at(place), 1), valuesOf(at(0), 1)),
    });
    const cpu = row('CPU per item', 'µs', microsOf);
    return [
      isLargest ? { ...cpu, goal: { of: 'ratio', atMost: 1.2 } } : cpu,
      ...(hasRates ? [row('items per second', '/s', ratesOf)] : []),
    ];
  });
};

const measured = async <T>(
  rounds: number,
  sizes: readonly number[],
  cost: (size: number, index: number) => Promise<T>,
): Promise<readonly (readonly T[])[]> => {
  const found: T[][] = [];
  for (let round = 0; round < rounds; round++) {
    const each: T[] = [];
    for (const index of inTurn(sizes, round)) each[index] = await cost(sizes[index] ?? Number.NaN, index);
    found.push(each);
  }
  return found;
};

/** The smallest goes first in one round and last in the next. */
const inTurn = (sizes: readonly number[], round: number): readonly number[] => {
  const places = [...sizes.keys()];
  return round % 2 === 0 ? places : places.reverse();
};

const waitSteps = ['waits started', 'polls of waits', 'waits ending together'] as const;
/** A status shows that all have started, and comes once a second: a rate would be too coarse. */
const begin = waitSteps.indexOf('waits started');

/** Starts waits, polls them and ends them, as often as needed; returns the cost per item of each step. */
const throughWaits = async (node: BenchRed, around: Surroundings, size: number): Promise<readonly Cost[]> => {
  const started: Cost[] = [];
  const polled: Cost[] = [];
  const ended: Cost[] = [];
  for (let time = timesOf(size, around); time > 0; time--) {
    // Messages of one size, whatever the number of waits: only that grows.
    started.push(await beginWaits(node, around, size, around.scaled(1000)));
    polled.push(await pollAll(node, around, size));
    ended.push(await node.order('reset', { output: outputs.waits, end: 'waits', count: size }));
  }
  return [started, polled, ended].map((costs) => perItem(size, costs));
};

const waitsOf = async (
  around: Surroundings,
  version: Version,
  sizes: readonly number[],
): Promise<readonly Row[]> => {
  const nodes: BenchRed[] = [];
  for (const size of sizes) {
    const node = await around.start(version);
    nodes.push(node);
    await throughWaits(node, around, size);
  }
  const found = await measured(around.rounds, sizes, (size, index) => {
    const node = nodes[index];
    if (!node) throw new Error('There is no Node-RED of this size.');
    return throughWaits(node, around, size);
  });
  return waitSteps.flatMap((what, step) =>
    growthRows(
      `${nameOf(version)}, ${what}`,
      sizes,
      found.map((round) => round.flatMap((costs) => costs[step] ?? [])),
      step !== begin,
    ),
  );
};

export const growth: Part = {
  name: 'growth',
  title: 'cost as work grows',
  roundsFor: (asked) => Math.min(asked, 3),
  async run(around) {
    const { rounds, service, scaled, start, versions } = around;
    // How the cost grows depends on our code: one version is enough.
    const [version = 5] = versions;
    const node = await start(version);
    const sends = [1000, 10_000, 100_000].map(scaled);
    const list = (size: number) => (): Promise<Cost> =>
      service.counting({ texts: size }, () =>
        node.order('list', { output: outputs.on, end: 'on', count: size }),
      );
    const contacts = [1000, 10_000, 100_000, 1_000_000].map(scaled);
    const stream = (size: number) => async (): Promise<Cost> => {
      await service.setContacts(size);
      return service.counting({ pages: Math.ceil(size / pageSize) }, () =>
        node.order('items', { output: outputs.contacts, end: 'contacts', count: size }),
      );
    };
    const rowsOf = async (
      what: string,
      sizes: readonly number[],
      run: (size: number) => () => Promise<Cost>,
    ): Promise<readonly Row[]> => {
      const cost = (size: number): Promise<Cost> => repeated(size, around, run(size));
      await cost(sizes[1] ?? 1);
      return growthRows(`${nameOf(version)}, ${what}`, sizes, await measured(rounds, sizes, cost));
    };
    return [
      ...(await rowsOf('texts in one message, journal on', sends, list)),
      ...(await rowsOf('contacts streamed', contacts, stream)),
      ...(await waitsOf(around, version, sends)),
    ];
  },
};
