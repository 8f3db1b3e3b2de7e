import { Postgres } from '../../test/support/postgres';
import { figureOf, interleaved, microsOf, nameOf, ratioOf, type Figure, type Row } from '../figures';
import { inFlight, outputs } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';
import { atRest, firstPollAfterRestart, whileWorking } from './million';
import { beginWaits, pollAll, type Polled } from './waits';

const most = 3;
const limit: Pick<Row, 'goal'> = { goal: { of: 'ratio', atMost: 1.3 } };

const perPoll = (costs: readonly Polled[]): number[] => costs.map(({ cpu, polls }) => (cpu / polls) * 1000);

/** CPU of Node-RED for the same work, in PostgreSQL and in a file; that of the database is not in it. */
const against = (measurement: string, shared: readonly number[], own: readonly number[]): Row => ({
  measurement,
  unit: 'µs',
  ours: figureOf(shared),
  against: { what: 'embedded store', figure: figureOf(own) },
  ratio: ratioOf(shared, own),
  ...limit,
});

/** So many of all instances together, per second, while each does its share. */
const together = async (
  rounds: number,
  nodes: readonly BenchRed[],
  count: number,
  work: (node: BenchRed) => Promise<unknown>,
): Promise<Figure> => {
  const rates: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    await Promise.all(nodes.map(work));
    rates.push((count / (performance.now() - from)) * 1000);
  }
  return figureOf(rates);
};

const compared = async (
  around: Surroundings,
  where: string,
  own: BenchRed,
  shared: BenchRed,
): Promise<Row[]> => {
  const { service, rounds, scaled } = around;
  const count = scaled(10_000);
  const waits = scaled(100_000);
  const rows: Row[] = [];
  const kinds = {
    list: { what: 'text of a list', order: 'list', details: {} },
    texts: { what: `text, ${String(inFlight)} in flight`, order: 'texts', details: { inFlight } },
  };
  for (const { what, order, details } of Object.values(kinds)) {
    const send = (node: BenchRed) => (): Promise<Cost> =>
      node.order(order, { output: outputs.on, end: 'on', count, ...details });
    const sides = { shared: send(shared), own: send(own) };
    await interleaved(1, sides);
    const sent = await service.counting({ texts: 2 * count * rounds }, () => interleaved(rounds, sides));
    const micros = (costs: readonly Cost[] = []): number[] => microsOf(costs, count);
    rows.push(against(`${where}, PostgreSQL: CPU per ${what}`, micros(sent.shared), micros(sent.own)));
  }
  for (const node of [own, shared]) await beginWaits(node, around, waits);
  const polls = await interleaved<Polled>(rounds, {
    shared: () => pollAll(shared, around, waits),
    own: () => pollAll(own, around, waits),
  });
  const named = waits.toLocaleString('en-US');
  const measurement = `${where}, PostgreSQL: CPU per poll with ${named} waits`;
  rows.push(against(measurement, perPoll(polls['shared'] ?? []), perPoll(polls['own'] ?? [])), {
    measurement: `${where}, PostgreSQL: polls per second of one instance that has all ${named} waits`,
    unit: '/s',
    ours: figureOf((polls['shared'] ?? []).map((each) => (each.polls / each.wall) * 1000)),
    against: {
      what: 'embedded store',
      figure: figureOf((polls['own'] ?? []).map((each) => (each.polls / each.wall) * 1000)),
    },
  });
  return rows;
};

/** State in PostgreSQL: what that costs, a million waits there, and what several instances do. */
export const instances: Part = {
  name: 'instances',
  title: 'State in PostgreSQL, one to three instances',
  roundsFor: (asked) => Math.min(asked, 3),
  async run(around) {
    const { versions, rounds, scaled, start } = around;
    const rows: Row[] = [];
    const server = await Postgres.start({ isDurable: true });
    try {
      for (const version of versions) {
        const where = nameOf(version);
        const database = (name: string): Promise<string> => server.database(`${name}${version}`);
        const own = await start(version);
        const shared = await start(version, await database('one'));
        rows.push(...(await compared(around, where, own, shared)));
        await Promise.all([own.close(), shared.close()]);

        const url = await database('many');
        const count = scaled(30_000);
        const nodes: BenchRed[] = [];
        while (nodes.length < most) {
          nodes.push(await start(version, url));
          const each = Math.ceil(count / nodes.length);
          const send = (node: BenchRed): Promise<Cost> =>
            node.order('list', { output: outputs.on, end: 'on', count: each });
          await together(1, nodes, each * nodes.length, send);
          rows.push({
            measurement: `${where}, PostgreSQL: texts per second of ${String(nodes.length)} instance(s)`,
            unit: '/s',
            ours: await together(rounds, nodes, each * nodes.length, send),
          });
        }
        for (const node of nodes) await node.close();

        const waits = scaled(1_000_000);
        const named = waits.toLocaleString('en-US');
        const large = await database('large');
        const node = await start(version, large);
        await node.order('waits', { output: outputs.paced, count: waits, perMessage: 10_000 });
        const size = (): number => Number(server.query(`select pg_database_size('large${version}')`));
        await atRest(size);
        rows.push(
          {
            measurement: `${where}, PostgreSQL: ${named} waits, bytes in the database each`,
            unit: 'B',
            ours: figureOf([size() / waits]),
          },
          {
            measurement: `${where}, PostgreSQL: ${named} waits, from the nodes being there to the first poll`,
            unit: 's',
            ours: figureOf([await firstPollAfterRestart(around, node)]),
            goal: { of: 'ours', below: 1 },
          },
          {
            measurement: `${where}, PostgreSQL: ${named} waits that are polled, memory of its own (RssAnon)`,
            unit: 'MB',
            ours: figureOf([await whileWorking(node)]),
          },
        );
        await node.close();
      }
    } finally {
      await server.close();
    }
    return rows;
  },
};
