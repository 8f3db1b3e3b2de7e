import type { parsePhoneNumberFromString as parse } from 'libphonenumber-js/max';
import { day, hour, minute, second } from '../durations';
import type { Item } from '../outbox/item';
import { Later } from '../outbox/queue';
import type { ItemData, Shared } from '../outbox/records';
import { calculated, processMemory } from '../process-memory';
import { isTimeZone, offsetAt } from '../runtime/dates';
import type { EnvironmentSettings, TextHours } from '../runtime/environment';
import { invalidInput } from '../runtime/errors';
import { serviceError } from '../service/errors';
import type { Guard, GuardTools, ItemOf } from '../runtime/item-node';
import { fieldOf, isNothing, isRecord } from '../kinds';
import zoneTable from './zone-table.json';

export interface TextShared extends Shared {
  /** The time zone that the message gives for a single number. */
  readonly timeZone?: unknown;
}

const minutesOfDay = 24 * 60;
/** Milliseconds over which held texts leave, so that a thousand do not leave in one second. */
const spreadOver = 15 * minute;
/** Milliseconds: zones whose hours overlap by less count as unknown. */
const leastShared = hour;
/** Milliseconds: the step in which shared hours are measured, because zones differ by quarters of an hour. */
const step = 15 * minute;

let zonesByPrefix: Map<string, readonly string[]> | undefined;

/**
 * The zones a number may be in, by where it was issued: of +1 by its area code, else by country. Undefined if unknown.
 * The table is made by `scripts/zones.mjs` from Google's libphonenumber (Apache License 2.0).
 */
const zonesIn = (phone: string): readonly string[] | undefined => {
  zonesByPrefix ??= new Map(
    Object.entries(zoneTable).flatMap(([zones, prefixes]) =>
      prefixes.split(' ').map((prefix) => [prefix, zones.split(' ')]),
    ),
  );
  const digits = phone.slice(1);
  if (digits.startsWith('1')) return zonesByPrefix.get(digits.slice(0, 4));
  for (let length = 1; length <= 3; length++) {
    const zones = zonesByPrefix.get(digits.slice(0, length));
    if (zones) return zones;
  }
  return undefined;
};

const geographic = new Set(['FIXED_LINE', 'MOBILE', 'FIXED_LINE_OR_MOBILE']);

/** Whether a number belongs to no place: toll-free, personal and the like. */
const isNowhere = (phone: string): boolean => {
  // The tables of this module are large: it is loaded when text hours are first needed.
  const { parsePhoneNumberFromString } = require('libphonenumber-js/max') as {
    parsePhoneNumberFromString: typeof parse;
  };
  const type = parsePhoneNumberFromString(phone)?.getType();
  return type !== undefined && !geographic.has(type);
};

export const zonesOfNumber = (phone: string): readonly string[] | undefined => {
  const zones = zonesIn(phone);
  return zones && !isNowhere(phone) ? zones : undefined;
};

const minuteAt = (zone: string, at: number): number =>
  Math.floor((at + offsetAt(zone, at)) / minute) % minutesOfDay;

const isWithin = ({ from, until }: TextHours, at: number): boolean =>
  from < until ? from <= at && at < until : at >= from || at < until;

/** Whether all zones allow a text at a moment. */
export const isOpen = (hours: TextHours, zones: readonly string[], at: number): boolean =>
  zones.every((zone) => isWithin(hours, minuteAt(zone, at)));

/** The first moment from `at` on that all zones allow, within two days. */
const openingFrom = (hours: TextHours, zones: readonly string[], at: number): number | undefined => {
  if (isOpen(hours, zones, at)) return at;
  // Daylight saving moves clocks by quarters of an hour at whole quarters: between two of them nothing changes.
  const end = at + 2 * day;
  for (let time = Math.floor(at / minute) * minute + minute; time <= end;) {
    const waits = zones.map((zone) => {
      const now = minuteAt(zone, time);
      return isWithin(hours, now) ? 0 : (hours.from - now + minutesOfDay) % minutesOfDay;
    });
    const longest = Math.max(...waits) * minute;
    if (longest === 0) return time;
    time = Math.min(time + longest, (Math.floor(time / step) + 1) * step);
  }
  return undefined;
};

/** How much of the day that starts at `at` all zones allow. */
const sharedFrom = (hours: TextHours, zones: readonly string[], at: number): number => {
  let shared = 0;
  for (let time = at; time < at + day; time += step) if (isOpen(hours, zones, time)) shared += step;
  return shared;
};

const checked = processMemory('calculated', new Map<string, boolean>());

/** Several zones must leave a time of day to text at. */
const leaveTime = (hours: TextHours, zones: readonly string[], at: number): boolean => {
  if (zones.length < 2) return true;
  const today = Math.floor(at / day) * day;
  const name = `${hours.from} ${hours.until} ${today} ${zones.join(' ')}`;
  return calculated(checked, name, () => sharedFrom(hours, zones, today) >= leastShared);
};

export interface Whose {
  readonly phone: string;
  readonly timeZone?: string | undefined;
  /** The zone for numbers whose own is unknown; empty when there is none. */
  readonly fallback: string;
}

/** `at`, or the next time that the recipient's hours allow; undefined when the recipient's zone is unknown. */
export const allowedFrom = (
  hours: TextHours,
  { phone, timeZone, fallback }: Whose,
  at: number,
): number | undefined => {
  const own = timeZone === undefined ? zonesOfNumber(phone) : [timeZone];
  const zones = own && leaveTime(hours, own, at) ? own : fallback === '' ? undefined : [fallback];
  return zones && openingFrom(hours, zones, at);
};

/** A moment in the quarter of an hour after the hours start, always the same for a number. */
export const spreadFrom = (hours: TextHours, whose: Whose, opening: number): number => {
  let share = 0;
  for (const digit of whose.phone.slice(-6)) share = (share * 7 + Number(digit) * 149) % 997;
  // Whole seconds, because the service may expect delivery dates in seconds.
  const spread = opening + Math.floor(((share / 997) * spreadOver) / second) * second;
  // Hours that are shorter than the spread are used from their start.
  return allowedFrom(hours, whose, spread) === spread ? spread : opening;
};

/** The recipient's own zone, as given: that of a list's object, or for a single number that of the message. */
export const zoneOf = ({
  shared,
  entry,
}: Pick<ItemOf<ItemData, TextShared>, 'shared' | 'entry'>): unknown => {
  const own = isRecord(entry) ? fieldOf(entry, 'timeZone') : undefined;
  return isNothing(own) ? shared.timeZone : own;
};

const whoseOf = (item: Item<ItemData, TextShared>, { timeZone: fallback }: EnvironmentSettings): Whose => {
  const own = zoneOf(item);
  if (own !== undefined && (typeof own !== 'string' || !isTimeZone(own.trim())))
    throw invalidInput('zone_unknown');
  return { phone: item.data.phone ?? '', timeZone: own?.trim(), fallback };
};

/** Fails texts with an invalid time zone, before any slower check. With `any`, the hours are ignored. */
export const validZone = (
  { environment: { settings } }: GuardTools,
  asked: string,
): Guard<ItemData, TextShared>[] => {
  const pass: Guard<ItemData, TextShared>['pass'] = (item, next) => {
    whoseOf(item, settings);
    return next();
  };
  return settings.textHours && asked !== 'any' ? [{ pass }] : [];
};

/**
 * Holds texts outside the hours of their recipients, or fails them. A scheduled text is moved, and may be requested at
 * any hour.
 */
export const textHours = <S extends TextShared>(
  { environment: { settings, clock } }: GuardTools,
  asked: string,
  /** The delivery date of a text that the service schedules, in epoch milliseconds. */
  deliveryDateOf?: (item: Item<ItemData, S>) => number | undefined,
): Guard<ItemData, S>[] => {
  const { textHours: hours } = settings;
  if (!hours || asked === 'any') return [];
  const pass: Guard<ItemData, S>['pass'] = (item, next) => {
    const whose = whoseOf(item, settings);
    /** The next allowed time; undefined when that is `at`. */
    const openingAfter = (at: number): number | undefined => {
      const opening = allowedFrom(hours, whose, at);
      if (opening === undefined) throw invalidInput('zone_missing');
      if (opening === at) return undefined;
      if (hours.outside === 'fail')
        throw serviceError('quiet_hours', 'quiet_hours', {}, { notBefore: opening });
      return spreadFrom(hours, whose, opening);
    };
    // A text may wait until its delivery date is over: the service would send it at once.
    const openingFor = (date = 0): number | undefined => openingAfter(Math.max(date, clock.now()));
    const deliveryDate = deliveryDateOf?.(item);
    const notBefore = openingFor(deliveryDate);
    if (deliveryDate !== undefined) item.movedTo = notBefore;
    else if (item.shared.dryRun && notBefore !== undefined) item.wouldHoldUntil = notBefore;
    else if (notBefore !== undefined) throw new Later(notBefore);
    const permit = (): undefined => {
      if (openingFor(item.movedTo ?? deliveryDate) !== undefined) throw new Later(clock.now());
    };
    item.add({ permit });
    return next();
  };
  return [{ pass, mayHold: hours.outside === 'hold' }];
};
