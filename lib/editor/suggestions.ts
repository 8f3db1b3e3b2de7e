import { folded, isCountry } from '../runtime/kinds';
import { ownTimeZone } from '../runtime/dates';
import { onKey, valueIn } from './dom';
import { locale } from './locale';
import { OptionList, type Choice } from './options';
import type { Form } from './red';

/** The most choices that are shown: typing makes them fewer. */
const mostShown = 50;

const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');

const firstOf = (choices: readonly Choice[], first: string): Choice[] => [
  ...choices.filter(({ value }) => value === first),
  ...choices.filter(({ value }) => value !== first),
];

export const countryName = (code: string): string =>
  isCountry(code) ? (new Intl.DisplayNames(locale(), { type: 'region' }).of(code.toUpperCase()) ?? '') : '';

/** All countries by name, that of the browser first. */
export const countries = (): Choice[] => {
  const codes = letters.flatMap((one) => letters.map((other) => one + other)).filter(isCountry);
  const choices = codes.map((code) => ({ value: code, title: countryName(code), detail: code }));
  const { compare } = new Intl.Collator(locale());
  choices.sort((one, other) => compare(one.title, other.title));
  return firstOf(choices, new Intl.Locale(navigator.language).maximize().region ?? '');
};

/** The common name of a zone's time, such as *Eastern Time*. */
const timeNameOf = (timeZone: string): string =>
  new Intl.DateTimeFormat(locale(), { timeZone, timeZoneName: 'longGeneric' })
    .formatToParts(0)
    .find(({ type }) => type === 'timeZoneName')?.value ?? '';

/** All time zones by city, that of the browser first. */
export const timeZones = (): Choice[] => {
  const all = new Set([...Intl.supportedValuesOf('timeZone'), 'UTC']);
  const choices = [...all].map((value) => ({
    value,
    title: (value.split('/').at(-1) ?? value).replaceAll('_', ' '),
    detail: `${value} · ${timeNameOf(value)}`,
  }));
  return firstOf(choices, ownTimeZone());
};

/** A list to choose a text field's value from. Typing filters it, and may give other values, such as `${VARIABLE}`. */
export const addSuggestions = (
  form: Form,
  name: string,
  choicesOf: () => readonly Choice[],
  /** The note below the field about its value. */
  nameOf: (value: string) => string = () => '',
): void => {
  const input = form.input(name).attr('autocomplete', 'off');
  const row = form.row(name);
  let known: readonly Choice[] | undefined;
  const textOf = (): string => folded(valueIn(input).trim());
  const matches = (text: string): readonly Choice[] =>
    (known ??= choicesOf()).filter(({ title, detail }) =>
      text.split(/\s+/).every((word) => folded(`${title} ${detail}`).includes(word)),
    );

  const isOpen = (): boolean => input.attr('aria-expanded') === 'true';
  const show = (isShown: boolean): void => {
    list.element.toggle(isShown);
    input.attr('aria-expanded', String(isShown));
    row.toggleClass('advisor-suggesting', isShown);
  };
  const use = ({ value }: Choice): void => {
    form.set(name, value);
    show(false);
  };
  /** Uses the choice that is named in full, or the only one that is left. */
  const settle = (): void => {
    const text = textOf();
    const found = matches(text);
    const meant =
      found.find(({ title }) => folded(title) === text) ??
      (text !== '' && found.length === 1 ? found[0] : undefined);
    if (meant) use(meant);
    else show(false);
  };
  const list = new OptionList(input, {
    label: form.say(`label.${name}`),
    several: false,
    chosen: use,
    typed: settle,
  });
  list.element.addClass('advisor-suggestions');
  const chosen = $('<span>', { class: 'advisor-hint advisor-chosen', role: 'status' });
  input.after(list.element, chosen);
  show(false);

  const offer = (text: string): void => {
    const found = matches(text);
    list.show(found.slice(0, mostShown));
    show(found.length > 0);
  };
  input.on('input', () => offer(textOf()));
  // A field that is filled in shows all choices when it gets the focus.
  input.on('focus click', () => {
    if (!isOpen()) offer('');
  });
  onKey(input, 'Escape', () => show(false), isOpen);
  // The field keeps the focus while somebody chooses with the mouse.
  list.element.on('mousedown', (event) => event.preventDefault());
  input.on('blur', settle);
  form.onChange((values) => chosen.text(nameOf(String(values[name]).trim())));
};
