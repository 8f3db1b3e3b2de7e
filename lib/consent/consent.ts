import type { Clock } from '../service/clock';
import type { Client } from '../service/client';
import { itemIn } from '../outbox/records';
import { ageClock, key, type Operation, type Store, type StoreCommand } from '../state/store';
import type { ConsentStatus, WaitOutcome } from './consent-status';
import { RequestHistory } from './request-history';
import { WaitEntries } from './wait-entries';
import { Waits, type Subject, type Wait } from './waits';

/** The parts of an environment that are used here. */
interface ConsentEnvironment {
  readonly service: string;
  readonly space: string;
  readonly clock: Clock;
  readonly settings: { readonly maxConcurrent: number };
  client(): Client | Promise<Client>;
  store(): Store | Promise<Store>;
  isBlocked(phone: string): Promise<boolean>;
}

/** A node whose waits are polled. */
export interface Waiter {
  end(item: Buffer, wait: Wait, outcome: WaitOutcome, removals: readonly Operation[]): Promise<void>;
  /** Called when polls no longer find the entries of a wait. */
  restore(item: Buffer): Promise<unknown>;
  changed(): void;
  /** Ends one wait as cancelled; false when there is none. */
  cancel(item: Buffer): Promise<boolean>;
  /** Polls one wait now; false when there is none. */
  check(item: Buffer): Promise<boolean>;
}

/** Tells other processes of an acceptance that this one has seen. */
interface AcceptedCommand extends StoreCommand {
  readonly kind: 'accepted';
  readonly advisor: string;
  readonly subject: Subject;
  readonly status: ConsentStatus;
}

export const isAcceptedCommand = (command: StoreCommand): command is AcceptedCommand =>
  command.kind === 'accepted';

/** The waits and the request history of an environment: the same for all its nodes. */
export class Consent {
  readonly waits: Waits;
  readonly history: RequestHistory;
  private readonly waiters = new Map<string, Waiter>();

  private constructor(
    private readonly environment: ConsentEnvironment,
    readonly store: Store,
    readonly clock: Clock,
  ) {
    this.waits = this.waitsIn(environment.space);
    this.history = new RequestHistory({
      store,
      space: key(environment.space),
      clock,
      wallTime: () => environment.clock.now(),
    });
  }

  static async open(environment: ConsentEnvironment): Promise<Consent> {
    const store = await environment.store();
    return new Consent(environment, store, ageClock(environment, store));
  }

  /**
   * The waits at a service. Waits at a service that the environment pointed to before can be found, but are never
   * polled.
   */
  waitsAt(space: string): Waits {
    return space === this.environment.space ? this.waits : this.waitsIn(space);
  }

  /** Polls the waits of a node from now on; the result ends that. */
  attach(node: string, waiter: Waiter): () => void {
    if (this.waiters.size === 0) this.waits.start();
    this.waiters.set(node, waiter);
    this.waits.lookForBlocked();
    return () => {
      this.waiters.delete(node);
      if (this.waiters.size === 0) this.waits.stop();
    };
  }

  /** The running node that one of these waits belongs to. */
  waiterOf(item: Buffer): Waiter | undefined {
    return this.waiters.get(itemIn(item).node);
  }

  /** Called when another process has seen an acceptance. */
  heard({ advisor, subject, status }: AcceptedCommand): Promise<void> {
    return this.waits.accepted(advisor, subject, status, true);
  }

  /** Tells other processes: they end their waits for the same number or member too. */
  private async tellOthers(advisor: string, subject: Subject, status: ConsentStatus): Promise<void> {
    const { memberId } = status;
    const subjects: readonly Subject[] =
      'phone' in subject && memberId !== null ? [subject, { memberId }] : [subject];
    const command: AcceptedCommand = { kind: 'accepted', at: this.store.now(), advisor, subject, status };
    await Promise.all(
      (this.store.peers?.others() ?? []).map(async (store) => {
        const entries = new WaitEntries(store, key(this.environment.space));
        if (await entries.hasAny(advisor, subjects)) await store.peers?.tellHolder(command);
      }),
    );
  }

  private waitsIn(space: string): Waits {
    return new Waits({
      store: this.store,
      space: key(space),
      clock: this.clock,
      client: () => this.environment.client(),
      concurrency: this.environment.settings.maxConcurrent,
      isBlocked: (phone) => this.environment.isBlocked(phone),
      isWanted: (item) => this.waiters.has(itemIn(item).node),
      ended: async (wait, outcome, removals) => {
        await this.waiters.get(itemIn(wait.item).node)?.end(wait.item, wait, outcome, removals);
      },
      missing: async (item) => {
        await this.waiters.get(itemIn(item).node)?.restore(item);
      },
      acceptedHere: (...seen) => {
        // A process that does not hear of it sees the acceptance with its next poll.
        this.tellOthers(...seen).catch(() => undefined);
      },
      changed: () => {
        for (const waiter of this.waiters.values()) waiter.changed();
      },
    });
  }
}

const consents = new WeakMap<ConsentEnvironment, Promise<Consent>>();

export const consentOf = (environment: ConsentEnvironment): Promise<Consent> => {
  const found = consents.get(environment);
  if (found) return found;
  const opening = Consent.open(environment);
  consents.set(environment, opening);
  opening.catch(() => consents.delete(environment));
  return opening;
};
