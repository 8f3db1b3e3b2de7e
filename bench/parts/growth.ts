import { figureOf, ratioOf, type Row } from '../figures';
import { outputs } from '../flows';
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
    measurement: `${what}: CPU per item at ${named.at(-1) ?? ''}${middle}`,
    unit: 'µs',
    ours: figureOf(largest),
    against: { what: `at ${named[0] ?? ''}`, figure: figureOf(smallest) },
    ratio: ratioOf(largest, smallest),
    goal: { of: 'ratio', atMost: 1.2 },
  };
};

const measured = async (
  rounds: number,
  sizes: readonly number[],
  cost: (size: number) => Promise<number>,
): Promise<readonly (readonly number[])[]> => {
  const found: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    const each: number[] = [];
    for (const size of sizes) each.push(await cost(size));
    found.push(each);
  }
  return found;
};

const waitsOf = async (around: Surroundings, sizes: readonly number[], rounds: number): Promise<Row[]> => {
  const least = leastOf(around);
  const nodes = new Map<number, BenchRed>();
  const begun: number[] = [];
  for (const size of sizes) {
    const node = await around.start(5);
    nodes.set(size, node);
    begun.push(((await beginWaits(node, around, size)).cpu / size) * 1000);
  }
  const nodeOf = (size: number): BenchRed => {
    const node = nodes.get(size);
    if (!node) throw new Error('There is no Node-RED of this size.');
    return node;
  };
  for (const size of sizes) await perItem(size, least, () => pollAll(nodeOf(size), around, size));
  const polls = await measured(rounds, sizes, (size) =>
    perItem(size, least, () => pollAll(nodeOf(size), around, size)),
  );
  const ended: number[] = [];
  for (const size of sizes) {
    const reset = { output: outputs.waits, end: 'waits', count: size };
    ended.push(((await nodeOf(size).order('reset', reset)).cpu / size) * 1000);
  }
  return [
    growthRow('polls of waits', sizes, polls),
    growthRow('waits begun', sizes, [begun]),
    growthRow('waits ended at once', sizes, [ended]),
  ];
};

export const growth: Part = {
  name: 'growth',
  title: 'cost as work grows',
  mostRounds: 2,
  async run(around) {
    const { rounds, service, scaled, start } = around;
    const least = leastOf(around);
    const node = await start(5);
    const sends = [1000, 10_000, 100_000].map(scaled);
    const list = (size: number): Promise<Cost> =>
      node.order('list', { output: outputs.on, end: 'on', count: size });
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
      return node.order('items', { output: outputs.contacts, end: 'contacts', count: size });
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
