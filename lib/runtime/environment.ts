import type { AdvisorItem } from './activity-items';
import type { RunningNode } from './red';
import type { Pending } from '../outbox/queue-reader';
import type { Client } from '../service/client';
import type { ServiceError } from '../service/errors';
import type { Clock } from '../service/clock';
import type { Store } from '../state/store';

/** The hours in which a recipient may be texted, in local time: minutes of the day, `until` exclusive. */
export interface TextHours {
  readonly from: number;
  /** A value before `from` means hours over midnight. */
  readonly until: number;
}

export interface EnvironmentSettings {
  /** The region of numbers that are not written with +; empty means E.164 alone. */
  readonly country: string;
  /** The IANA zone in which dates without a zone are read; empty means the zone of the process. */
  readonly timeZone: string;
  /** The hours in which people may be texted, by their own clocks; undefined means at any time. */
  readonly textHours?: (TextHours & { readonly outside: 'hold' | 'fail' }) | undefined;
  /** A regular expression in place of the word `consent`; empty means the default. */
  readonly consentPattern: string;
  readonly journal: boolean;
  /** Milliseconds. */
  readonly resumeWithin: number;
  readonly deliveryDateUnit: 'ms' | 's';
  readonly maxConcurrent: number;
}

/** For `gone`, the result resolves when nothing is under way in that store any more. */
export type StoreListener = (store: Store, kind: 'orphan' | 'gone' | 'own') => void | Promise<void>;

/** With `orphan`, the message is for the work in the store of a process that ended; without, for that of this process. */
export type ControlListener = (
  message: Readonly<Record<string, unknown>>,
  at: number,
  orphan: Store | undefined,
) => boolean;

/** An `advisor-environment` as a flow node sees it. */
export interface Environment {
  /** The config node's id in the editor (`_alias` in a subflow). State is kept under it. */
  readonly id: string;
  readonly name: string;
  readonly service: 'simulator' | 'sandbox' | 'production';
  /** The system's clock; for `simulator`, the simulator's clock, which can be moved. */
  readonly clock: Clock;
  readonly settings: EnvironmentSettings;
  /** The fault of a setting with a wrong value: nobody is texted. */
  readonly fault?: ServiceError | undefined;
  /** The fault of a setting that leads to the wrong store: nothing is read or saved. */
  readonly storeFault?: ServiceError | undefined;
  /** Throws ServiceError `not_configured` with what to fill in. An environment has one client. */
  client(): Client | Promise<Client>;
  /** The name of this environment at the service it points to; what was accepted belongs to it. Throws `not_configured`. */
  readonly space: string;
  /** The store of waits and sends, in memory where the disk cannot be used. A runtime has one. */
  store(): Store | Promise<Store>;
  /** The stores of other environments in which the do-not-text list is kept too. */
  otherListStores?(): Promise<readonly Store[]>;
  /** Whether the number is on the do-not-text list; with `isOwnEnough`, on the part of it in the environment's own store. */
  isBlocked(phone: string, isOwnEnough?: boolean): Promise<boolean>;
  /** The reason why nothing can be saved at the moment. */
  readonly trouble: string | undefined;
  /** An empty store was found where this environment had one, and nobody has confirmed it. */
  readonly isStoreLost: boolean;
  /**
   * Resolves when people may be texted: at once, unless the store was lost and nobody has confirmed the empty one.
   * Rejects with `cancelled` when the signal aborts.
   */
  mayText(signal: AbortSignal): Promise<void>;
  /** The store of sends without `journal`. It outlives a deploy, but not the process. */
  memory(): Store;
  /**
   * The keys of all advisors who have authorized, including those who have to do so again: of two advisors, one is
   * never "the only one". For `simulator`, every key is authorized and the result is `['default']`. Throws
   * `not_configured` as `client` does.
   */
  advisors(): readonly string[];
  /** For `simulator`, always `authorized`. Throws `not_configured` as `client` does. */
  advisorState(advisor: string): 'authorized' | 'authorize_again' | 'unknown';
  /** The end of a pause that the service or its token endpoint asked for; 0 when there is none. */
  readonly pausedUntil: number;
  /** Resolves when it is known who has authorized, and is undefined from then on. Messages wait for it. */
  readonly opening?: Promise<void> | undefined;
  /** The advisors as they are shown, without secrets. Throws `not_configured` as `client` does. */
  advisorList(): Promise<readonly AdvisorItem[]>;
  /** A link to authorize with, valid for seven days; undefined where none can be made. */
  authorizationLink(advisor: string): Promise<string | undefined>;
  /**
   * Calls the listener with other stores. `orphan`: that of a process that ended, whose work a node carries on beside
   * its own, until another process has it (`gone`). `own`: a new store that replaces one that was lost to another
   * process.
   */
  onStore(listener: StoreListener): () => void;
  /**
   * Stores of other environments, in which a node that was moved here may have left something: whoever asks closes
   * them. `onStore` is for those that join them.
   */
  elsewhere(): Promise<{
    readonly stores: readonly Promise<Store>[];
    readonly onStore: (listener: StoreListener) => () => void;
  }>;
  /** Gives a control message to the same node in other processes, and in the stores that ended processes have left. */
  tellOthers(node: string, message: Readonly<Record<string, unknown>>): void;
  /**
   * Calls the listener with control messages to a node from other processes; it returns false when the node cannot
   * carry them out yet.
   */
  onControl(node: string, listener: ControlListener): () => void;
  /** The same environment in other uses of a subflow. */
  otherUses(): readonly Environment[];
  /** Registers how many items a node has accepted and not ended; the result takes that back. */
  addPending(node: Pick<RunningNode, 'id' | '_path'>, count: () => Promise<Pending>): () => void;
  /** Calls the listener when an authorization, a pause or the configuration changes, so that statuses can follow. */
  onChange(listener: () => void): () => void;
  /**
   * Keeps the store open until the result is called: a node closes at the same time as its environment, and still has
   * to save what was under way.
   */
  keepStoreOpen(): () => void;
}
