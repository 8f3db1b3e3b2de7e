import { EventEmitter } from 'node:events';
import { util } from '@node-red/util';
import type { NodeAPI } from 'node-red';
import type { Environment } from '../../lib/runtime/environment';
import type { Message, RunningNode } from '../../lib/runtime/red';
import type { Clock } from '../../lib/service/clock';
import type { MovableClock } from '../../simulator/movable-clock';
import { Store, type Peers } from '../../lib/state/store';
import { Arrivals } from './arrivals';
import type { Arrived, NodeFolder } from './flow';
import { overStore } from './state/over-store';
import { peers } from './state/peers';

/** A killed process waits for this. */
const never = new Promise<never>(() => undefined);

const processes = new Map<string, Mortal>();

/** A process that may be killed at any of its commits. */
export class Mortal {
  readonly name = `process ${String(processes.size)}`;
  private isKilled = false;
  private readonly holds = new Set<() => void>();
  /** Remaining commits; the process is killed at the next. */
  private left = Infinity;
  private isLastMade = false;

  constructor() {
    processes.set(this.name, this);
  }

  get isDead(): boolean {
    return this.isKilled;
  }

  kill(): void {
    this.isKilled = true;
    for (const release of this.holds) release();
  }

  /** `isLastMade`: at the very moment when its last commit is saved, before it learns of that. */
  killAfter(commits: number, isLastMade = false): void {
    this.left = commits;
    this.isLastMade = isLastMade;
  }

  /** A clock as this process sees it: a killed process blocks nobody. */
  clock(clock: MovableClock): Clock {
    return {
      now: () => clock.now(),
      after: (ms, task) =>
        clock.after(ms, () => {
          if (!this.isDead) task();
        }),
      keepStill: () => {
        if (this.isDead) return () => undefined;
        const release = clock.keepStill();
        this.holds.add(release);
        return () => {
          this.holds.delete(release);
          release();
        };
      },
    };
  }

  /** A store as this process sees it. */
  over<T extends Store | Peers>(store: T): T {
    const alive = async <T>(work: () => Promise<T>): Promise<T> => {
      const unlessDead = (): Promise<void> => (this.isDead ? never : Promise.resolve());
      await unlessDead();
      // Failures, too.
      return work().finally(unlessDead);
    };
    const own = peers({
      processName: this.name,
      isAlive: (name) => alive(() => Promise.resolve(processes.get(name)?.isDead === false)),
    });
    return new Proxy(store instanceof Store ? (overStore(store) as T) : store, {
      get: (target, property, proxy) => {
        const value: unknown = Reflect.get(target, property, target);
        if (property === 'peers') return value ? this.over(value as Peers) : own;
        if (typeof value !== 'function') return value;
        if (['save', 'ride', 'saveTogether', 'flush'].includes(String(property)))
          return value.bind(proxy) as unknown;
        const method = value.bind(target) as (...args: unknown[]) => unknown;
        if (['now', 'hash', 'isInDoubt', 'isUnreadable', 'others'].includes(String(property))) return method;
        if (property !== 'write')
          return (...args: unknown[]) => alive(() => method(...args) as Promise<unknown>);
        return (...args: unknown[]) => {
          if (this.left <= 0) {
            const isMade = this.isLastMade && !this.isDead;
            this.kill();
            if (isMade) void (method(...args) as Promise<unknown>).catch(() => undefined);
            return never;
          }
          this.left -= 1;
          return alive(() => method(...args) as Promise<unknown>);
        };
      },
    });
  }
}

/** One node as a separate process has it: several of one id may run side by side, and none needs to be closed. */
export class Instance {
  readonly arrivals = new Arrivals<Arrived>();
  /** The errors that the node has reported. */
  readonly errors: unknown[] = [];
  private readonly node = new EventEmitter();

  constructor(
    { spec, runtime }: NodeFolder,
    environment: Environment,
    config: Readonly<Record<string, unknown>> = {},
    private readonly process: { readonly isDead: boolean } = { isDead: false },
  ) {
    const { id = 'node' } = config as { id?: string };
    const wires = spec.outputs.map((_, port) => [`out-${String(port)}`]);
    const events = new EventEmitter();
    const RED = {
      util,
      events,
      settings: {},
      nodes: {
        getNode: (wanted: string) => (wanted === 'environment' ? { environment } : { _inputCallback: true }),
      },
    };
    Object.assign(this.node, {
      id,
      type: spec.type,
      wires,
      status: () => undefined,
      warn: () => undefined,
      error: (said: unknown) => this.errors.push(said),
      _complete: () => undefined,
      send: (sent: Message | readonly (Message | null)[]) => {
        [sent].flat().forEach((msg, port) => {
          if (msg && !this.process.isDead) this.arrivals.add({ from: id, port, msg });
        });
      },
    });
    const whole = { id, type: spec.type, environment: 'environment', ...config };
    runtime.create(RED as unknown as NodeAPI, this.node as unknown as RunningNode, whole as never);
    events.emit('flows:started');
  }

  send(msg: Message): void {
    this.node.emit(
      'input',
      msg,
      () => undefined,
      () => undefined,
    );
  }

  async ask(msg: Message, count = 1): Promise<Arrived[]> {
    const coming = this.arrivals.next(count);
    this.send(msg);
    return coming;
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.node.emit('close', resolve));
  }
}
