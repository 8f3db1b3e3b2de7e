import { epochOf, isNothing } from '../../lib/runtime/kinds';
import { invalid } from '../../lib/runtime/messages';

export interface Delivery {
  readonly scheduleDelivery: true;
  readonly deliveryDate: number;
  readonly frequency?: number;
}

/** The schedule fields as they go over the wire. The input is epoch milliseconds, an ISO string or a Date. */
export const deliveryOf = (date: unknown, frequency: unknown, unit: 'ms' | 's', now: number): Delivery => {
  const at = epochOf(date);
  if (!Number.isFinite(at)) throw invalid(isNothing(date) ? 'date_missing' : 'date_unreadable');
  if (at <= now) throw invalid('date_past');
  const often = isNothing(frequency) ? undefined : Number(frequency);
  if (often !== undefined && !Number.isInteger(often)) throw invalid('frequency_kind');
  return {
    scheduleDelivery: true,
    deliveryDate: unit === 's' ? Math.round(at / 1000) : at,
    ...(often !== undefined && { frequency: often }),
  };
};
