import type { Asked, OperationName } from '../contract/declaration';
import type { Reason } from '../contract/wire';
import type { Account } from '../state/account';
import type { State } from '../state/state';

export interface Reply {
  /** Without a body the answer is 204. */
  readonly body?: object;
  /** What the ledger calls it. */
  readonly outcome: string;
  readonly messageId?: number | null;
  /** Why recipients of a send were not texted, for a service that has `failureDetails`. */
  readonly reasons?: readonly Reason[];
}

/** Carries out one endpoint for one advisor; throws a Refusal where the contract has an error. */
export type Handler<N extends OperationName> = (request: Asked<N>, account: Account, state: State) => Reply;

/** Records on a page of a search that names no size. */
export const defaultPageSize = 50;
