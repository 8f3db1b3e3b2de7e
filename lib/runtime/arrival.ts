import type { Outcome } from './outcomes';
import type { Red, RunningNode } from './red';

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
export const delivery = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Whether an outcome arrives that leaves directly after this call. The runtime delivers in the next turn of the event
 * loop, and drops without a word what is on its way to a node that is closed before. This looks just ahead of the
 * delivery, for whoever receives may stop the flows at once.
 */
export const arrival = async (RED: Red, node: RunningNode, { port }: Outcome): Promise<boolean> => {
  const receiversAt = (output: number): Receiver[] =>
    (node.wires[output] ?? []).map((id): unknown => RED.nodes.getNode(id)).filter(isListening);
  const direct = receiversAt(port);
  const receivers = direct.length === 0 && port === 2 ? receiversAt(1) : direct;
  await delivery();
  return receivers.length === 0 || receivers.some(isListening);
};
