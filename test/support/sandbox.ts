import { startSimulator, type Simulator, type SimulatorOptions } from '../../simulator';
import { type FlowNode, type Message, type RealRed, type RedOptions, startRed } from './node-red';
import { unusedNodes } from './red-process';
import { callbackUri, refreshTokenFrom } from './auth/setup';

const scopes = ['offline_access', 'text.messaging.write', 'text.messaging.read'];

/** A start takes as long as its imports: these are not needed here either, and nobody looks at the editor. */
const quick = { disableEditor: true, nodesExcludes: [...unusedNodes, '10-function.js', '70-CSV.js'] };

export const environmentId = 'e0e0e0e0e0e0e0e0';
const tab = 'f0f0f0f0f0f0f0f0';
export const senderId = 'a0a0a0a0a0a0a0a0';
export const waiterId = 'b0b0b0b0b0b0b0b0';

const port = (id: string, name: string, to: string[] = []): FlowNode => ({
  id,
  type: 'test-port',
  z: tab,
  name,
  wires: [to],
});

/** A list as input to a send node and to a wait, and a port at each of their outputs. */
export const twoNodes = (changes: { sender?: object; waiter?: object } = {}): FlowNode[] => [
  { id: tab, type: 'tab', label: 'Real' },
  port('send', 'send', [senderId]),
  port('wait', 'wait', [waiterId]),
  {
    id: senderId,
    type: 'advisor-send-text',
    z: tab,
    environment: environmentId,
    wires: [['sent'], ['failed'], ['needs consent']],
    ...changes.sender,
  },
  {
    id: waiterId,
    type: 'advisor-check-consent',
    z: tab,
    environment: environmentId,
    mode: 'wait',
    pollEvery: 1,
    pollFor: 3600,
    wires: [['accepted'], ['wait failed'], ['not accepted']],
    ...changes.waiter,
  },
  ...['sent', 'failed', 'needs consent', 'accepted', 'wait failed', 'not accepted'].map((name) =>
    port(name, name),
  ),
];

/**
 * A service in this process, which outlives anything that happens to Node-RED, and a Node-RED that is authorized on it.
 */
export class Sandbox {
  private constructor(
    readonly simulator: Simulator,
    readonly red: RealRed,
    readonly flows: readonly FlowNode[],
  ) {}

  static async start(
    options: RedOptions & { readonly environment?: object; readonly simulator?: SimulatorOptions },
  ): Promise<Sandbox> {
    const { environment, simulator: simulated, flows = twoNodes(), ...rest } = options;
    const simulator = await startSimulator(simulated);
    const red = await startRed({ ...rest, settings: { ...quick, ...rest.settings } });
    const refreshToken = await refreshTokenFrom(simulator, { scopes: ['openid', ...scopes] }, 'default');
    const withEnvironment = [
      {
        id: environmentId,
        type: 'advisor-environment',
        name: 'Sandbox',
        service: 'sandbox',
        baseUrl: simulator.baseUrl,
        authUrl: simulator.authUrl,
        tokenUrl: simulator.tokenUrl,
        redirectUri: callbackUri,
        grant: 'authorization_code',
        scopes,
        credentials: { ...simulator.credentials, refreshToken },
        ...environment,
      },
      ...flows,
    ];
    await red.deploy(withEnvironment);
    return new Sandbox(simulator, red, withEnvironment);
  }

  /** Resolves when the service has received so many requests of an endpoint. */
  received(endpoint: string, count: number): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.entries(endpoint).length < count) return;
        clearInterval(watch);
        resolve();
      };
      // Reads change nothing, so there is no event for them.
      const watch = setInterval(look, 2);
      look();
    });
  }

  entries(
    endpoint: string,
  ): readonly { readonly phone: string | null; readonly processed: boolean; readonly text?: string }[] {
    return this.simulator.ledger.entries().filter((entry) => entry.endpoint === endpoint);
  }

  async close(): Promise<void> {
    await this.red.close();
    await this.simulator.close();
  }
}

/** Fictional numbers; `first` and the following ones are known contacts when the simulator has that many. */
export const numbers = (count: number, first = 0): string[] =>
  Array.from({ length: count }, (_, index) => {
    const at = first + index;
    return `+1${String(300 + Math.floor(at / 100))}55501${String(at % 100).padStart(2, '0')}`;
  });

/** What was emitted for each number: its output, its error's code, and whether it was marked as repeated. */
export interface Told {
  readonly port: string;
  readonly code: string | undefined;
  readonly isRepeated: boolean;
}

export interface TimedTold extends Told {
  /** In epoch milliseconds. */
  readonly at: number;
}

export const toldOf = (
  red: RealRed,
  ports: readonly string[],
): {
  readonly byPhone: Map<string, Told[]>;
  readonly timed: Map<string, TimedTold[]>;
  readonly messages: Message[];
} => {
  const byPhone = new Map<string, Told[]>();
  const timed = new Map<string, TimedTold[]>();
  const messages: Message[] = [];
  for (const { port: name, msg, at } of red.arrived) {
    if (!ports.includes(name)) continue;
    messages.push(msg);
    const phone = String(msg['phone']);
    const told = {
      port: name,
      code: (msg['error'] as { code?: string } | undefined)?.code,
      isRepeated: msg['repeated'] === true,
    };
    byPhone.set(phone, [...(byPhone.get(phone) ?? []), told]);
    timed.set(phone, [...(timed.get(phone) ?? []), { ...told, at }]);
  }
  return { byPhone, timed, messages };
};

/** The same numbers in the same order for the same seed. */
export const randomFrom = (seed: number): ((below: number) => number) => {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};
