import { figureOf, nameOf, quantile, type Row } from '../figures';
import { firstToken, outputs } from '../flows';
import type { Part } from '../part';

interface Times {
  readonly ours: readonly number[];
  readonly bare: readonly number[];
}

/** One text at a time: what the node adds to a bare request. */
export const latency: Part = {
  name: 'latency',
  title: 'one text on an idle machine',
  async run({ service, versions, rounds, scaled, start }) {
    const rows: Row[] = [];
    for (const version of versions) {
      const node = await start(version);
      const where = nameOf(version);
      for (const end of ['off', 'on'] as const) {
        const details = { output: outputs[end], end, url: service.url, token: firstToken };
        await node.order('latency', { ...details, count: scaled(500) });
        const times: Times[] = [];
        for (let round = 0; round < rounds; round++) {
          const count = scaled(500);
          // One of ours and a bare one each.
          times.push(
            await service.counting({ texts: 2 * count }, () =>
              node.order<Times>('latency', { ...details, count }),
            ),
          );
        }
        for (const [share, name] of [
          [0.5, 'median'],
          [0.99, '99th percentile'],
        ] as const) {
          const ours = times.map((each) => quantile(each.ours, share));
          const bare = times.map((each) => quantile(each.bare, share));
          rows.push({
            measurement: `${where}, journal ${end}: latency added to one text, difference of the ${name}s`,
            unit: 'ms',
            ours: figureOf(ours.map((value, index) => value - (bare[index] ?? Number.NaN))),
            against: { what: 'bare undici takes', figure: figureOf(bare) },
            ...(share === 0.5 && { goal: { of: 'ours', below: 1 } }),
          });
        }
      }
    }
    return rows;
  },
};
