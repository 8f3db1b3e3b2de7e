/** The topic on which every editor hears where something has changed, but not what. */
export const changedTopic = 'advisor-texting/changed';

export interface ChangeNews {
  /** One more than that of the news before: an editor that sees a gap has missed some. */
  readonly number: number;
  /** The ids of the environments in which something may have changed. */
  readonly environments: readonly string[];
}

export interface NodeName {
  readonly id: string;
  readonly name: string;
}

/** A wait for somebody's consent. All times are epoch milliseconds. */
export interface WaitItem {
  readonly id: string;
  readonly node: NodeName;
  /** Null when the wait is for a member. */
  readonly phone: string | null;
  readonly memberId?: number | string;
  /** The name in the recipient object, or in the contact or payload of the message, where it has one. */
  readonly name?: string;
  readonly advisor: string;
  readonly since: number;
  /** Null while the node of the wait does not run. */
  readonly next: number | null;
  readonly until: number;
}

/** A recipient that was accepted and has not ended. */
export interface QueueItem {
  readonly id: string;
  readonly node: NodeName;
  readonly phone: string | null;
  readonly name?: string;
  readonly advisor: string;
  readonly since: number;
  readonly state: 'queued' | 'held' | 'sending';
  readonly notBefore: number | null;
  /** The id of the list that the item belongs to. */
  readonly list: string | null;
}

export interface ListItem {
  readonly id: string;
  readonly node: NodeName;
  readonly advisor: string;
  readonly since: number;
  readonly total: number;
  readonly done: number;
}

export interface Failure {
  readonly at: number;
  readonly node: NodeName;
  readonly phone: string | null;
  readonly advisor: string | null;
  readonly code: string;
  /** The problem's `detail`, in the service's own words. */
  readonly detail: string | null;
  readonly traceId: string | null;
}

export interface BlockedItem {
  readonly phone: string;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly reason: string | null;
}

export interface AdvisorItem {
  readonly advisor: string;
  readonly state: 'authorized' | 'authorize_again' | 'confirm';
  readonly identity: string | null;
  readonly scopes: readonly string[];
  readonly missingScopes: readonly string[];
  readonly expiresAt: number | null;
  readonly refreshedAt: number | null;
}

export interface ServiceState {
  /** Null while nothing says which service it is, such as an environment variable that is not set. */
  readonly service: 'simulator' | 'sandbox' | 'production' | null;
  readonly pausedUntil: number | null;
  readonly store: 'embedded' | 'postgres' | 'memory' | null;
  /** Milliseconds. */
  readonly lateBy: number;
  /** Null when the number is unknown. */
  readonly queued: number | null;
  /** What must be done before the state can move to the database. */
  readonly left: { readonly items: number; readonly waits: number } | null;
  /** How many texts and waits pause because their node or environment does not run. */
  readonly paused: number;
  readonly trouble: string | null;
  readonly isStoreLost: boolean;
  /** What must be filled in before anything can be done. */
  readonly fault: string | null;
  readonly clock: number | null;
  readonly mayWrite: boolean;
}

/** A page of a list, in the shape of the service's own (contract, *Page wrapper*). */
export interface Listed<T> {
  readonly data: readonly T[];
  readonly pageInfo: {
    readonly page: number;
    readonly pageSize: number;
    /** Null when the list was not read to its end. */
    readonly totalRecord: number | null;
  };
}
