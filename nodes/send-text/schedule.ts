import { invalid } from '../../lib/runtime/messages';

export interface Delivery {
  readonly scheduleDelivery: true;
  readonly deliveryDate: number;
  readonly frequency?: number;
}

const epoch = (value: unknown): number => {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value.trim() === '') return NaN;
  return /^\d+$/.test(value.trim()) ? Number(value) : Date.parse(value);
};

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === '';

/** The schedule fields as they go over the wire. The input is epoch milliseconds, an ISO string or a Date. */
export const deliveryOf = (date: unknown, frequency: unknown, unit: 'ms' | 's', now: number): Delivery => {
  const at = epoch(date);
  if (!Number.isFinite(at)) throw invalid(isEmpty(date) ? 'date_missing' : 'date_unreadable');
  if (at <= now) throw invalid('date_past');
  const often = isEmpty(frequency) ? undefined : Number(frequency);
  if (often !== undefined && !Number.isInteger(often)) throw invalid('frequency_kind');
  return {
    scheduleDelivery: true,
    deliveryDate: unit === 's' ? Math.round(at / 1000) : at,
    ...(often !== undefined && { frequency: often }),
  };
};
