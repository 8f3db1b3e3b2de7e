import { startSimulator, type Simulator, type SimulatorOptions } from '../../simulator';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';
import { alsoClose, closeAll } from './closing';
import { environmentOn, type EnvironmentChoices, type TestEnvironment } from './environment';
import { Flow } from './flow';

export interface Simulated {
  readonly simulator: Simulator;
  readonly environment: TestEnvironment;
  readonly store: Store;
  /** How many requests of an endpoint the simulator has received. */
  received(endpoint: string): number;
  close(): Promise<void>;
}

/** A simulator for one test, and an environment on it. */
export const startSimulated = async (
  options: SimulatorOptions = {},
  choices: EnvironmentChoices & { readonly scopes?: readonly string[] } = {},
): Promise<Simulated> => {
  const simulator = await startSimulator(options);
  const { baseUrl, credentials } = simulator;
  const store = choices.store ?? createMemoryStore();
  const environment = environmentOn(
    {
      baseUrl,
      apiKey: credentials.apiKey,
      token: (advisor) => simulator.accessToken(advisor, choices.scopes),
    },
    { service: 'simulator', clock: simulator.clock, ...choices, store },
  );
  return {
    simulator,
    environment,
    store,
    received: (endpoint) => simulator.ledger.entries().filter((entry) => entry.endpoint === endpoint).length,
    async close() {
      await environment.close();
      await simulator.close();
    },
  };
};

/** A simulator for each test; everything that the test has started ends with it. */
export const simulatedForEach = (start: () => Promise<Simulated> = () => startSimulated()): Simulated => {
  let running: Simulated | undefined;
  beforeEach(async () => {
    running = alsoClose(await start());
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });
  const on = (): Simulated => {
    if (!running) throw new Error('no test has started');
    return running;
  };
  return {
    get simulator() {
      return on().simulator;
    },
    get environment() {
      return on().environment;
    },
    get store() {
      return on().store;
    },
    received: (endpoint) => on().received(endpoint),
    close: () => on().close(),
  };
};
