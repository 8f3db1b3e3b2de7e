import type { EndpointName, RequestOf, ResponseOf } from '../../lib/service/endpoints';
import type { Account } from '../state/account';
import type { State } from '../state/state';

export interface Reply<N extends EndpointName> {
  /** Without a body the answer is 204. */
  readonly body?: ResponseOf<N>;
  /** What the ledger calls it. */
  readonly outcome: string;
  readonly messageId?: number | null;
}

/** Carries out one endpoint for one advisor; throws a Refusal where the contract has an error. */
export type Handler<N extends EndpointName> = (
  request: RequestOf<N>,
  account: Account,
  state: State,
) => Reply<N>;
