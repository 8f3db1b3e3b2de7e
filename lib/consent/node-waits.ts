import type { Survey } from './owner';
import type { Pace } from './schedule';
import type { Subject } from './subjects';

export interface NewWait {
  readonly advisor: string;
  readonly subject: Subject;
  /** What the node needs besides, when the wait ends. */
  readonly context?: unknown;
}

/** The waits of one node. */
export interface NodeWaits {
  /** Resolves when what was waiting before a restart or a deploy waits again. */
  readonly ready: Promise<void>;
  /**
   * The waits that one message begins. They and the message are on disk when this resolves, with the embedded store
   * already when it returns. Gives their ids, in order.
   */
  add(
    message: Record<string, unknown>,
    waits: readonly NewWait[],
    pace: Pace,
    /** What the node needs besides, for the waits of this message. */
    about?: unknown,
  ): Promise<readonly string[]>;
  /** Ends waits with `cancelled`: all, or those for a number. What is still to be read is meant, too. */
  reset(phone?: string): void;
  /** Looks now: all, or those for a number; at what is still to be read, as soon as it is. */
  flush(phone?: string): void;
  readonly count: number;
  /** Goes through all of them: for a status, not for every message. */
  survey(): Survey;
  /** The node closes: nothing of it settles any more, and everything stays on disk. Resolves when that is in order. */
  detach(): Promise<void>;
}
