import { startSimulator, type Simulator, type SimulatorOptions } from '../../simulator';
import { environmentOn, type EnvironmentChoices, type TestEnvironment } from './environment';

export interface Simulated {
  readonly simulator: Simulator;
  readonly environment: TestEnvironment;
  /** How many requests of an endpoint the simulator has received. */
  received(endpoint: string): number;
  close(): Promise<void>;
}

/** A simulator of its own for a test, and an environment on it. */
export const startSimulated = async (
  options: SimulatorOptions = {},
  choices: EnvironmentChoices & { readonly scopes?: readonly string[] } = {},
): Promise<Simulated> => {
  const simulator = await startSimulator(options);
  const { baseUrl, credentials } = simulator;
  const environment = environmentOn(
    {
      baseUrl,
      apiKey: credentials.apiKey,
      token: (advisor) => simulator.accessToken(advisor, choices.scopes),
    },
    { service: 'simulator', clock: simulator.clock, ...choices },
  );
  return {
    simulator,
    environment,
    received: (endpoint) => simulator.ledger.entries().filter((entry) => entry.endpoint === endpoint).length,
    async close() {
      await environment.close();
      await simulator.close();
    },
  };
};
