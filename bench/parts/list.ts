import { figureOf, interleaved, ratioOf, type Row } from '../figures';
import { inFlight, outputs } from '../flows';
import type { Part } from '../part';

/** A list in one message against as many messages. */
export const list: Part = {
  name: 'list',
  title: '10,000 recipients in one message',
  async run({ versions, rounds, scaled, start }) {
    const rows: Row[] = [];
    const count = scaled(10_000);
    for (const version of versions) {
      const node = await start(version);
      for (const end of ['on', 'off'] as const) {
        const details = { output: outputs[end], end, count };
        const sides = {
          list: () => node.order('list', details),
          messages: () => node.order('texts', { ...details, inFlight }),
        };
        await interleaved(1, sides);
        const { list: lists = [], messages = [] } = await interleaved(rounds, sides);
        const what = `${count.toLocaleString('en-US')} messages, ${String(inFlight)} in flight`;
        const where = `Node-RED ${version === 4 ? '4.1' : '5'}, journal ${end}`;
        const rates = (costs: typeof lists): number[] => costs.map(({ wall }) => (count / wall) * 1000);
        const micros = (costs: typeof lists): number[] => costs.map(({ cpu }) => (cpu / count) * 1000);
        rows.push(
          {
            measurement: `${where}: ${count.toLocaleString('en-US')} recipients in one message, texts per second`,
            unit: '/s',
            ours: figureOf(rates(lists)),
            against: { what, figure: figureOf(rates(messages)) },
            ratio: ratioOf(rates(lists), rates(messages)),
            goal: { of: 'ratio', atLeast: 1.3 },
          },
          {
            measurement: `${where}: the same, CPU per text`,
            unit: 'µs',
            ours: figureOf(micros(lists)),
            against: { what, figure: figureOf(micros(messages)) },
            ratio: ratioOf(micros(messages), micros(lists)),
            goal: { of: 'ratio', atLeast: 1.3 },
          },
        );
      }
    }
    return rows;
  },
};
