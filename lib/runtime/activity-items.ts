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
  /** As that of a wait. */
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

/** A number on the do-not-text list. */
export interface BlockedItem {
  readonly phone: string;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly reason: string | null;
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
