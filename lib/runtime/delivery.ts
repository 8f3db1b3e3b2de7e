import { elapsedBy, systemClock, within } from '../service/clock';
import type { Red, RunningNode } from './red';

type Events = Red['events'];

/** Milliseconds. The runtime gives nodes fifteen seconds to close; after more, somebody has stopped the flows. */
const longestDeploy = 16_000;

interface Flows {
  isStopping: boolean;
  /** When, by the monotonic clock. */
  stoppedAt: number;
  /** Tasks for the next start. */
  readonly tasks: Set<() => void>;
}

const known = new WeakMap<Events, Flows>();

/** One listener serves all nodes, for the runtime warns of more than ten. */
const flowsOf = ({ events }: Red): Flows => {
  const found = known.get(events);
  if (found) return found;
  const flows: Flows = { isStopping: false, stoppedAt: 0, tasks: new Set() };
  known.set(events, flows);
  events.on('flows:stopping', () => {
    flows.isStopping = true;
    flows.stoppedAt = elapsedBy(systemClock);
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
const areFlowsStopping = (RED: Red): boolean => flowsOf(RED).isStopping;

/** Resolves when a deploy that is under way is over. */
export const deployEnd = async (RED: Red): Promise<void> => {
  const { isStopping, stoppedAt } = flowsOf(RED);
  const left = stoppedAt + longestDeploy - elapsedBy(systemClock);
  if (!isStopping || left <= 0) return;
  let forget = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    forget = atNextStart(RED, resolve);
  });
  await within(systemClock, left, started);
  forget();
};

/** Where the runtime keeps what a node does with its input, until it closes the node. */
interface Receiver {
  readonly _inputCallback?: unknown;
  readonly _inputCallbacks?: unknown;
}

const isListening = (node: unknown): node is Receiver => {
  const { _inputCallback, _inputCallbacks } = (node ?? {}) as Receiver;
  return Boolean(_inputCallback) || Boolean(_inputCallbacks);
};

/** Resolves when what was sent before has reached the next node, or nobody. */
const delivered = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Whether what leaves by `port` directly after this call arrives. The runtime delivers in the next turn of the event
 * loop, and drops without a word what is on its way to a node that is closed before. This looks just ahead of the
 * delivery, for whoever receives may stop the flows at once.
 */
const arrival = async (RED: Red, node: RunningNode, port: number): Promise<boolean> => {
  const receiversAt = (output: number): Receiver[] =>
    (node.wires[output] ?? []).map((id): unknown => RED.nodes.getNode(id)).filter(isListening);
  const direct = receiversAt(port);
  const receivers = direct.length === 0 && port === 2 ? receiversAt(1) : direct;
  await delivered();
  return receivers.length === 0 || receivers.some(isListening);
};

const nextStart = (RED: Red, closed: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      forget();
      closed.removeEventListener('abort', end);
      resolve();
    };
    const forget = atNextStart(RED, end);
    closed.addEventListener('abort', end);
  });

/**
 * Sends by `port`, again after the next start of the flows when a deploy or a shutdown was in the way. False when the
 * node closed first.
 */
export const deliver = async (
  RED: Red,
  node: RunningNode,
  port: number,
  closed: AbortSignal,
  send: () => void,
): Promise<boolean> => {
  const isClosed = (): boolean => closed.aborted;
  for (let mustWait = areFlowsStopping(RED); !isClosed(); mustWait = true) {
    if (mustWait) await nextStart(RED, closed);
    if (isClosed()) break;
    const arriving = arrival(RED, node, port);
    send();
    if (await arriving) return true;
  }
  return false;
};
