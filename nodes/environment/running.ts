import type { Red } from '../../lib/runtime/red';
import type { RunningEnvironment } from './environment';
import { orMake, processMemory } from '../../lib/process-memory';

const running = processMemory('environments', new WeakMap<Red, Set<RunningEnvironment>>());

/** The environments that are deployed now. One in a subflow is there once for each use of the subflow. */
export const runningOf = (RED: Red): Set<RunningEnvironment> => orMake(running, RED, () => new Set());

export const findRunning = (RED: Red, id: string): RunningEnvironment | undefined =>
  [...runningOf(RED)].find((environment) => environment.id === id);
