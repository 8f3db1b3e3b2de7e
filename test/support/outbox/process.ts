import type { Clock } from '../../../lib/service/clock';
import type { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Operation, Store } from '../../../lib/state/store';
import { nextIteration } from '../event-loop';
import { overStore } from '../state/over-store';

/** A killed process waits for this. */
export const never = new Promise<never>(() => undefined);

/** A process that can be killed at any commit. */
export interface Process {
  isDead: boolean;
  commitsLeft: number;
  readonly store: Store;
}

/** What is left when a process is killed: the records of one, for the next. */
export class Disk {
  readonly memory: Store;
  private reads = 0;
  private readonly holds = new Set<() => void>();

  /** Reads take so many ticks each, one after the other. */
  constructor(
    private readonly delays: readonly number[],
    clock: { now(): number },
  ) {
    this.memory = createMemoryStore({ clock });
  }

  start(onSaved: (operations: readonly Operation[]) => void = () => undefined): Process {
    const { memory, holds } = this;
    for (const release of holds) release();
    holds.clear();
    /** Answers come in order, and others may read what was written before its answer has come. */
    let answered = Promise.resolve(true);
    const process: Process = {
      isDead: false,
      commitsLeft: Infinity,
      store: overStore(memory, {
        get: (table, key) => this.late(memory.get(table, key)),
        page: (table, range) => this.late(memory.page(table, range)),
        keys: (table, range) => this.late(memory.keys(table, range)),
        count: (table, from, to) => this.late(memory.count(table, from, to)),
        write: async (operations, conditions) => {
          await nextIteration();
          if (process.isDead || process.commitsLeft === 0) {
            process.isDead = true;
            return never;
          }
          process.commitsLeft -= 1;
          onSaved(operations);
          const written = memory.write(operations, conditions);
          answered = Promise.all([answered, written]).then(() => this.late(written));
          const isWritten = await answered;
          return process.isDead ? never : isWritten;
        },
      }),
    };
    return process;
  }

  /** What it has handed over is written, or lost, before the next process opens the store. */
  async end(process: Process): Promise<void> {
    process.isDead = true;
    await this.memory.write([]);
  }

  /** It dies after so many more commits, or after a while. */
  async kill(process: Process, commits: number): Promise<void> {
    process.commitsLeft = commits;
    for (let turns = 0; turns < 20 && !process.isDead; turns++) await nextIteration();
    await this.end(process);
  }

  /** A clock that does not wait for a dead process. */
  clockOf(process: Process, clock: MovableClock): Clock {
    return {
      now: () => clock.now(),
      after: (ms, task) => clock.after(ms, task),
      keepStill: () => {
        const release = clock.keepStill();
        if (process.isDead) release();
        this.holds.add(release);
        return release;
      },
    };
  }

  /** As from a server: what was read may be old by the time it arrives. */
  private async late<T>(read: Promise<T>): Promise<T> {
    const found = await read;
    for (let turns = this.delays[this.reads++ % this.delays.length] ?? 0; turns > 0; turns--)
      await nextIteration();
    return found;
  }
}
