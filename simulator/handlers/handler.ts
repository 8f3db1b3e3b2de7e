import type { ContractRequest, OperationName } from '../contract/declaration';
import type { FailureReason } from '../contract/wire';
import type { Account } from '../state/account';
import type { State } from '../state/state';

export interface EndpointReply {
  /** Without a body, the answer is a 204. */
  readonly body?: object;
  /** The outcome in the ledger. */
  readonly outcome: string;
  readonly messageId?: number | null;
  /** The reasons why recipients were not texted, for a service that has `failureDetails`. */
  readonly reasons?: readonly FailureReason[];
}

/** Carries out one endpoint for one advisor; throws a Refusal where the contract has an error. */
export type EndpointHandler<N extends OperationName> = (
  request: ContractRequest<N>,
  account: Account,
  state: State,
) => EndpointReply;

/** The page size of a search that names none. */
export const defaultPageSize = 50;
