import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MovableClock } from '../service/clock';
import { lazy } from './lazy';
import type { Simulator } from '../../simulator';

/**
 * The one simulator of this process. It starts when a `simulator` environment first needs it and ends with the last of
 * them; its state is in the user directory, so that a deploy or restart forgets nothing.
 */
export class SharedSimulator {
  /** Known before the simulator runs, since nodes set their timers by it. */
  readonly clock = new MovableClock(() => Date.now());
  readonly #file: string | undefined;
  #users = 0;
  #running: Promise<Simulator> | undefined;
  #ending: Promise<void> = Promise.resolve();

  constructor(userDir: string | undefined) {
    this.#file = userDir ? join(userDir, 'advisor-texting', 'simulator.json') : undefined;
  }

  /** Whether an environment of this runtime is on the simulator: without one it must not run. */
  get isWanted(): boolean {
    return this.#users > 0;
  }

  /** Called for each `simulator` environment; the result is called when that environment closes. */
  use(): () => Promise<void> {
    this.#users += 1;
    let isUsed = true;
    return async () => {
      if (!isUsed) return;
      isUsed = false;
      this.#users -= 1;
      if (this.#users === 0) await this.#end();
    };
  }

  /** Resolves when the clock is as far ahead as it was moved before a restart: what waits by it must not begin sooner. */
  async restored(): Promise<void> {
    if (this.#file === undefined || !existsSync(this.#file)) return;
    await this.start().catch(() => undefined);
  }

  start(): Promise<Simulator> {
    this.#running ??= this.#ending.then(() => {
      const { startSimulator } = lazy.simulator();
      return startSimulator({ clock: this.clock, ...(this.#file === undefined ? {} : { data: this.#file }) });
    });
    const running = this.#running;
    running.catch(() => {
      if (this.#running === running) this.#running = undefined;
    });
    return running;
  }

  async #end(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (!running) return;
    this.#ending = running.then(
      (simulator) => simulator.close(),
      () => undefined,
    );
    await this.#ending;
  }
}
