import type { Red } from './red';

type Events = Red['events'];

interface Flows {
  isStopping: boolean;
  /** To be done at the next start. */
  readonly tasks: Set<() => void>;
}

const known = new WeakMap<Events, Flows>();

/** One listener serves all nodes, for the runtime warns of more than ten. */
const flowsOf = ({ events }: Red): Flows => {
  const found = known.get(events);
  if (found) return found;
  const flows: Flows = { isStopping: false, tasks: new Set() };
  known.set(events, flows);
  events.on('flows:stopping', () => {
    flows.isStopping = true;
  });
  events.on('flows:started', () => {
    flows.isStopping = false;
    const due = [...flows.tasks];
    flows.tasks.clear();
    for (const each of due) each();
  });
  return flows;
};

/** Calls `task` at the next start of the flows, when every node is there to be sent to; returns its cancel. */
export const atNextStart = (RED: Red, task: () => void): (() => void) => {
  const { tasks } = flowsOf(RED);
  tasks.add(task);
  return () => {
    tasks.delete(task);
  };
};

/** From the moment a deploy or a shutdown begins to close nodes until all nodes are there again. */
export const areFlowsStopping = (RED: Red): boolean => flowsOf(RED).isStopping;
