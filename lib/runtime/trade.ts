import type { Client } from '../service/types';
import type { Environment } from './environment';
import type { Outcome } from './outcomes';

/** What holds for all items of one message. */
export interface Order {
  readonly advisor: string;
  /** An array came in: the id of its sequence, and the message property that holds the list. */
  readonly list?: { readonly id: string; readonly shared?: string };
}

/** One item's turn. */
export interface Turn<T, O> {
  readonly environment: Environment;
  readonly client: Client;
  readonly order: O;
  readonly item: T;
  /** Aborts when what has not begun is cancelled. */
  readonly signal: AbortSignal;
  /** Awaited before a request leaves that must not be made twice. */
  readonly begin: () => Promise<void>;
}

export interface Trade<T, O> {
  /** Gives the outcome; what it throws becomes a failure. */
  readonly work: (turn: Turn<T, O>) => Promise<Outcome>;
  /** Adds the fields a node writes as used. */
  readonly dress: (outcome: Outcome, order: O, item: T) => Outcome;
  readonly cancelled: () => Outcome;
  /** With the last of a list goes how many of it have failed. */
  readonly told: (outcome: Outcome, failed?: number) => void;
}
