import { consentOf, type Consent } from '../../lib/consent/consent';
import { consentStatusOf } from '../../lib/consent/consent-status';
import {
  ConsentLimit,
  type RequestReply,
  type RequestResult,
  type RequestRules,
} from '../../lib/consent/request-history';
import { hour } from '../../lib/durations';
import { doNotTextGuard } from '../../lib/guards/do-not-text';
import { textHours, validZone, type TextShared } from '../../lib/guards/text-hours';
import type { Environment } from '../../lib/runtime/environment';
import { failedOutcome } from '../../lib/runtime/errors';
import type { Item, Steps } from '../../lib/outbox/item';
import { itemNode, type Guard, type GuardTools } from '../../lib/runtime/item-node';
import type { Outcome } from '../../lib/outbox/outcome';
import { serviceError, ServiceError } from '../../lib/service/errors';
import { texting, type Recipient } from '../../lib/texting/recipients';
import { spec } from './spec';

interface RequestShared extends TextShared {
  /** In a dry run: the message comes from a check that did not find consent. */
  readonly isRoundTrip?: true;
}

type Request = Item<Recipient, RequestShared>;

/** The result for somebody who has accepted already, by the consent status; else undefined. */
const replyIfAccepted = async (item: Request, consent: Consent): Promise<RequestReply | undefined> => {
  const { phone = '' } = item.data;
  let status;
  try {
    const answer = await item.call('getConsent', { query: { phone } });
    status = consentStatusOf(answer.data);
  } catch {
    return undefined;
  }
  if (status.state !== 'accepted') return undefined;
  if (!item.shared.dryRun) await consent.accepted(item.advisor, { phone }, status);
  return { memberId: status.memberId, consentState: status.state, requested: false };
};

const request = async (
  phone: string,
  item: Request,
  steps: Steps,
  consent: Consent,
): Promise<RequestReply> => {
  try {
    const answer = await item.call('requestConsent', { body: { phoneNumbers: [phone] } }, steps);
    const { attempts } = answer;
    const success = answer.data.successes?.[0];
    const detail = answer.data.failures?.[0];
    const { memberId = null, consentState = null } = success ?? {};
    // There is an entry for each target (contract, *Consent-request result*), perhaps also for one that was refused.
    const isRefused = detail !== undefined && (consentState ?? 'none').toLowerCase() === 'none';
    if (success && !isRefused) return { memberId, consentState, requested: true };
    if (detail === undefined) throw serviceError('invalid_response', 'no_outcome', {}, { attempts });
    throw serviceError('rejected', 'rejected', { said: detail }, { detail, attempts });
  } catch (fault) {
    // The service also answers so when the number has already accepted (contract, *Errors*).
    const isInvalid = fault instanceof ServiceError && fault.code === 'invalid_request';
    const reply = isInvalid ? await replyIfAccepted(item, consent) : undefined;
    if (!reply) throw fault;
    return reply;
  }
};

const asked = (
  { memberId, consentState, requested, requestedAt }: RequestResult,
  more = {},
  isCounted = requested,
): Outcome => ({
  port: 0,
  payload: { memberId, consentState, requested, requestedAt, ...more },
  ...(!isCounted && { alreadySent: true }),
});

/** A dry run: nobody is asked. The outcome follows from the record of earlier requests. */
const preview = async (item: Request, environment: Environment, rules: RequestRules): Promise<Outcome> => {
  const { shared, advisor, data, wouldHoldUntil: notBefore } = item;
  // A dry run never leads to consent: asking again would loop forever.
  if (shared.isRoundTrip) return failedOutcome(serviceError('cancelled', 'dry_run_round').problem);
  const { history } = await consentOf(environment, item);
  const result = await history.preview(advisor, data.phone ?? '', rules);
  return asked(result, notBefore === undefined ? {} : { notBefore }, result.isDue);
};

/** Somebody who was asked as often as the limit allows may have accepted since. */
const withLimit = async <T>(
  item: Request,
  environment: Environment,
  outcome: Promise<T>,
): Promise<T | Outcome> => {
  try {
    return await outcome;
  } catch (fault) {
    if (!(fault instanceof ConsentLimit)) throw fault;
    const { count, requestedAt } = fault;
    const reply = await replyIfAccepted(item, await consentOf(environment, item));
    if (!reply) throw serviceError('consent_limit', 'consent_limit', { count });
    return asked({ ...reply, requestedAt });
  }
};

export const create = itemNode<Recipient, RequestShared>(spec, (tools) => {
  const hours = tools.plain.text('hours');
  const rules = { every: tools.plain.number('every') * hour, limit: tools.plain.number('limit') };

  const ask = async (item: Request): Promise<Outcome> => {
    const { phone = '' } = item.data;
    const consent = await consentOf(tools.environment(), item);
    if (!consent.store.engine.durable) tools.status.markUnsaved();
    const result = await consent.history.ask(item.advisor, phone, rules, (steps) =>
      request(phone, item, steps, consent),
    );
    return asked(result);
  };

  /** People who were asked recently are not held until their hours: no request is needed. */
  const askedLately = ({ environment }: GuardTools): Guard<Recipient, RequestShared> => ({
    async pass(item, next) {
      const { shared, advisor, data } = item;
      if (!environment.settings.textHours || hours === 'any' || shared.isRoundTrip) return next();
      const { history } = await consentOf(environment, item);
      const known = history
        .preview(advisor, data.phone ?? '', rules)
        .then((result) => (result.isDue ? undefined : asked(result)));
      return (await withLimit(item, environment, known)) ?? next();
    },
  });

  return {
    ...texting<Recipient, RequestShared>(tools, {
      source: tools.source('phone'),
      share(shared, msg) {
        if (shared.dryRun && msg.outcome === 'notAccepted') shared.isRoundTrip = true;
      },
    }),
    guards: (around) => [
      ...validZone(around, hours),
      doNotTextGuard(around),
      askedLately(around),
      ...textHours(around, hours),
    ],
    work: (item) => {
      const environment = tools.environment();
      const outcome = item.shared.dryRun ? preview(item, environment, rules) : ask(item);
      return withLimit(item, environment, outcome);
    },
    statusTexts: {
      first: (payload) => {
        const { requested, requestedAt } = payload as Pick<RequestResult, 'requested' | 'requestedAt'>;
        if (requested) return 'status.asked';
        // No request was made, and none from here before: the service says that the number has accepted.
        return requestedAt === null ? 'status.acceptedBefore' : 'status.askedBefore';
      },
    },
  };
});
