import type { Clock } from '../service/clock';
import type { Client } from '../service/types';
import type { Store } from '../state/store';
import { Asked } from './asked';
import type { Warn } from './trouble';
import { Waits } from './waits';

/** What is needed of an environment. */
interface Surroundings {
  readonly id: string;
  readonly clock: Clock;
  readonly settings: { readonly maxConcurrent: number };
  client(): Client | Promise<Client>;
  store(): Store | Promise<Store>;
}

export interface Consent {
  readonly waits: Waits;
  readonly asked: Asked;
  readonly isDurable: boolean;
}

const opened = new WeakMap<Surroundings, Promise<Consent>>();

const open = async (environment: Surroundings, warn: Warn): Promise<Consent> => {
  const { id, clock, settings } = environment;
  const store = await environment.store();
  return {
    waits: new Waits({
      environment: id,
      store,
      clock,
      warn,
      client: () => environment.client(),
      concurrency: settings.maxConcurrent,
    }),
    asked: new Asked({ store, clock, environment: id }),
    isDurable: store.durable,
  };
};

/** The waits and the asked-when of an environment: the same for all its nodes. */
export const consentOf = (environment: Surroundings, warn: Warn): Promise<Consent> => {
  const found = opened.get(environment);
  if (found) return found;
  const opening = open(environment, warn);
  opened.set(environment, opening);
  opening.catch(() => opened.delete(environment));
  return opening;
};
