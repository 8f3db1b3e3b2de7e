import { z } from 'zod';
import { phoneNumber } from '../contract/rules';
import { magicOf } from '../magic';
import { Refusal } from '../problem';
import type { Habits } from '../profiles';
import { memberIdOf } from '../state/account';
import { consentStateOf } from '../state/line';
import { sourceOf } from '../state/seed';
import { endpoint } from './endpoint';
import { second } from '../../lib/durations';

const message = z.object({
  text: z.string(),
  phone: phoneNumber,
  scheduleDelivery: z.boolean().optional(),
  deliveryDate: z.number().optional(),
  frequency: z.int().optional(),
});

/**
 * The contract does not show the unit of `deliveryDate` (*Resources and their fields*, Gaps). A smaller number is a
 * date in seconds before the year 5138.
 */
const smallestMilliseconds = 1e11;

const scheduledFor = (
  { scheduleDelivery, deliveryDate }: z.output<typeof message>,
  { deliveryDateUnit }: Habits,
): number | null => {
  if (scheduleDelivery !== true) return null;
  if (deliveryDate === undefined) {
    throw new Refusal('invalid_request', 'A scheduled send needs a deliveryDate.');
  }
  const unit = deliveryDate < smallestMilliseconds ? 's' : 'ms';
  if (deliveryDateUnit !== 'either' && deliveryDateUnit !== unit) {
    const wanted = deliveryDateUnit === 's' ? 'seconds' : 'milliseconds';
    throw new Refusal('invalid_request', `deliveryDate must be in ${wanted} since 1970.`);
  }
  return unit === 's' ? deliveryDate * second : deliveryDate;
};

export const sendMessage = endpoint({
  method: 'POST',
  path: '/text/messaging/messages',
  scope: 'text.messaging.write',
  body: message,
  handle({ body }, account, { settings }) {
    const { phone, text } = body;
    const when = scheduledFor(body, settings.habits);
    const contact = account.contactFor(phone);
    const line = account.line(contact, phone);
    const { refusal, disbelieved = false } = magicOf(phone) ?? {};
    if (refusal !== undefined) {
      const failures = [`${phone}: ${refusal}.`];
      return {
        body: { successes: [], failures },
        outcome: 'rejected',
        reasons: [{ phone, code: 'undeliverable' }],
      };
    }
    if (settings.consentRequired && (disbelieved || consentStateOf(line) !== 'accepted')) {
      const failures = [`${phone}: the member has not consented to receive texts.`];
      const reasons = [{ phone, code: 'consent_required' }];
      return { body: { successes: [], failures }, outcome: 'not-consented', reasons };
    }
    const messageId = account.deliver(line, text, when);
    const successes = [{ messageId, memberId: memberIdOf(contact.contactId) }];
    const outcome = when === null ? 'sent' : 'scheduled';
    return { body: { successes, failures: [] }, outcome, messageId, reasons: [] };
  },
});

export const requestConsent = endpoint({
  method: 'POST',
  path: '/text/messaging/consent-requests',
  scope: 'text.messaging.write',
  body: z.object({ phoneNumbers: z.array(phoneNumber).min(1) }),
  handle({ body }, account, { settings }) {
    if (!settings.consentConfigured) {
      throw new Refusal(
        'conflict',
        "The advisor's account is not configured for consent collection. Contact the operator.",
      );
    }
    const phones = [...new Set(body.phoneNumbers)];
    const accepted = phones.filter((phone) => {
      // A magic number with an error shows it here too, and is asked when the error is over.
      if (magicOf(phone)?.effect !== undefined) return false;
      const contact = account.knownContact(phone);
      return contact !== undefined && consentStateOf(account.line(contact, phone)) === 'accepted';
    });
    if (accepted.length > 0) {
      throw new Refusal('invalid_request', `Consent is already accepted for ${accepted.join(', ')}.`);
    }
    const successes: { memberId: number; consentState: string }[] = [];
    const failures: string[] = [];
    for (const phone of phones) {
      const contact = account.contactFor(phone);
      const refusal = magicOf(phone)?.refusal;
      if (refusal !== undefined) failures.push(`${phone}: ${refusal}.`);
      else {
        const consentState = account.ask(account.line(contact, phone));
        successes.push({ memberId: memberIdOf(contact.contactId), consentState });
      }
    }
    return { body: { successes, failures }, outcome: successes.length > 0 ? 'asked' : 'rejected' };
  },
});

const noContact = (): Refusal =>
  new Refusal('not_found', "No contact on the advisor's account has that phone number.");

export const getConsent = endpoint({
  method: 'GET',
  path: '/text/messaging/consents',
  scope: 'text.messaging.read',
  query: z.object({ phone: phoneNumber.optional(), memberId: z.int().optional() }),
  handle({ query }, account, { settings, clock }) {
    const { phone: given, memberId } = query;
    if (given === undefined && memberId === undefined) {
      throw new Refusal('invalid_request', 'Give a phone or a memberId.');
    }
    const phone = given ?? account.phoneOfMember(memberId ?? 0);
    const contact = phone === undefined ? undefined : account.knownContact(phone);
    if (phone === undefined || contact === undefined) throw noContact();
    const line = account.line(contact, phone);
    const isMadeLater = contact.source === sourceOf.texting && line.asked && line.answer === null;
    if (isMadeLater && clock.now() < line.lastChanged + settings.habits.contactDelay * second)
      throw noContact();
    const state = account.check(line);
    return {
      body: { memberId: memberIdOf(contact.contactId), state, lastChanged: line.lastChanged },
      outcome: state,
    };
  },
});
