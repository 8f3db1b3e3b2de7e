import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { figureOf, median, nameOf, type Row } from '../figures';
import { outputs } from '../flows';
import type { Part, Surroundings } from '../part';
import type { BenchRed } from '../red';
import type { Counts } from '../service';
import { bareCalls } from './waits';

const perMessage = 10_000;
/** Milliseconds between two lists of texts: if they come faster than they are saved, they are rejected. */
const every = 1000;
/**
 * A wait is polled at the phase of this interval (`thenEvery`) in which it started: all lists fit in so many
 * milliseconds.
 */
const turn = 300_000;
/** Milliseconds of work before memory is measured, and for how long it is. */
const warmUp = 10_000;
const watched = 20_000;
const longest = 20 * 60_000;

/** Megabytes of the process itself: pages of the store's file belong to the system. */
const anonymous = (node: BenchRed): number => {
  const status = readFileSync(`/proc/${String(node.red.pid)}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1000;
};

/** The median after collections of garbage while it works. */
export const whileWorking = async (node: BenchRed): Promise<number> => {
  await sleep(warmUp);
  const found: number[] = [];
  for (const end = performance.now() + watched; performance.now() < end;) {
    await node.order('collect');
    found.push(anonymous(node));
  }
  return median(found);
};

const writtenBy = (node: BenchRed): number =>
  Number(/write_bytes: (\d+)/.exec(readFileSync(`/proc/${String(node.red.pid)}/io`, 'utf8'))?.[1]);

/** Next to nothing is being written any more: everything is saved. */
const atRest = async (bytesWritten: () => number): Promise<void> => {
  for (let before = -Infinity; bytesWritten() - before > 1_000_000;) {
    before = bytesWritten();
    await sleep(5000);
  }
};

const untilCounted = async (
  { service }: Surroundings,
  isThere: (counts: Counts) => boolean,
): Promise<Counts> => {
  for (const end = performance.now() + longest; performance.now() < end;) {
    const counts = await service.counts();
    if (isThere(counts)) return counts;
    await sleep(10);
  }
  throw new Error('Nothing came within twenty minutes.');
};

/** Milliseconds since the epoch at which the nodes of a Node-RED were created. */
const madeAt = async (node: BenchRed): Promise<number> =>
  (await node.order<{ madeAt: number }>('ready', { count: 0 })).madeAt;

/** In seconds, from when its nodes exist. */
export const firstPollAfterRestart = async (around: Surroundings, node: BenchRed): Promise<number> => {
  // It continues to poll until it has stopped.
  await node.red.stop();
  await around.service.reset();
  await node.restart();
  const { first } = await untilCounted(around, (counts) => counts.first.poll > 0);
  return (first.poll - (await madeAt(node))) / 1000;
};

const memoryRow = (what: string, full: number, against: string, empty: number): Row => ({
  measurement: `${what}, memory of its own (RssAnon) added`,
  unit: 'MB',
  ours: figureOf([full - empty]),
  against: { what: against, figure: figureOf([empty]) },
  goal: { of: 'ours', below: 50 },
});

const rowsOf = (
  what: string,
  memory: { readonly full: number; readonly empty: number },
  first: { readonly what: string; readonly seconds: number },
): readonly Row[] => [
  memoryRow(what, memory.full, 'an idle flow has', memory.empty),
  {
    measurement: `${what}, time from ready nodes to the first ${first.what}`,
    unit: 's',
    ours: figureOf([first.seconds]),
    goal: { of: 'ours', below: 1 },
  },
];

export const million: Part = {
  name: 'million',
  title: 'A million waits; a million texts behind a pause',
  roundsFor: () => 1,
  async run(around) {
    const { versions, scaled, start, service } = around;
    const count = scaled(1_000_000);
    const named = count.toLocaleString('en-US');
    const rows: Row[] = [];
    for (const version of versions) {
      const where = nameOf(version);
      const idle = await start(version);
      await idle.restart();
      const empty = await whileWorking(idle);
      await bareCalls(idle, around, scaled(100_000));
      await idle.order('collect');
      const busy = anonymous(idle);
      await idle.close();

      const waiting = await start(version);
      const apart = turn / Math.ceil(count / perMessage);
      await waiting.order('lists', { output: outputs.paced, count, perMessage, every: apart });
      await waiting.order('ready', { count });
      // The lists that came last are still being saved.
      await sleep(warmUp);
      const seconds = await firstPollAfterRestart(around, waiting);
      const full = await whileWorking(waiting);
      await waiting.close();
      const polled = `${where}: ${named} waits that are polled`;
      rows.push(
        ...rowsOf(polled, { full, empty }, { what: 'poll', seconds }),
        memoryRow(polled, full, 'a flow that makes bare calls instead has', busy),
      );

      const queued = await start(version);
      await service.limit(true);
      await queued.order('lists', { output: outputs.on, count, perMessage, every });
      await atRest(() => writtenBy(queued));
      await queued.restart();
      await untilCounted(around, ({ limited }) => limited > 0);
      const paused = await whileWorking(queued);
      await queued.red.stop();
      await service.limit(false);
      await service.reset();
      await queued.restart();
      const { first: sent } = await untilCounted(around, ({ first }) => first.text > 0);
      const madeAgain = await madeAt(queued);
      await queued.close();
      rows.push(
        ...rowsOf(
          `${where}: ${named} texts behind a pause`,
          { full: paused, empty },
          { what: 'text', seconds: (sent.text - madeAgain) / 1000 },
        ),
      );
    }
    return rows;
  },
};
