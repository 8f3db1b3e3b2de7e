export interface NodeName {
  readonly id: string;
  readonly name: string;
}

/** Somebody whose consent is waited for. All times are milliseconds since the epoch. */
export interface WaitItem {
  readonly id: string;
  readonly node: NodeName;
  /** Null when the wait is for a member. */
  readonly phone: string | null;
  readonly memberId?: number | string;
  /** As the recipient object or the contact in the message called them; not there when neither did. */
  readonly name?: string;
  readonly advisor: string;
  readonly since: number;
  /** Null while its node does not run. */
  readonly next: number | null;
  readonly until: number;
}

/** Something that was accepted and has not ended. */
export interface QueueItem {
  readonly id: string;
  readonly node: NodeName;
  readonly phone: string | null;
  readonly advisor: string;
  readonly since: number;
  readonly state: 'queued' | 'held' | 'sending';
  readonly notBefore: number | null;
  /** The id of the list it is of. */
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
  /** What the service said. */
  readonly detail: string | null;
  readonly traceId: string | null;
}

/** A part of a list, as the service gives its own. */
export interface Listed<T> {
  readonly data: readonly T[];
  readonly pageInfo: {
    readonly page: number;
    readonly pageSize: number;
    /** Null when not all was read. */
    readonly totalRecord: number | null;
  };
}
