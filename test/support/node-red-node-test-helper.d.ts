declare module 'node-red-node-test-helper' {
  import type { EventEmitter } from 'node:events';
  import type { Node, NodeAPI } from 'node-red';

  interface NodeTestHelper {
    init(runtimePath: string): void;
    load(nodes: ((RED: NodeAPI) => void)[], flow: object[], credentials?: object): Promise<void>;
    setFlows(flow: object[], type?: 'full' | 'flows' | 'nodes'): Promise<void>;
    unload(): Promise<void>;
    getNode(id: string): (Node & EventEmitter) | null;
    startServer(done: () => void): void;
    stopServer(done: () => void): void;
    settings(settings: object): object;
  }

  const helper: NodeTestHelper;
  export = helper;
}
