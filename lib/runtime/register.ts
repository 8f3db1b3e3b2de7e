import type { Node, NodeAPI, NodeDef } from 'node-red';
import { visible } from '../visible';
import type { Registered } from './spec';
import { systemLanguage } from './red';

/** A node's properties as saved in the flow: in a flow of an older version, any may be missing. */
export type Config = NodeDef & Readonly<Record<string, unknown>>;

/** What `nodes/<name>/runtime.ts` exports. */
export interface NodeRuntime {
  create(RED: NodeAPI, node: Node, config: Config): void;
}

/** A fault may quote a setting of the node. */
const asError = (fault: unknown): Error => {
  const { message, stack } = fault instanceof Error ? fault : new Error(String(fault));
  const shown = new Error(visible(message), { cause: fault });
  if (stack !== undefined) shown.stack = stack.replace(message, shown.message);
  return shown;
};

/**
 * The one `registerType`. `load` requires the runtime when the first node of the type is made: an installed but unused
 * package costs Node-RED next to nothing.
 */
export const register = (RED: NodeAPI, { type, credentials }: Registered, load: () => NodeRuntime): void => {
  function construct(this: Node, config: Config): void {
    RED.nodes.createNode(this, config);
    try {
      load().create(RED, this, config);
    } catch (fault) {
      // If the constructor threw, other nodes would not find this one, and its messages would be lost.
      const reason = asError(fault);
      this.error(reason);
      this.status({ fill: 'red', shape: 'ring', text: 'status.broken' });
      this.on('input', (_msg, _send, done) => {
        done(reason);
      });
    }
  }
  // The editor writes times as statuses do. Node-RED passes on a setting that has the name of its node.
  const settings = type === 'advisor-environment' && {
    advisorEnvironmentLanguage: { value: systemLanguage(RED.settings), exportable: true },
  };
  RED.nodes.registerType<Node, Config, object, object>(type, construct, {
    credentials,
    ...(settings && { settings }),
  });
};
