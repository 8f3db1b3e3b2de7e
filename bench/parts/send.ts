import type { Version } from '../../test/support/installation';
import { figureOf, interleaved, microsOf, nameOf, ratesOf, ratioOf, type Row } from '../figures';
import { firstToken, inFlight, outputs } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';

/** At least so many times as fast as the flow of core nodes. */
const goals = { off: 3, on: 2.5 };

const core = 'http request and function';

const rowsOf = (
  version: Version,
  count: number,
  sides: Readonly<Record<string, readonly Cost[]>>,
): readonly Row[] => {
  const { off = [], on = [], http = [], bare = [] } = sides;
  const perSecond = (costs: readonly Cost[]): number[] => ratesOf(costs, count);
  const micros = (costs: readonly Cost[]): number[] => microsOf(costs, count);
  const where = nameOf(version);
  const rows: Row[] = [];
  for (const [costs, name, atLeast] of [
    [off, 'journal off', goals.off],
    [on, 'journal on', goals.on],
  ] as const) {
    rows.push(
      {
        measurement: `${where}, ${name}: texts per second, ${String(inFlight)} in flight`,
        unit: '/s',
        ours: figureOf(perSecond(costs)),
        against: { what: core, figure: figureOf(perSecond(http)) },
        ratio: ratioOf(perSecond(costs), perSecond(http)),
        goal: { of: 'ratio', atLeast },
      },
      {
        measurement: `${where}, ${name}: CPU per text`,
        unit: 'µs',
        ours: figureOf(micros(costs)),
        against: { what: core, figure: figureOf(micros(http)) },
        ratio: ratioOf(micros(http), micros(costs)),
        goal: { of: 'ratio', atLeast },
      },
    );
  }
  rows.push(
    {
      measurement: `${where}, journal on: CPU per text, against journal off`,
      unit: 'µs',
      ours: figureOf(micros(on)),
      against: { what: 'journal off', figure: figureOf(micros(off)) },
      ratio: ratioOf(micros(on), micros(off)),
      goal: { of: 'ratio', atMost: 1.25 },
    },
    {
      measurement: `${where}, journal off: CPU per text, against the limit`,
      unit: 'µs',
      ours: figureOf(micros(off)),
      against: { what: 'bare undici pool', figure: figureOf(micros(bare)) },
      ratio: ratioOf(micros(off), micros(bare)),
      goal: { of: 'ratio', atMost: 3 },
    },
    {
      measurement: `${where}, journal off: texts per second, against the limit`,
      unit: '/s',
      ours: figureOf(perSecond(off)),
      against: { what: 'bare undici pool', figure: figureOf(perSecond(bare)) },
      ratio: ratioOf(perSecond(off), perSecond(bare)),
    },
  );
  return rows;
};

const textsOf = (node: BenchRed, count: number) => (end: 'off' | 'on' | 'http') => (): Promise<Cost> =>
  node.order('texts', { count, inFlight, output: outputs[end], end });

const measure = async (around: Surroundings, version: Version): Promise<readonly Row[]> => {
  const { service, rounds, scaled } = around;
  const node = await around.start(version);
  const count = scaled(10_000);
  const texts = textsOf(node, count);
  const sides = {
    off: texts('off'),
    on: texts('on'),
    http: texts('http'),
    bare: () => node.order('bare', { count, inFlight, url: service.url, token: firstToken }),
  };
  // Warms up compiled code and connections; the flow of core nodes warms up as long.
  await interleaved(2, sides);
  const due = count * rounds * Object.keys(sides).length;
  return rowsOf(version, count, await service.counting({ texts: due }, () => interleaved(rounds, sides)));
};

export const send: Part = {
  name: 'send',
  title: 'texts through send text in a real Node-RED',
  compared({ scaled }) {
    const count = scaled(10_000);
    const texts = (end: 'off' | 'on') => (node: BenchRed) => textsOf(node, count)(end)();
    return { each: 'text', count, works: { 'journal off': texts('off'), 'journal on': texts('on') } };
  },
  async run(around) {
    const rows: Row[] = [];
    for (const version of around.versions) rows.push(...(await measure(around, version)));
    return rows;
  },
};
