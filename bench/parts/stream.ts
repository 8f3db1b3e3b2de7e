import { figureOf, interleaved, megabyte, microsOf, nameOf, ratesOf, ratioOf, type Row } from '../figures';
import { firstToken, outputs, pageSize } from '../flows';
import type { Part } from '../part';
import type { Cost } from '../red';

interface Streamed extends Cost {
  readonly idle: number;
  readonly peak: number;
}

/** Streams per round, one after the other: a single one takes a second, which one garbage collection distorts. */
const times = 3;

export const stream: Part = {
  name: 'stream',
  title: 'streaming 100,000 contacts, item by item',
  async run({ service, versions, rounds, scaled, start }) {
    const rows: Row[] = [];
    const count = scaled(100_000);
    const named = count.toLocaleString('en-US');
    for (const version of versions) {
      const where = nameOf(version);
      const details = { output: outputs.contacts, end: 'contacts' };

      // On its own first: the loop of core nodes does not return the memory it took.
      const alone = await start(version);
      const peaks: number[] = [];
      const idles: number[] = [];
      for (let round = 0; round < rounds; round++) {
        if (round > 0) await alone.restart();
        await service.setContacts(pageSize);
        await alone.order('items', { ...details, count: pageSize });
        await service.setContacts(count);
        const { peak, idle } = await alone.order<Streamed>('items', { ...details, count, watched: true });
        peaks.push((peak - idle) / megabyte);
        idles.push(idle / megabyte);
      }

      const node = await start(version);
      const sides = {
        ours: () => node.order('items', { ...details, count, times }),
        loop: () => node.order('items', { output: outputs.loop, end: 'loop', count, times }),
        scripted: () => node.order('items', { output: outputs.scripted, end: 'scripted', count, times }),
        bare: () => node.order('bareItems', { url: service.url, token: firstToken, count, times, pageSize }),
      };
      await interleaved(1, sides);
      const pages = Math.ceil(count / pageSize) * times * rounds * Object.keys(sides).length;
      const {
        ours = [],
        loop = [],
        scripted = [],
        bare = [],
      } = await service.counting({ pages }, () => interleaved(rounds, sides));
      const rates = (costs: readonly Cost[]): number[] => ratesOf(costs, count * times);
      const micros = (costs: readonly Cost[]): number[] => microsOf(costs, count * times);
      rows.push(
        {
          measurement: `${where}: ${named} contacts, item by item, contacts per second`,
          unit: '/s',
          ours: figureOf(rates(ours)),
          against: { what: 'loop of core nodes', figure: figureOf(rates(loop)) },
          ratio: ratioOf(rates(ours), rates(loop)),
          goal: { of: 'ratio', atLeast: 3 },
        },
        {
          measurement: `${where}: the same, CPU per contact`,
          unit: 'µs',
          ours: figureOf(micros(ours)),
          against: { what: 'loop of core nodes', figure: figureOf(micros(loop)) },
          ratio: ratioOf(micros(loop), micros(ours)),
          goal: { of: 'ratio', atLeast: 3 },
        },
        {
          measurement: `${where}: contacts per second, against a function instead of split`,
          unit: '/s',
          ours: figureOf(rates(ours)),
          against: { what: 'loop whose function sends each, uncopied', figure: figureOf(rates(scripted)) },
          ratio: ratioOf(rates(ours), rates(scripted)),
        },
        {
          measurement: `${where}: the same, CPU per contact`,
          unit: 'µs',
          ours: figureOf(micros(ours)),
          against: { what: 'loop whose function sends each, uncopied', figure: figureOf(micros(scripted)) },
          ratio: ratioOf(micros(scripted), micros(ours)),
        },
        {
          measurement: `${where}: CPU per contact, against the limit`,
          unit: 'µs',
          ours: figureOf(micros(ours)),
          against: { what: 'bare undici loop, no messages', figure: figureOf(micros(bare)) },
          ratio: ratioOf(micros(ours), micros(bare)),
        },
        {
          measurement: `${where}: contacts per second, against the limit`,
          unit: '/s',
          ours: figureOf(rates(ours)),
          against: { what: 'bare undici loop, no messages', figure: figureOf(rates(bare)) },
          ratio: ratioOf(rates(ours), rates(bare)),
        },
        {
          measurement: `${where}: peak resident memory above idle while streaming`,
          unit: 'MB',
          ours: figureOf(peaks),
          against: { what: 'idle, after one page', figure: figureOf(idles) },
          goal: { of: 'ours', below: 60 },
        },
      );
    }
    return rows;
  },
};
