import helper from 'node-red-node-test-helper';
import type { Node, NodeAPI } from 'node-red';
import type { Environment } from '../../lib/runtime/environment';
import type { Message, RunningNode } from '../../lib/runtime/red';
import { register, type NodeRuntime } from '../../lib/runtime/register';
import { registeredOf, type NodeSpec } from '../../lib/runtime/spec';
import { Arrivals } from './arrivals';

/** Node-RED 5 does not start on the older Node, where people run 4.1. */
export const runtimePath = require.resolve(
  Number(process.versions.node.split('.')[0]) >= 22 ? 'node-red' : 'node-red-4',
);

/** The part of a node's folder that a test loads. */
export interface NodeFolder {
  readonly spec: NodeSpec;
  readonly runtime: NodeRuntime;
}

export interface Arrived {
  /** The node it came from, and which of its outputs. */
  readonly from: string;
  readonly port: number;
  readonly msg: Message;
}

export interface Shown {
  readonly fill: string;
  readonly shape: string;
  readonly text: string;
}

type NodeConfig = { readonly id: string; readonly type: string } & Readonly<Record<string, unknown>>;

export interface FlowOptions {
  readonly folders: readonly NodeFolder[];
  readonly environment?: Environment;
  /** The nodes under test, without `environment` and `wires`, which are added. */
  readonly nodes: readonly NodeConfig[];
  /** Outputs that are also wired to one of the nodes under test. */
  readonly wires?: readonly (readonly [from: string, port: number, to: string])[];
  /** The variables of a subflow around the nodes, which has one instance. */
  readonly env?: Readonly<Record<string, string>>;
  /** Outputs without a wire. */
  readonly unwired?: readonly number[];
  /**
   * Without the helper's spies, which keep each call with a stack trace: for very many messages. Statuses and
   * warnings are then not recorded.
   */
  readonly isUnwatched?: boolean;
}

const environmentId = 'environment';
const tab = { id: 'tab', type: 'tab', label: 'test' };
const subflow = { id: 'subflow', type: 'subflow', name: '', in: [], out: [] };
const instance = { id: 'use', type: 'subflow:subflow', z: tab.id, x: 0, y: 0, wires: [] };
const outId = (from: string, port: number): string => `${from}-out-${String(port)}`;

/** Replaces the config node: it has the environment that the test made. */
const environmentType =
  (environment: Environment | undefined) =>
  (RED: NodeAPI): void => {
    function construct(this: Node & { environment?: Environment }, config: never): void {
      RED.nodes.createNode(this, config);
      if (environment) this.environment = environment;
    }
    RED.nodes.registerType('test-environment', construct as never);
  };

/** Sees each completion itself: a Complete node gets nothing any more once the flow is closing. */
const noting = (runtime: NodeRuntime, settled: (Error | undefined)[]): NodeRuntime => ({
  create(RED, node, config) {
    const running = node as RunningNode;
    const complete = running._complete.bind(node);
    running._complete = (msg, error) => {
      settled.push(error);
      complete(msg, error);
    };
    runtime.create(RED, node, config);
  },
});

/** A deployed flow of nodes under test, with something listening on every output, to errors and to completion. */
export class Flow {
  readonly arrivals = new Arrivals<Arrived>();
  readonly errors = new Arrivals<Message & { error: Record<string, unknown> }>();
  readonly completed = new Arrivals<Message>();
  readonly statuses: Shown[] = [];
  readonly warnings: string[] = [];

  /** The arguments of `done`, once for each input that was settled. */
  readonly settled: (Error | undefined)[] = [];

  private constructor(private readonly ids: readonly string[]) {}

  static async load(options: FlowOptions): Promise<Flow> {
    helper.init(runtimePath);
    const { folders, environment, nodes, env, unwired = [], wires = [] } = options;
    const z = env ? subflow.id : tab.id;
    const variables = Object.entries(env ?? {}).map(([name, value]) => ({ name, type: 'str', value }));
    const running = (id: string): string => (env ? `${instance.id}-${id}` : id);
    const specs = new Map(folders.map(({ spec }) => [spec.type, spec]));
    const ports = (type: string): number[] => (specs.get(type)?.outputs ?? []).map((_, port) => port);
    const underTest = nodes.map((node) => ({
      environment: environmentId,
      ...node,
      z,
      wires: ports(node.type).map((port) => [
        ...(unwired.includes(port) ? [] : [outId(node.id, port)]),
        ...wires.flatMap(([from, at, to]) => (from === node.id && at === port ? [to] : [])),
      ]),
    }));
    const outs = nodes.flatMap((node) =>
      ports(node.type).map((port) => ({ id: outId(node.id, port), type: 'helper', z, wires: [] })),
    );
    const scope = nodes.map(({ id }) => id);
    const listeners = ['catch', 'complete'].map((type) => ({
      id: `the-${type}`,
      type,
      z,
      scope,
      wires: [[`on-${type}`]],
    }));
    const heard = listeners.map(({ type }) => ({ id: `on-${type}`, type: 'helper', z, wires: [] }));
    const flow = new Flow(scope.map(running));
    await helper.load(
      [
        // Before the first node is created: a node may keep the methods that it finds.
        () => {
          if (options.isUnwatched) helper._sandbox.restore();
        },
        environmentType(environment),
        ...folders.map(({ spec, runtime }) => (RED: NodeAPI) => {
          register(RED, registeredOf(spec), () => noting(runtime, flow.settled));
        }),
      ],
      [
        tab,
        ...(env ? [{ ...subflow, env: variables }, instance] : []),
        { id: environmentId, type: 'test-environment' },
        ...underTest,
        ...outs,
        ...listeners,
        ...heard,
      ],
    );
    flow.listen(underTest.map(({ id, wires }) => ({ id: running(id), ports: wires.length })));
    return flow;
  }

  /** Stops the flow; for `afterEach`. */
  static async unload(): Promise<void> {
    await helper.unload();
  }

  send(msg: Message, to: string = this.ids[0] ?? ''): void {
    helper.getNode(to)?.receive(msg);
  }

  /** Sends a message and returns the next `count` messages, whichever outputs they leave by. */
  async ask(msg: Message, count = 1): Promise<Arrived[]> {
    const coming = this.arrivals.next(count);
    this.send(msg);
    return coming;
  }

  private listen(nodes: readonly { readonly id: string; readonly ports: number }[]): void {
    for (const { id, ports } of nodes) {
      for (let port = 0; port < ports; port++) {
        helper.getNode(outId(id, port))?.on('input', (msg: Message) => {
          this.arrivals.add({ from: id, port, msg });
        });
      }
      const node = helper.getNode(id);
      node?.on('call:status', (call: { args: [Shown] }) => {
        // A node that was pointed elsewhere starts without its earlier status.
        if (this.statuses.length > 0 || Object.keys(call.args[0]).length > 0)
          this.statuses.push(call.args[0]);
      });
      if (!node) continue;
      // The helper's spies are gone while the flows stop.
      const { warn } = node;
      node.warn = (said) => {
        this.warnings.push(said as string);
        warn.call(node, said);
      };
    }
    helper.getNode('on-catch')?.on('input', (msg: Message) => {
      this.errors.add(msg as Message & { error: Record<string, unknown> });
    });
    helper.getNode('on-complete')?.on('input', (msg: Message) => {
      this.completed.add(msg);
    });
  }
}
