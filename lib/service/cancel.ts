/**
 * Ten thousand recipients may share one signal, and an AbortSignal compares every new listener with all it has: so
 * each signal gets a single listener that serves them all.
 */
const listeners = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `task` when the signal aborts (it must not have aborted yet); returns its cancel. */
export const onAbort = (signal: AbortSignal, task: () => void): (() => void) => {
  let tasks = listeners.get(signal);
  if (tasks === undefined) {
    const all = new Set<() => void>();
    tasks = all;
    listeners.set(signal, all);
    signal.addEventListener(
      'abort',
      () => {
        for (const each of all) each();
        all.clear();
      },
      { once: true },
    );
  }
  const own = tasks;
  own.add(task);
  return () => {
    own.delete(task);
  };
};
