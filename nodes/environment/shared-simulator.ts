import { MovableClock } from '../../simulator/movable-clock';
import { endOf, key, removeUnder, type Store } from '../../lib/state/store';
import { lazy } from '../../lib/runtime/lazy';
import type { Simulator } from '../../simulator';

/** The prefix of the simulator's records. */
const simulatorRecords = key('simulator');

/**
 * The one simulator of this process. It starts when a `simulator` environment first needs it, and ends with the last of
 * them. Its state is in the store, so that it survives a deploy or a restart.
 */
export class SharedSimulator {
  /** Made before the simulator runs, since nodes set their timers by it. */
  readonly clock = new MovableClock(() => Date.now());
  private store: Store | undefined;
  /** The simulator's clock only goes forward. To forget its state is the only way back to real time. */
  private isToForget = process.env['ADVISOR_TEXTING_SIMULATOR'] === 'fresh';
  /** The number of flow nodes whose environment is on the simulator. */
  private nodes = 0;
  /** What each environment on it does when it is reset. */
  private readonly users = new Set<() => Promise<void>>();
  private running: Promise<Simulator> | undefined;
  private isStarting = false;
  /** It outlives a deploy, but not the process. */
  private ledger: Simulator['ledger'] | undefined;
  private ending: Promise<void> = Promise.resolve();

  /** Without a store, the simulator's state ends with it. */
  constructor(private readonly openStore: (() => Promise<Store>) | undefined) {}

  /** Whether an environment of this runtime is on the simulator: without one, the simulator must not run. */
  get isWanted(): boolean {
    return this.users.size > 0;
  }

  /**
   * Called by each `simulator` environment. `forget` is called when somebody resets the simulator, `moved` when somebody
   * moves its clock; call the result when the environment closes.
   */
  use(forget: () => Promise<void>, moved: () => void): () => Promise<void> {
    this.users.add(forget);
    const unlisten = this.clock.onMove(moved);
    return async () => {
      unlisten();
      if (this.users.delete(forget) && this.users.size === 0) await this.end();
    };
  }

  /** Called by each flow node on the simulator; call the result when the node closes. */
  addNode(): () => void {
    const count = (change: number): void => {
      this.nodes += change;
      this.running?.then((simulator) => simulator.flowsChanged()).catch(() => undefined);
    };
    count(1);
    return () => count(-1);
  }

  /** Resolves when the clock is as far ahead as it was before a restart: waits and timers must not begin sooner. */
  async restored(store: Store): Promise<void> {
    if ((await store.count('work', simulatorRecords, endOf(simulatorRecords))) === 0) return;
    await this.start().catch(() => undefined);
  }

  start(): Promise<Simulator> {
    const running = (this.running ??= this.ending.then(() => this.startNow()));
    running.catch(() => {
      if (this.running === running) this.running = undefined;
    });
    return running;
  }

  private async startNow(): Promise<Simulator> {
    this.isStarting = true;
    const { startSimulator, inStore } = lazy.simulator();
    const store = await this.openStore?.();
    this.store = store;
    try {
      if (store && this.isToForget) await removeUnder(store, 'work', simulatorRecords);
      this.isToForget = false;
      const simulator = await startSimulator({
        clock: this.clock,
        hasFlows: () => this.nodes > 0,
        ...(store && { data: inStore(store) }),
        ...(this.ledger && { ledger: this.ledger }),
      });
      this.ledger = simulator.ledger;
      simulator.onReset(async () => {
        await Promise.all(Array.from(this.users, (forget) => forget()));
      });
      return simulator;
    } catch (fault) {
      await store?.close();
      throw fault;
    } finally {
      this.isStarting = false;
    }
  }

  private async end(): Promise<void> {
    const running = this.running;
    this.running = undefined;
    if (!running) return;
    this.ending = running.then(
      async (simulator) => {
        await simulator.close();
        await this.store?.close();
      },
      () => undefined,
    );
    // A start that waits for a store in trouble may last forever.
    if (!this.isStarting) await this.ending;
  }
}
