import type { Red } from '../../lib/runtime/red';
import type { RunningEnvironment } from './environment';
import { processMemory } from '../../lib/process-memory';

const running = processMemory('environments', new WeakMap<Red, Set<RunningEnvironment>>());

/** The environments that are deployed now. One in a subflow is there once for each use of the subflow. */
export const runningOf = (RED: Red): Set<RunningEnvironment> => {
  const set = running.get(RED) ?? new Set<RunningEnvironment>();
  running.set(RED, set);
  return set;
};

export const findRunning = (RED: Red, id: string): RunningEnvironment | undefined =>
  [...runningOf(RED)].find((environment) => environment.id === id);
