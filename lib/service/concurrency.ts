import { orMake, processMemory } from '../process-memory';

/** One listener for each signal: ten thousand recipients may share it, and it compares each new one with all others. */
const listeners = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `task` when the signal aborts, which it must not have done yet; the result cancels it. */
export const onAbort = (signal: AbortSignal, task: () => void): (() => void) => {
  const tasks = orMake(listeners, signal, () => {
    const all = new Set<() => void>();
    const callAll = (): void => {
      for (const each of all) each();
      all.clear();
    };
    signal.addEventListener('abort', callAll, { once: true });
    return all;
  });
  tasks.add(task);
  return () => tasks.delete(task);
};

/** How many tasks wait for the signal: none may be left by work that has ended. */
export const listenersOn = (signal: AbortSignal): number => listeners.get(signal)?.size ?? 0;

export type Waker = AbortSignal | Promise<unknown> | ((wake: () => void) => () => unknown);

/** Resolves when the first waker aborts, settles or calls `wake`; then all wakers are cleaned up. */
export const wokenBy = (...wakers: readonly Waker[]): Promise<void> =>
  new Promise((resolve) => {
    const wake = (): void => {
      for (const forget of forgets) forget();
      resolve();
    };
    const forgets = wakers.map((waker) => {
      if (typeof waker === 'function') return waker(wake);
      if (waker instanceof AbortSignal) return onAbort(waker, wake);
      waker.then(wake, wake);
      return () => undefined;
    });
  });

/** The last task of each key; a key is forgotten when its last task has ended. */
const lastOf = processMemory('turns', new Map<string, Promise<void>>());

/** Runs the tasks of one key in order, across all nodes: one that reads and writes back never overlaps another. */
export const oneAtATime = <T>(key: string, task: () => Promise<T>, last = lastOf): Promise<T> => {
  const before = last.get(key);
  const result = before ? before.then(task) : task();
  const forget = (): void => {
    if (last.get(key) === ended) last.delete(key);
  };
  const ended = result.then(forget, forget);
  last.set(key, ended);
  return result;
};

interface Flight {
  readonly result: Promise<string>;
  readonly controller: AbortController;
  /** The users for whom the work is under way. */
  readonly passengers: Set<object>;
}

/** Work by name: all who ask while it is under way get the same result. */
export class Flights {
  private readonly underWay = new Map<string, Flight>();

  has(name: string): boolean {
    return this.underWay.has(name);
  }

  join(name: string, passenger: object, work: (signal: AbortSignal) => Promise<string>): Promise<string> {
    const present = this.underWay.get(name);
    if (present) {
      if (present.controller.signal.aborted) {
        const again = (): Promise<string> => this.join(name, passenger, work);
        return present.result.then(again, again);
      }
      present.passengers.add(passenger);
      return present.result;
    }
    const controller = new AbortController();
    const result = work(controller.signal).finally(() => this.underWay.delete(name));
    this.underWay.set(name, { result, controller, passengers: new Set([passenger]) });
    return result;
  }

  /** Aborts work that is under way for this user alone, and resolves when it has ended. */
  async leave(passenger: object): Promise<void> {
    const left: Promise<unknown>[] = [];
    for (const { passengers, controller, result } of this.underWay.values()) {
      passengers.delete(passenger);
      if (passengers.size > 0) continue;
      controller.abort();
      left.push(result.catch(() => undefined));
    }
    await Promise.all(left);
  }
}
