import type { Red } from './red';

type Events = Red['events'];

const waiting = new WeakMap<Events, Set<() => void>>();

/**
 * Calls `task` at the next start of the flows, when every node is there to be sent to; returns its cancel. One
 * listener serves all nodes, for the runtime warns of more than ten.
 */
export const atNextStart = (RED: Red, task: () => void): (() => void) => {
  let tasks = waiting.get(RED.events);
  if (!tasks) {
    const all = new Set<() => void>();
    tasks = all;
    waiting.set(RED.events, all);
    RED.events.on('flows:started', () => {
      const due = [...all];
      all.clear();
      for (const each of due) each();
    });
  }
  const own = tasks;
  own.add(task);
  return () => {
    own.delete(task);
  };
};
