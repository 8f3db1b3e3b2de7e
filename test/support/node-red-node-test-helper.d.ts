declare module 'node-red-node-test-helper' {
  import type { EventEmitter } from 'node:events';
  import type { Node, NodeAPI } from 'node-red';

  interface Answer {
    readonly status: number;
    readonly text: string;
    readonly body: unknown;
  }

  interface Asking extends PromiseLike<Answer> {
    send(body: object): PromiseLike<Answer>;
  }

  interface NodeTestHelper {
    init(runtimePath: string): void;
    load(nodes: ((RED: NodeAPI) => void)[], flow: object[], credentials?: object): Promise<void>;
    setFlows(flow: object[], type?: 'full' | 'flows' | 'nodes', credentials?: object): Promise<void>;
    unload(): Promise<void>;
    getNode(id: string): (Node & EventEmitter) | null;
    startServer(done: () => void): void;
    stopServer(done: () => void): void;
    settings(settings: object): object;
    readonly _sandbox: { restore(): void };
    /** Of the admin root. */
    request(): Record<'get' | 'post' | 'delete', (path: string) => Asking>;
  }

  const helper: NodeTestHelper;
  export = helper;
}
