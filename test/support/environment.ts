import { doNotTextOf, ownListOf } from '../../lib/guards/do-not-text';
import type { Environment, EnvironmentSettings } from '../../lib/runtime/environment';
import { createClient } from '../../lib/service/client';
import { systemClock, type Clock } from '../../lib/service/clock';
import type { Client, ClientOptions } from '../../lib/service/client';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';

export interface TestEnvironment extends Environment {
  /** Notifies listeners, as when somebody has authorized. */
  changed(): void;
  close(): Promise<void>;
}

export interface Service {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly token: ClientOptions['token'];
}

export interface EnvironmentChoices {
  readonly id?: string;
  readonly service?: Environment['service'];
  readonly advisors?: readonly string[];
  readonly clock?: Clock;
  readonly client?: Partial<ClientOptions>;
  readonly settings?: Partial<EnvironmentSettings>;
  readonly store?: Store;
}

/** As in a runtime, it outlives the environments on a service; no test sees what another left. */
const memories = new Map<string, Store>();
const memoryFor = (baseUrl: string): Store => {
  const memory = memories.get(baseUrl) ?? createMemoryStore();
  memories.set(baseUrl, memory);
  return memory;
};

/** An environment as flow nodes see it, with the real client, on any service that the test runs. */
export const environmentOn = (service: Service, choices: EnvironmentChoices = {}): TestEnvironment => {
  const { clock = systemClock, advisors = ['default'] } = choices;
  let client: Client | undefined;
  let store: Store | undefined;
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  const environment: TestEnvironment = {
    id: choices.id ?? 'test-environment',
    name: 'Test',
    service: choices.service ?? 'sandbox',
    clock,
    settings: {
      country: '',
      timeZone: '',
      consentPattern: '',
      journal: false,
      resumeWithin: 3_600_000,
      deliveryDateUnit: 'ms',
      maxConcurrent: 16,
      ...choices.settings,
    },
    client: () => (client ??= createClient({ ...service, clock, onPause: changed, ...choices.client })),
    space: `${choices.id ?? 'test-environment'}/${choices.service ?? 'sandbox'}/${service.baseUrl}`,
    trouble: undefined,
    get pausedUntil() {
      return client?.limits.pausedUntil ?? 0;
    },
    isStoreLost: false,
    mayText: async () => undefined,
    otherUses: () => [],
    onStore: () => () => undefined,
    elsewhere: async () => ({ stores: [], onStore: () => () => undefined }),
    tellOthers: () => undefined,
    onControl: () => () => undefined,
    addPending: () => () => undefined,
    memory: () => memoryFor(service.baseUrl),
    store: () => (store ??= choices.store ?? createMemoryStore()),
    async isBlocked(phone, isOwnEnough) {
      if (isOwnEnough) return (await (await ownListOf(this)).getOwn(phone)) !== undefined;
      return (await (await doNotTextOf(this)).get(phone)) !== undefined;
    },
    advisors: () => advisors,
    advisorState: (advisor) =>
      choices.service === 'simulator' || advisors.includes(advisor) ? 'authorized' : 'unknown',
    advisorList: async () =>
      advisors.map((advisor) => ({
        advisor,
        state: 'authorized',
        identity: null,
        scopes: [],
        missingScopes: [],
        expiresAt: null,
        refreshedAt: null,
      })),
    authorizationLink: async () => undefined,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    keepStoreOpen: () => () => undefined,
    changed,
    close: async () => client?.close(),
  };
  return environment;
};
