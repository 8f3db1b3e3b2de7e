import { consentOf, type Consent } from '../../lib/consent/consent';
import { consentStatusOf } from '../../lib/consent/consent-status';
import {
  ConsentLimit,
  type RequestReply,
  type RequestResult,
  type RequestRules,
} from '../../lib/consent/request-history';
import type { Mutable } from '../../lib/mutable';
import { flowNode, type Handler, type Tools } from '../../lib/runtime/flow-node';
import { nodeError } from '../../lib/runtime/errors';
import { failedOutcome, type Outcome } from '../../lib/runtime/outcomes';
import { ServiceError } from '../../lib/service/errors';
import type { GuardedTurn } from '../../lib/texting/guard-chain';
import {
  readWith,
  RecipientNode,
  withOwnAdvisor,
  type RecipientTurn,
} from '../../lib/texting/recipient-node';
import { recipientsOf, type Recipient, type TextingOrder } from '../../lib/texting/recipients';
import { hour } from '../../lib/durations';
import { spec } from './spec';

interface RequestOrder extends TextingOrder {
  /** In a dry run: the message comes from a check that did not find consent. */
  readonly isRoundTrip?: true;
}

type RequestTurn = GuardedTurn<Recipient, RequestOrder>;

/**
 * The service answers `invalid_request` also when the number has accepted already (contract, *Errors*). The consent
 * status tells which it is.
 */
const ifAccepted = async (
  fault: unknown,
  phone: string,
  { client, shared: { advisor }, signal }: RecipientTurn,
  { waits }: Consent,
): Promise<RequestReply> => {
  if (!(fault instanceof ServiceError) || fault.code !== 'invalid_request') throw fault;
  let status;
  try {
    const answer = await client.call('getConsent', { query: { phone } }, { advisor, signal });
    status = consentStatusOf(answer.data);
  } catch {
    throw fault;
  }
  if (status.state !== 'accepted') throw fault;
  await waits.accepted(advisor, { phone }, status);
  return { memberId: status.memberId, consentState: status.state, requested: false };
};

const request = async (
  phone: string,
  turn: RecipientTurn,
  lane: string,
  consent: Consent,
): Promise<RequestReply> => {
  const {
    client,
    shared: { advisor },
    signal,
    begin,
    undo,
    permit,
  } = turn;
  try {
    const answer = await client.call(
      'requestConsent',
      { body: { phoneNumbers: [phone] } },
      { advisor, lane, signal, begin, undo, permit },
    );
    const { attempts } = answer;
    const success = answer.data.successes?.[0];
    if (success)
      return {
        memberId: success.memberId ?? null,
        consentState: success.consentState ?? null,
        requested: true,
      };
    const detail = answer.data.failures?.[0];
    if (detail === undefined) throw nodeError('invalid_response', 'no_outcome', {}, { attempts });
    throw nodeError('rejected', 'rejected', { said: detail }, { detail, attempts });
  } catch (fault) {
    return ifAccepted(fault, phone, turn, consent);
  }
};

const asked = ({ memberId, consentState, requested, requestedAt }: RequestResult, more = {}): Outcome => ({
  port: 0,
  payload: { memberId, consentState, requested, requestedAt, ...more },
});

/** A dry run: nobody is asked. The outcome follows from the record of earlier requests. */
const preview = async (
  { environment, shared, item, notBefore }: RequestTurn,
  rules: RequestRules,
): Promise<Outcome> => {
  // A dry run never leads to consent: to ask again would go round the loop for ever.
  if (shared.isRoundTrip) return failedOutcome(nodeError('cancelled', 'dry_run_round').problem);
  const { history } = await consentOf(environment);
  const result = await history.preview(shared.advisor, item.phone ?? '', rules);
  return asked(result, notBefore === undefined ? {} : { notBefore });
};

/** Turns the error of a limit into a sentence. */
const withLimit = async <T>(outcome: Promise<T>): Promise<T> => {
  try {
    return await outcome;
  } catch (fault) {
    if (fault instanceof ConsentLimit)
      throw nodeError('consent_limit', 'consent_limit', { count: fault.count });
    throw fault;
  }
};

const handler = (tools: Tools): Handler => {
  const source = tools.source('phone');
  const rules = { every: tools.plain.number('every') * hour, limit: tools.plain.number('limit') };
  const work = async (turn: RequestTurn): Promise<Outcome> => {
    const { phone = '' } = turn.item;
    const consent = await consentOf(turn.environment);
    if (!consent.store.durable) tools.markUnsaved();
    const result = await consent.history.ask(turn.shared.advisor, phone, rules, (begin, undo, leave) => {
      const both = {
        begin: async () => {
          await Promise.all([turn.begin(), begin()]);
        },
        undo: async () => {
          await Promise.all([turn.undo(), undo()]);
        },
        permit: async () => {
          const ended = await turn.permit?.();
          await leave();
          return ended ?? (() => undefined);
        },
      };
      return request(phone, { ...turn, ...both }, tools.node.id, consent);
    });
    return asked(result);
  };
  const known = async ({ environment, shared, item }: RequestTurn): Promise<Outcome | undefined> => {
    if (shared.isRoundTrip) return undefined;
    const { history } = await consentOf(environment);
    const result = await history.known(shared.advisor, item.phone ?? '', rules);
    return result && asked(result);
  };

  return new RecipientNode<Recipient, RequestOrder>(tools, {
    source,
    read: readWith(
      tools,
      source,
      (value, rules) => recipientsOf(value, source.where, rules, withOwnAdvisor(tools)),
      (shared: Mutable<RequestOrder>, msg) => {
        if (shared.dryRun && msg.outcome === 'notAccepted') shared.isRoundTrip = true;
      },
    ),
    guards: {
      hours: tools.plain.text('hours') === 'any' ? 'any' : 'environment',
      outcomeWithoutRequest: (turn) => withLimit(known(turn)),
    },
    work: (turn) => withLimit(turn.shared.dryRun ? preview(turn, rules) : work(turn)),
    statusTexts: {
      first: (payload) => {
        const { requested, requestedAt } = payload as Pick<RequestResult, 'requested' | 'requestedAt'>;
        if (requested) return 'status.asked';
        // No request was made, and none from here before: the service says that the number has accepted.
        return requestedAt === null ? 'status.acceptedBefore' : 'status.askedBefore';
      },
    },
  });
};

export const create = flowNode(spec, handler);
