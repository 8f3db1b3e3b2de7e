import { setTimeout as sleep } from 'node:timers/promises';
import { Postgres } from '../../test/support/postgres';
import type { Version } from '../../test/support/installation';
import { figureOf, interleaved, microsOf, nameOf, ratioOf, type Figure, type Row } from '../figures';
import { inFlight, outputs } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed, Cost } from '../red';
import { firstPollAfterRestart, whileWorking } from './million';
import { beginWaits, pollAll, type Polled } from './waits';

const most = 3;
const limit: Pick<Row, 'goal'> = { goal: { of: 'ratio', atMost: 1.3 } };

const perPoll = (costs: readonly Polled[]): number[] => costs.map(({ cpu, polls }) => (cpu / polls) * 1000);

/** CPU of Node-RED for the same work, with PostgreSQL and with a file, without that of the database. */
const against = (measurement: string, shared: readonly number[], own: readonly number[]): Row => ({
  measurement,
  unit: 'µs',
  ours: figureOf(shared),
  against: { what: 'embedded store', figure: figureOf(own) },
  ratio: ratioOf(shared, own),
  ...limit,
});

/** The total rate of all instances, while each does its share. */
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
  const count = scaled(6000);
  const waits = scaled(20_000);
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

/** What one to three instances send together. */
const severalInstances = async (around: Surroundings, version: Version, url: string): Promise<Row[]> => {
  const { rounds, scaled, start } = around;
  const count = scaled(6000);
  const nodes: BenchRed[] = [];
  const rows: Row[] = [];
  while (nodes.length < most) {
    nodes.push(await start(version, { database: url }));
    const each = Math.ceil(count / nodes.length);
    const send = (node: BenchRed): Promise<Cost> =>
      node.order('list', { output: outputs.on, end: 'on', count: each });
    await together(1, nodes, each * nodes.length, send);
    rows.push({
      measurement: `${nameOf(version)}, PostgreSQL: texts per second of ${String(nodes.length)} instance(s)`,
      unit: '/s',
      ours: await together(rounds, nodes, each * nodes.length, send),
    });
  }
  for (const node of nodes) await node.close();
  return rows;
};

/** A wait is polled at the phase of this interval in which it started, and a list's waits lie within a tenth of it. */
const turn = 30_000;
/** Each list starts at its own phase of the interval, so that waits are spread over all of it. */
const lists = 11;
const longestFill = 20 * 60_000;

/** Resolves when the next phase without a list starts, and removes it from `parts`. */
const nextPart = async (parts: Set<number>): Promise<void> => {
  const untilPart = (part: number): number => {
    const ahead = (part * turn) / lists - (Date.now() % turn);
    return ahead < 0 ? ahead + turn : ahead;
  };
  const [next = 0] = [...parts].sort((a, b) => untilPart(a) - untilPart(b));
  parts.delete(next);
  await sleep(untilPart(next));
};

/** A million waits in one database, which an instance of each version owns in turn. */
const millionWaits = async (around: Surroundings, server: Postgres): Promise<Row[]> => {
  const { versions, scaled, start } = around;
  const each = Math.ceil(scaled(1_000_000) / lists);
  const waits = each * lists;
  const named = waits.toLocaleString('en-US');
  const url = await server.database('large');
  const rows: Row[] = [];
  for (const version of versions) {
    const where = nameOf(version);
    const node = await start(version, { database: url });
    if (rows.length === 0) {
      const parts = new Set(Array.from({ length: lists }, (_, part) => part));
      for (let first = 0; first < waits; first += each) {
        await nextPart(parts);
        await node.order('lists', {
          output: outputs.paced,
          count: each,
          perMessage: 10_000,
          first,
          every: 200,
        });
      }
      // A wait is a record and its place on the ring.
      const isThere = (): boolean =>
        Number(server.query('select count(*) from advisor_texting.wait', 'large')) >= 2 * waits;
      for (const end = performance.now() + longestFill; !isThere();) {
        if (performance.now() > end) throw new Error('The waits were not saved within twenty minutes.');
        await sleep(1000);
      }
      const size = Number(server.query(`select pg_database_size('large')`));
      rows.push({
        measurement: `PostgreSQL: ${named} waits, bytes in the database each`,
        unit: 'B',
        ours: figureOf([size / waits]),
      });
    }
    rows.push(
      {
        measurement: `${where}, PostgreSQL: ${named} waits, time from ready nodes to the first poll`,
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
  return rows;
};

/** State in PostgreSQL: what that costs, a million waits there, and what several instances do. */
export const instances: Part = {
  name: 'instances',
  title: 'State in PostgreSQL, one to three instances',
  roundsFor: (asked) => Math.min(asked, 3),
  async run(around) {
    const { versions, start } = around;
    const rows: Row[] = [];
    const server = await Postgres.start({ isDurable: true });
    try {
      for (const version of versions) {
        const own = await start(version);
        const shared = await start(version, { database: await server.database(`one${version}`) });
        rows.push(...(await compared(around, nameOf(version), own, shared)));
        await Promise.all([own.close(), shared.close()]);
        rows.push(...(await severalInstances(around, version, await server.database(`many${version}`))));
      }
      rows.push(...(await millionWaits(around, server)));
    } finally {
      await server.close();
    }
    return rows;
  },
};
