import { second } from '../../lib/durations';
import { epochOf } from '../../lib/runtime/dates';
import type { EnvironmentSettings } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import { isNothing } from '../../lib/kinds';

/** When a scheduled text is delivered, in epoch milliseconds, whatever the service takes. */
export interface Delivery {
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
    deliveryDate: deliveryDateUnit === 's' ? Math.round(at / second) * second : at,
    ...(often !== undefined && { frequency: often }),
  };
};

/** The schedule fields as the service takes them (contract, *Message request*). */
export const onTheWire = (
  { deliveryDate, frequency }: Delivery,
  movedTo = deliveryDate,
  { deliveryDateUnit }: Zone,
) => ({
  scheduleDelivery: true,
  deliveryDate: deliveryDateUnit === 's' ? Math.round(movedTo / second) : movedTo,
  ...(frequency !== undefined && { frequency }),
});

/** When a scheduled text is delivered, and when it was meant to be, if that differs. */
export const datesOf = ({ deliveryDate }: Delivery, movedTo: number | undefined) =>
  movedTo === undefined ? { deliveryDate } : { deliveryDate: movedTo, movedFrom: deliveryDate };
