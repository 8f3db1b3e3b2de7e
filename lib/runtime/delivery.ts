import { nodeCloseTime, second } from '../durations';
import { processMemory } from '../process-memory';
import { elapsedBy, systemClock, within } from '../service/clock';
import type { Red, RunningNode } from './red';

type RuntimeEvents = Red['events'];

/** After this time, the flows were stopped and not deployed: all nodes have closed, or were given up. */
const longestDeploy = nodeCloseTime + second;

interface Flows {
  isStopping: boolean;
  /** By the monotonic clock. */
  stoppedAt: number;
  /** Tasks for the next start of the flows. */
  readonly tasks: Set<() => void>;
}

const flowsByEvents = processMemory('flows', new WeakMap<RuntimeEvents, Flows>());

/** One listener serves all nodes: the runtime warns when there are more than ten. */
const flowsOf = ({ events }: Red): Flows => {
  const found = flowsByEvents.get(events);
  if (found) return found;
  const flows: Flows = { isStopping: false, stoppedAt: 0, tasks: new Set() };
  flowsByEvents.set(events, flows);
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

/** Calls `task` at the next start of the flows, when every node can be sent to. The result cancels it. */
export const atNextStart = (RED: Red, task: () => void): (() => void) => {
  const { tasks } = flowsOf(RED);
  tasks.add(task);
  return () => {
    tasks.delete(task);
  };
};

/** True from the moment a deploy or a shutdown begins to close nodes until the flows have started again. */
const areFlowsStopping = (RED: Red): boolean => flowsOf(RED).isStopping;

/** Resolves when the deploy that is under way is over. */
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

/** The member in which Node-RED keeps a node's input handler, until it closes the node. */
interface Receiver {
  readonly _inputCallback?: unknown;
  readonly _inputCallbacks?: unknown;
}

const isListening = (node: unknown): node is Receiver => {
  const { _inputCallback, _inputCallbacks } = (node ?? {}) as Receiver;
  return Boolean(_inputCallback) || Boolean(_inputCallbacks);
};

/** Resolves just before a message that is sent next is delivered: each needs its own, because a receiver may stop the flows. */
const delivered = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Whether a message that leaves by `port` directly after this call arrives. Node-RED delivers it in the next turn of
 * the event loop, and silently drops it when the receiver is closed before. So the receivers are checked just before
 * the delivery; afterwards is too late, for a receiver may itself stop the flows.
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
 * Sends by `port`. When a deploy or a shutdown was in the way, it sends again after the next start of the flows. False
 * when the node closed first.
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
