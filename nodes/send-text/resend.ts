import type { Outcome } from '../../lib/runtime/outcomes';
import { e164 } from '../../lib/contract-values';
import { invalidInput } from '../../lib/runtime/errors';
import { isRecord, isWellFormed } from '../../lib/runtime/kinds';
import type { Message } from '../../lib/runtime/red';
import { notANumber } from '../../lib/texting/recipients';
import type { ListPlace, Text } from './texts';

/** What a message on *needs consent* carries for the send node that it came from. */
export interface Resend {
  readonly node: string;
  readonly phone: string;
  readonly text: string;
  readonly advisor: string;
  /** Milliseconds; undefined for a text that is sent at once. */
  readonly deliveryDate?: number;
  readonly frequency?: number;
  readonly timeZone?: unknown;
  readonly onceKey?: string;
}

/** A flow may have made or changed `msg.resend`: its values are checked as those of the fields are. */
const faultIn = ({ phone, text, advisor, onceKey }: Readonly<Record<string, unknown>>) => {
  const where = (field: string): { readonly where: string } => ({ where: `msg.resend.${field}` });
  if (typeof phone !== 'string' || !e164.test(phone))
    return notANumber(phone, '', { ...where('phone'), list: false });
  if (typeof text !== 'string' || text.trim() === '') return invalidInput('text_kind', where('text'));
  if (!isWellFormed(text)) return invalidInput('text_broken');
  if (typeof advisor !== 'string' || advisor.trim() === '')
    return invalidInput('advisor_value', where('advisor'));
  if (onceKey !== undefined && (typeof onceKey !== 'string' || onceKey === ''))
    return invalidInput('once_key_missing', where('onceKey'));
  return undefined;
};

/** Removes `msg.resend` from the message and returns it, when it names this node. Throws `invalid_input`. */
export const takeResend = (msg: Message, node: string): Resend | undefined => {
  const { resend } = msg;
  if (!isRecord(resend) || resend.node !== node) return undefined;
  const fault = faultIn(resend);
  if (fault) throw fault;
  delete msg.resend;
  return resend as unknown as Resend;
};

const placeOf = ({ parts }: Message): ListPlace | undefined => {
  if (!isRecord(parts)) return undefined;
  const { id, index } = parts;
  return typeof id === 'string' && typeof index === 'number' ? { list: id, index } : undefined;
};

export const textAgain = ({ phone, text, onceKey }: Resend, msg: Message): Text => {
  const place = placeOf(msg);
  const once = onceKey !== undefined && { onceKey };
  return { index: 0, phone, text, cameBack: true, ...(place && { place }), ...once };
};

interface Round {
  /** The index of the text that is sent. */
  readonly sent: number;
  /** The indexes of the texts that have come back in this round. */
  readonly places: Set<number>;
  readonly outcome: Promise<Outcome>;
}

const mostKept = 1000;

/**
 * The latest texts that came back with consent. Of equal texts of one list, the first to come back is sent, and the
 * others leave as its duplicates.
 */
export class ReturnedRecipients {
  private readonly rounds = new Map<string, Round>();

  /** `when` is the delivery date: equal texts with different dates are different texts. */
  send(
    advisor: string,
    { phone, text, place, onceKey }: Text,
    when: unknown,
    send: () => Promise<Outcome>,
  ): Promise<Outcome> {
    if (!place) return send();
    const key = JSON.stringify([advisor, place.list, phone, text, onceKey, when]);
    const round = this.rounds.get(key);
    // A text that was in this round already has gone round the loop again: it begins a new round.
    if (round && !round.places.has(place.index)) {
      round.places.add(place.index);
      return round.outcome.then((outcome) => asDuplicate(outcome, round.sent));
    }
    const outcome = send();
    // The payload is copied, because the flow may change the one that leaves.
    const kept = outcome.then((each) => ({ ...each, payload: { ...(each.payload as object) } }));
    kept.catch(() => undefined);
    this.rounds.delete(key);
    this.rounds.set(key, { sent: place.index, places: new Set([place.index]), outcome: kept });
    const [oldest] = this.rounds.keys();
    if (this.rounds.size > mostKept && oldest !== undefined) this.rounds.delete(oldest);
    return outcome;
  }
}

/** The outcome of a text that was not sent because an equal one was. */
export const asDuplicate = (outcome: Outcome, duplicateOf: number): Outcome =>
  outcome.port === 1 ? outcome : { ...outcome, payload: { ...(outcome.payload as object), duplicateOf } };
