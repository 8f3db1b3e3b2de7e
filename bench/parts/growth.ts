import { figureOf, ratioOf, type Row } from '../figures';
import { outputs, pageSize } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';
import { beginWaits, pollAll } from './waits';

/** The small sizes run so often that they too take a time that can be measured. */
const leastOf = ({ scaled }: Surroundings): number => scaled(20_000);

const perItem = async (size: number, least: number, run: () => Promise<Cost>): Promise<number> => {
  const times = Math.max(1, Math.ceil(least / size));
  let cpu = 0;
  for (let time = 0; time < times; time++) cpu += (await run()).cpu;
  return (cpu / (times * size)) * 1000;
};

const growthRow = (what: string, sizes: readonly number[], rounds: readonly (readonly number[])[]): Row => {
  const named = sizes.map((size) => size.toLocaleString('en-US'));
  const smallest = rounds.map((round) => round[0] ?? Number.NaN);
  const largest = rounds.map((round) => round.at(-1) ?? Number.NaN);
  const between = sizes
    .slice(1, -1)
    .map((_, index) => figureOf(rounds.map((round) => round[index + 1] ?? Number.NaN)).median.toFixed(1));
  const middle = between.length > 0 ? `, between them ${between.join(' and ')} µs` : '';
  return {
    measurement: `Node-RED 5, ${what}: CPU per item at ${named.at(-1) ?? ''}${middle}`,
    unit: 'µs',
    ours: figureOf(largest),
    against: { what: `at ${named[0] ?? ''}`, figure: figureOf(smallest) },
    ratio: ratioOf(largest, smallest),
    goal: { of: 'ratio', atMost: 1.2 },
  };
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

/** The smallest first in one round and last in the next. */
const inTurn = (sizes: readonly number[], round: number): readonly number[] => {
  const places = [...sizes.keys()];
  return round % 2 === 0 ? places : places.reverse();
};

const waitSteps = ['waits begun', 'polls of waits', 'waits ended at once'] as const;

/** Begins waits, looks at them and ends them, as often as it takes; CPU per item of each of the three. */
const throughWaits = async (
  node: BenchRed,
  around: Surroundings,
  size: number,
): Promise<readonly number[]> => {
  const times = Math.max(1, Math.ceil(leastOf(around) / size));
  const cpu = [0, 0, 0];
  for (let time = 0; time < times; time++) {
    // Messages of one size, whatever the number of waits: it is that which grows.
    const begun = await beginWaits(node, around, size, around.scaled(1000));
    const polled = await pollAll(node, around, size);
    const ended = await node.order('reset', { output: outputs.waits, end: 'waits', count: size });
    [begun, polled, ended].forEach((cost, step) => (cpu[step] = (cpu[step] ?? 0) + cost.cpu));
  }
  return cpu.map((used) => (used / (times * size)) * 1000);
};

const waitsOf = async (around: Surroundings, sizes: readonly number[], rounds: number): Promise<Row[]> => {
  const nodes: BenchRed[] = [];
  for (const size of sizes) {
    const node = await around.start(5);
    nodes.push(node);
    await throughWaits(node, around, size);
  }
  const found = await measured(rounds, sizes, (size, index) => {
    const node = nodes[index];
    if (!node) throw new Error('There is no Node-RED of this size.');
    return throughWaits(node, around, size);
  });
  return waitSteps.map((what, step) =>
    growthRow(
      what,
      sizes,
      found.map((round) => round.map((costs) => costs[step] ?? Number.NaN)),
    ),
  );
};

export const growth: Part = {
  name: 'growth',
  title: 'cost as work grows, in Node-RED 5',
  roundsFor: (asked) => Math.min(asked, 3),
  async run(around) {
    const { rounds, service, scaled, start } = around;
    const least = leastOf(around);
    const node = await start(5);
    const sends = [1000, 10_000, 100_000].map(scaled);
    const list = (size: number): Promise<Cost> =>
      service.counting({ texts: size }, () =>
        node.order('list', { output: outputs.on, end: 'on', count: size }),
      );
    await perItem(sends[1] ?? 1, least, () => list(sends[1] ?? 1));
    const rows = [
      growthRow(
        'texts in one message, journal on',
        sends,
        await measured(rounds, sends, (size) => perItem(size, least, () => list(size))),
      ),
    ];
    const contacts = [1000, 10_000, 100_000, 1_000_000].map(scaled);
    const stream = async (size: number): Promise<Cost> => {
      await service.setContacts(size);
      return service.counting({ pages: Math.ceil(size / pageSize) }, () =>
        node.order('items', { output: outputs.contacts, end: 'contacts', count: size }),
      );
    };
    await perItem(contacts[1] ?? 1, least, () => stream(contacts[1] ?? 1));
    rows.push(
      growthRow(
        'contacts streamed',
        contacts,
        await measured(rounds, contacts, (size) => perItem(size, least, () => stream(size))),
      ),
    );
    rows.push(...(await waitsOf(around, sends, rounds)));
    return rows;
  },
};
