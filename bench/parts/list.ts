import { figureOf, interleaved, microsOf, nameOf, ratesOf, ratioOf, type Row } from '../figures';
import { inFlight, outputs } from '../flows';
import type { Part } from '../part';
import type { BenchRed, Cost } from '../red';

const reach: Pick<Row, 'goal'> = { goal: { of: 'ratio', atLeast: 1.3 } };

const listTo =
  (end: 'off' | 'on', count: number) =>
  (node: BenchRed): Promise<Cost> =>
    node.order('list', { output: outputs[end], end, count });

/** A list in one message against as many messages. */
export const list: Part = {
  name: 'list',
  title: '10,000 recipients in one message',
  compared({ scaled }) {
    const count = scaled(10_000);
    return {
      each: 'text',
      count,
      works: { 'journal off': listTo('off', count), 'journal on': listTo('on', count) },
    };
  },
  async run({ service, versions, rounds, scaled, start }) {
    const rows: Row[] = [];
    const count = scaled(10_000);
    const named = count.toLocaleString('en-US');
    const rates = (costs: readonly Cost[]): number[] => ratesOf(costs, count);
    const micros = (costs: readonly Cost[]): number[] => microsOf(costs, count);
    for (const version of versions) {
      const node = await start(version);
      for (const end of ['on', 'off'] as const) {
        const details = { output: outputs[end], end, count };
        const sides = {
          lists: () => listTo(end, count)(node),
          singles: () => node.order('texts', { ...details, inFlight: 1 }),
          many: () => node.order('texts', { ...details, inFlight }),
        };
        await interleaved(1, sides);
        const {
          lists = [],
          singles = [],
          many = [],
        } = await service.counting({ texts: 3 * count * rounds }, () => interleaved(rounds, sides));
        const where = `${nameOf(version)}, journal ${end}`;
        const against = (what: string, messages: readonly Cost[], goal: Pick<Row, 'goal'>): Row[] => [
          {
            measurement: `${where}: ${named} recipients in one message, texts per second`,
            unit: '/s',
            ours: figureOf(rates(lists)),
            against: { what, figure: figureOf(rates(messages)) },
            ratio: ratioOf(rates(lists), rates(messages)),
            ...goal,
          },
          {
            measurement: `${where}: the same, CPU per text`,
            unit: 'µs',
            ours: figureOf(micros(lists)),
            against: { what, figure: figureOf(micros(messages)) },
            ratio: ratioOf(micros(messages), micros(lists)),
            ...goal,
          },
        ];
        rows.push(...against(`${named} messages one by one`, singles, reach));
        // Without a journal such a message takes little more than a bare request: no list could be that much faster.
        const reached = end === 'on' ? reach : {};
        rows.push(...against(`${named} messages, ${String(inFlight)} in flight`, many, reached));
      }
    }
    return rows;
  },
};
