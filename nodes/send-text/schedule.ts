import { epochOf } from '../../lib/runtime/dates';
import type { EnvironmentSettings } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import { isNothing } from '../../lib/kinds';

/** The schedule fields as the service takes them (contract, *Message request*). */
export interface Delivery {
  readonly scheduleDelivery: true;
  readonly deliveryDate: number;
  readonly frequency?: number;
}

const wholeNumber = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
};

type Zone = Pick<EnvironmentSettings, 'deliveryDateUnit' | 'timeZone'>;

/** The date is epoch milliseconds, an ISO string or a Date. Throws `invalid_input`. */
export const deliveryOf = (
  date: unknown,
  frequency: unknown,
  { deliveryDateUnit, timeZone }: Zone,
  now: number,
): Delivery => {
  const at = epochOf(date, timeZone);
  if (Number.isNaN(at)) throw invalidInput(isNothing(date) ? 'date_missing' : 'date_unreadable');
  if (at <= now) throw invalidInput('date_past');
  const often = isNothing(frequency) ? undefined : wholeNumber(frequency);
  if (often === undefined && !isNothing(frequency)) throw invalidInput('frequency_kind');
  return {
    scheduleDelivery: true,
    deliveryDate: deliveryDateUnit === 's' ? Math.round(at / 1000) : at,
    ...(often !== undefined && { frequency: often }),
  };
};

/** The delivery date in milliseconds, even if the service uses seconds. */
export const millisecondsOf = ({ deliveryDate }: Delivery, { deliveryDateUnit }: Zone): number =>
  deliveryDateUnit === 's' ? deliveryDate * 1000 : deliveryDate;

/** A delivery that was moved into the recipient's text hours, to a whole second. */
export const movedDelivery = (
  delivery: Delivery,
  movedTo: number | undefined,
  { deliveryDateUnit }: Zone,
): Delivery =>
  movedTo === undefined
    ? delivery
    : { ...delivery, deliveryDate: deliveryDateUnit === 's' ? movedTo / 1000 : movedTo };

/** When a scheduled text is delivered, and when it was meant to be, if that differs; in milliseconds. */
export const datesOf = (delivery: Delivery, movedTo: number | undefined, settings: Zone) => {
  const asked = millisecondsOf(delivery, settings);
  return { deliveryDate: movedTo ?? asked, ...(movedTo !== undefined && { movedFrom: asked }) };
};
