import { folded, isCountry } from '../kinds';
import { ownTimeZone } from '../runtime/dates';
import { valueIn } from './dom';
import { locale } from './locale';
import type { Form } from './red';

/** A value of a field, and the name by which people know it. */
interface Suggestion {
  readonly value: string;
  readonly label: string;
  /** What a person may type for it, if that is not the label alone. */
  readonly names?: readonly string[];
}

const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');

const firstOf = (all: readonly Suggestion[], first: string): Suggestion[] => [
  ...all.filter(({ value }) => value === first),
  ...all.filter(({ value }) => value !== first),
];

export const countryName = (code: string, style: 'long' | 'short' = 'long'): string =>
  isCountry(code)
    ? (new Intl.DisplayNames(locale(), { type: 'region', style }).of(code.toUpperCase()) ?? '')
    : '';

/** All countries by name, that of the browser first. */
export const countries = (): Suggestion[] => {
  const codes = letters.flatMap((one) => letters.map((other) => one + other)).filter(isCountry);
  const all = codes.map((value) => {
    const label = countryName(value);
    return { value, label, names: [label, countryName(value, 'short')] };
  });
  const { compare } = new Intl.Collator(locale());
  all.sort((one, other) => compare(one.label, other.label));
  return firstOf(all, new Intl.Locale(navigator.language).maximize().region ?? '');
};

/** The common name of a zone's time, such as *Eastern Time*. */
const timeNameOf = (timeZone: string): string =>
  new Intl.DateTimeFormat(locale(), { timeZone, timeZoneName: 'longGeneric' })
    .formatToParts(0)
    .find(({ type }) => type === 'timeZoneName')?.value ?? '';

/** All time zones by city, that of the browser first. */
export const timeZones = (): Suggestion[] => {
  const all = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC']);
  const city = (zone: string): string => (zone.split('/').at(-1) ?? zone).replaceAll('_', ' ');
  const named = [...all].map((value) => {
    const name = city(value);
    return { value, label: `${name} · ${timeNameOf(value)}`, names: [name] };
  });
  return firstOf(named, ownTimeZone());
};

/** The browser's own list for a text field: typing filters it, and may give other values, such as `${VARIABLE}`. */
export const addSuggestions = (
  form: Form,
  name: string,
  suggestionsOf: () => readonly Suggestion[],
  /** The note below the field about its value. */
  nameOf: (value: string) => string = () => '',
): void => {
  const input = form.input(name);
  const id = `${input.attr('id') ?? ''}-list`;
  const list = $('<datalist>', { id });
  const chosen = $('<span>', { class: 'advisor-hint advisor-chosen', role: 'status' });
  input.attr({ autocomplete: 'off', list: id }).after(list, chosen);
  let known: readonly Suggestion[] = [];
  // Hundreds of names take long to make.
  input.one('focus', () => {
    known = suggestionsOf();
    list.append(known.map(({ value, label }) => $('<option>').attr({ value, label })));
  });
  input.on('change', () => {
    const text = folded(valueIn(input).trim());
    // Not a code that is another country's short name: RU is the United Kingdom in Spanish.
    if (known.some(({ value }) => folded(value) === text)) return;
    const named = known.find(({ label, names = [label] }) => names.some((name) => folded(name) === text));
    if (named) form.set(name, named.value);
  });
  form.onChange((values) => chosen.text(nameOf(String(values[name]).trim())));
};
