import type { RunningNode } from './red';
import type { TextHours } from '../guards/text-hours';
import type { Client } from '../service/types';
import type { ServiceError } from '../service/errors';
import type { Clock } from '../service/clock';
import type { Store } from '../state/store';

export interface EnvironmentSettings {
  /** Region for numbers not written with +; empty means E.164 only. */
  readonly country: string;
  /** IANA zone in which dates without one are read; empty means that of the process. */
  readonly timeZone: string;
  /** When people may be texted, by their own clocks; undefined at any time. */
  readonly textHours?: (TextHours & { readonly outside: 'hold' | 'fail' }) | undefined;
  /** A regular expression in place of the word `consent`; empty means the default. */
  readonly consentPattern: string;
  readonly journal: boolean;
  /** Milliseconds. */
  readonly resumeWithin: number;
  readonly deliveryDateUnit: 'ms' | 's';
  readonly maxConcurrent: number;
}

/** What it returns resolves, for `gone`, when nothing is under way there any more. */
export type StoreListener = (view: Environment, kind: 'orphan' | 'gone' | 'own') => void | Promise<void>;

/** `view` is that of a process that ended, whose work is meant; without one, it is what this process has itself. */
export type OrderListener = (
  order: Readonly<Record<string, unknown>>,
  at: number,
  view: Environment | undefined,
) => boolean;

export interface AdvisorItem {
  readonly advisor: string;
  readonly state: 'authorized' | 'authorize_again' | 'confirm';
  readonly identity: string | null;
  readonly scopes: readonly string[];
  readonly missingScopes: readonly string[];
  readonly expiresAt: number | null;
  readonly refreshedAt: number | null;
}

/** What a flow node sees of its `advisor-environment`. */
export interface Environment {
  /** The config node's id in the editor (`_alias` in a subflow): state is kept under it. */
  readonly id: string;
  readonly name: string;
  readonly service: 'simulator' | 'sandbox' | 'production';
  /** In `simulator` the simulator's own, which can be moved; else the system's. */
  readonly clock: Clock;
  readonly settings: EnvironmentSettings;
  /** A setting has a value that it may not have: nobody is texted. */
  readonly fault?: ServiceError | undefined;
  /** The same where the store is not the one that is meant: nothing is looked up or put on record in it. */
  readonly storeFault?: ServiceError | undefined;
  /** Throws ServiceError `not_configured` with what to fill in. One client per environment, whoever asks. */
  client(): Client | Promise<Client>;
  /** This environment and the service it points to: whatever was accepted belongs there. Throws `not_configured`. */
  readonly space: string;
  /** Where waits and sends are kept (in memory where they cannot be kept on disk). One per runtime, whoever asks. */
  store(): Store | Promise<Store>;
  /** Whether somebody is on the do-not-text list. */
  isBlocked(phone: string): Promise<boolean>;
  /** Why nothing can be put on record at the moment. */
  readonly trouble: string | undefined;
  /** Where sends are kept without `journal`: it outlives a deploy, and not the process. */
  memory(): Store;
  /**
   * Keys of the advisors who authorized, also those who have to do so again: of two, one is never "the only one". In
   * `simulator` every key is authorized and this is `['default']`. Throws `not_configured` as `client` does.
   */
  advisors(): readonly string[];
  /** In `simulator` always `authorized`. Throws `not_configured` as `client` does. */
  advisorState(advisor: string): 'authorized' | 'authorize_again' | 'unknown';
  /** Until when the token endpoint is left alone; 0 when it is not. */
  readonly tokensPausedUntil?: number;
  /** Until it is known who has authorized; undefined from then on. Messages wait for it. */
  readonly opening?: Promise<void> | undefined;
  /** The advisors as they are shown: without a secret. Throws `not_configured` as `client` does. */
  advisorList(): Promise<readonly AdvisorItem[]>;
  /** A link to authorize by, valid for seven days; undefined where none can be made. */
  authorizationLink(advisor: string): Promise<string | undefined>;
  /**
   * Called with this environment as it is over another store: what a process that ended has left (`orphan`), which a node
   * goes on with beside its own, until that is done or another process has it (`gone`); or, when its own was lost to
   * another process, a new one in its place.
   */
  onStore?(listener: StoreListener): () => void;
  /** Has the same node of other processes, and of what those that ended have left, obey an order as well. */
  tellOthers?(node: string, order: Readonly<Record<string, unknown>>): void;
  /** Called with an order to a node that another process was given; false when it cannot be carried out yet. */
  onOrder?(node: string, listener: OrderListener): () => void;
  /** It is this environment over what another process has: to be read alone. */
  readonly isElsewhere?: boolean;
  /** The same environment once more: in other uses of a subflow, and over other stores, also those of other processes. */
  peers?(): readonly Environment[];
  /** A node says how much it has accepted and not ended; returns what takes that back. */
  addPending(node: Pick<RunningNode, 'id' | '_path'>, count: () => number | Promise<number>): () => void;
  /** Called when an authorization, a pause or the configuration changes, so that statuses can follow. */
  onChange(listener: () => void): () => void;
  /**
   * Keeps the store open until it is released: a node closes beside its environment, and has yet to put on record what
   * was under way.
   */
  hold(): () => void;
}
