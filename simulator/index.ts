import type { IncomingMessage, ServerResponse } from 'node:http';
import { resolve } from 'node:path';
import { MovableClock } from './movable-clock';
import { ChangeStream } from './control/events';
import { stateView } from './control/view';
import { inFile, Keeper, restore, type SnapshotStorage } from './persistence';
import { basePath, createSimulatorServer, guarded, listen, servePageAndControl, type Served } from './server';
import type { ProfileName } from './profiles';
import { Ledger } from './ledger';
import { Simulation, type ClientCredentials } from './simulation';
import { defaultContacts } from './state/seed';
import { isLoopback } from '../lib/addresses';
import type { SettingsChange } from './state/settings';

export type { Fault } from './effects';
export type { LedgerEntry } from './ledger';
export { magicNumbers, type Magic } from './magic';
export { inStore, type SnapshotStorage } from './persistence';
export type { ClientCredentials } from './simulation';
export { environmentFor, profiles, type Habits, type ProfileName } from './profiles';
export type { Settings, SettingsChange } from './state/settings';
export type { StateView } from './control/view';

export interface SimulatorOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** The default is the loopback address. */
  readonly host?: string;
  /** The number of contacts in each advisor's new address book; a handful by default. */
  readonly contacts?: number;
  /** Where the state is kept over restarts: a file, or the caller's own storage. */
  readonly data?: string | SnapshotStorage;
  /** The default runs with real time, and can be moved forward. */
  readonly clock?: MovableClock;
  /** The service to simulate, `usual` by default; shorthand for the setting of that name. */
  readonly profile?: ProfileName;
  readonly settings?: SettingsChange;
  readonly credentials?: Partial<ClientCredentials>;
  /** The seed of the random source for faults with a rate. */
  readonly randomSeed?: number;
  /** The most requests that the ledger keeps; 0 keeps none. */
  readonly ledgerLimit?: number;
  /** That of a simulator before this one, to be continued. */
  readonly ledger?: Ledger;
  /** The directory of the built phones page, when it is not in its usual place. */
  readonly page?: string;
  readonly warn?: (message: string) => void;
  /** Whether flows use the simulator; the first steps on its page depend on it. */
  readonly hasFlows?: () => boolean;
}

export const defaultCredentials: ClientCredentials = {
  clientId: 'simulator-client',
  clientSecret: 'simulator-secret',
  apiKey: 'simulator-key',
};

const defaultHost = '127.0.0.1';

export const startSimulator = async (options: SimulatorOptions = {}) => {
  const { host = defaultHost, warn = (message) => process.emitWarning(message) } = options;
  const credentials = { ...defaultCredentials, ...options.credentials };
  const clock = options.clock ?? new MovableClock(() => Date.now());
  const settings: SettingsChange = {
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...options.settings,
  };
  const simulation = new Simulation(clock, {
    contacts: options.contacts ?? defaultContacts,
    settings,
    credentials,
    randomSeed: options.randomSeed ?? 1,
    ledger: options.ledger ?? new Ledger(options.ledgerLimit ?? 100_000),
    hasFlows: options.hasFlows ?? (() => null),
  });
  const { state } = simulation;
  const keeper =
    options.data === undefined ? undefined : await keepSimulation(simulation, options.data, warn);
  // A setting that was given for this start takes precedence over the stored one.
  if (Object.keys(settings).length > 0) state.change(settings);
  const events = new ChangeStream();
  state.onChange(() => events.changed());

  const bracketed = host.includes(':') ? `[${host}]` : host;
  const served: Served = { simulation, events, page: options.page, loopback: isLoopback(bracketed) };
  const server = createSimulatorServer(served);
  const port = await listen(server, options.port ?? 0, host);
  const url = `http://${bracketed}:${String(port)}`;

  return {
    url,
    baseUrl: url + basePath,
    authUrl: `${url}/oauth/authorize`,
    tokenUrl: `${url}/oauth/token`,
    credentials,
    clock,
    ledger: simulation.ledger,
    faults: simulation.faults,
    get settings() {
      return state.settings;
    },
    change: (change: SettingsChange) => state.change(change),
    /** What the phones page shows. */
    state: (advisor?: string) => stateView(simulation, advisor),
    /** Answers for the owner of a number: to one advisor, else in every account that knows the number. */
    accept: (phone: string, advisor?: string) => simulation.answer(phone, 'accepted', advisor),
    decline: (phone: string, advisor?: string) => simulation.answer(phone, 'declined', advisor),
    resetPhone: (phone: string, advisor?: string) => simulation.resetPhone(phone, advisor),
    advance: (seconds: number) => simulation.advance(seconds),
    /**
     * A token for an advisor, without the OAuth flow; with all provisioned scopes by default. Cheap enough for each
     * request.
     */
    accessToken: (advisor: string, scopes?: readonly string[]) =>
      simulation.tokens.accessToken(advisor, scopes),
    revoke: (advisor?: string) => simulation.revoke(advisor),
    reset: () => simulation.reset(),
    onReset: (listener: () => Promise<void>) => simulation.onReset(listener),
    onChange: (listener: () => void) => state.onChange(listener),
    /** Notifies open pages that there are flows now, or none any more. */
    flowsChanged: () => events.changed(),
    /** Serves the page and the control API where another server has mounted them; `request.url` is relative to that place. */
    handle: (request: IncomingMessage, response: ServerResponse) =>
      guarded(request, response, servePageAndControl(served, request, response)),
    /** Resolves when the state is on disk. */
    flush: async () => {
      await keeper?.flush();
    },
    close: async () => {
      events.close();
      await new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
      });
      state.close();
      await keeper?.flush();
    },
  };
};

export type Simulator = Awaited<ReturnType<typeof startSimulator>>;

const keepSimulation = async (
  simulation: Simulation,
  data: string | SnapshotStorage,
  warn: (message: string) => void,
): Promise<Keeper> => {
  const keeping = typeof data === 'string' ? inFile(resolve(data)) : data;
  const damage = await restore(simulation, keeping);
  if (damage !== undefined) warn(damage);
  const keeper = new Keeper(simulation, keeping, warn);
  simulation.state.onChange(() => keeper.changed());
  return keeper;
};
