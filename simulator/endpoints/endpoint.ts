import type { z } from 'zod';
import type { Clock } from '../../lib/service/clock';
import type { ParamNames } from '../../lib/service/endpoints';
import type { Scope } from '../contract/rules';
import type { FailureReason } from '../contract/wire';
import type { Account } from '../state/account';
import type { Settings } from '../state/settings';

/** What a request asks for, once it has passed the rules of its endpoint. */
export interface ContractRequest {
  /** The ids in the path, by their names there. */
  readonly params: Readonly<Record<string, number>>;
  readonly query: unknown;
  readonly body: unknown;
}

export interface EndpointReply {
  /** Without a body, the answer is a 204. */
  readonly body?: object;
  /** The outcome in the ledger. */
  readonly outcome: string;
  readonly messageId?: number | null;
  /** For a send: the reasons why recipients were not texted, for a service that has `failureDetails`. */
  readonly reasons?: readonly FailureReason[];
}

/** What endpoints need from the simulator around an account. */
export interface EndpointContext {
  readonly clock: Clock;
  readonly settings: Settings;
}

/** The path below the base address, with the contract's stand-in for the first segment. */
type Path = `/${'core' | 'text'}/${string}`;

export interface Endpoint<Request = ContractRequest> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: Path;
  readonly scope: Scope;
  readonly query?: z.ZodObject;
  /** The name of a search whose parameters may have their own names, as in `contacts.page`. */
  readonly search?: string;
  readonly body?: z.ZodType;
  /** In other bodies, digits that look like an id of this service are a person's. */
  readonly hasIdsInBody?: true;
  /** Carries out a request for one advisor; throws a Refusal if the contract has an error. */
  handle(request: Request, account: Account, around: EndpointContext): EndpointReply;
}

interface RequestOf<P extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly params: Readonly<Record<ParamNames<P>, number>>;
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
}

/**
 * An endpoint as the simulator reads the contract, with what it does. The client has its own reading of the contract
 * (lib/service): with only one, both sides would share its mistakes and no test could find them. A test compares the
 * two and names each difference.
 */
export const endpoint = <
  const P extends Path,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodUndefined,
>(
  declared: Endpoint<RequestOf<P, Q, B>> & { readonly path: P; readonly query?: Q; readonly body?: B },
): Endpoint => declared;
