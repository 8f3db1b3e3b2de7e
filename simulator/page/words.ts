import { localeOf } from '../../lib/languages';
import { sayFrom, type Catalogue } from '../wording';

const given = document.querySelector<HTMLMetaElement>('meta[name=words]');
if (given === null) throw new Error('index.html has no words');

/** The sentences of this page, in the language that its server chose. */
export const strings = JSON.parse(given.content) as Catalogue['page'];
export const say = sayFrom(strings);

/** The language of the sentences. */
export const language = document.documentElement.lang;

const asked = new URLSearchParams(location.search);
const wanted = asked.get('lang') ?? '';
/** The page of a runtime that has no language writes times as statuses do there. */
const hourCycle = asked.get('clock') === 'h23' ? 'h23' : undefined;
const locale = localeOf(language, [wanted, ...navigator.languages]);

const numbers = new Intl.NumberFormat(locale);
const shares = new Intl.NumberFormat(locale, { style: 'percent' });

/** `12,400` */
export const number = (value: number): string => numbers.format(value);
/** `10%` */
export const share = (value: number): string => shares.format(value);

export type Unit = 'day' | 'hour' | 'minute' | 'second';

/** `1 day`, or with its sign `+1 day`. */
export const amount = (count: number, unit: Unit, signDisplay: 'auto' | 'always' = 'auto'): string =>
  new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long', signDisplay }).format(count);

const pieces = new Intl.ListFormat(locale, { type: 'unit', style: 'narrow' });
const names = new Intl.ListFormat(locale, { type: 'unit', style: 'short' });

/** `1 day 2 hours` */
export const inOneAmount = (amounts: readonly string[]): string => pieces.format(amounts);
/** `Accept, Ann Ito, +1 206 555 0101` */
export const listed = (...parts: readonly string[]): string => names.format(parts);

export const dateFormat = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat(locale, { ...options, ...(options.timeStyle && { hourCycle }) });
