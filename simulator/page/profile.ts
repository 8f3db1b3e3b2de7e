import {
  environmentFor,
  habitChoices,
  habitNames,
  profileNames,
  profileOf,
  profiles,
  type Habits,
  type ProfileName,
} from '../profiles';
import type { SettingsChange } from '../state/settings';
import type { Catalogue, KeyOf } from '../wording';
import { byId, element, showList } from './dom';
import { amount, say } from './words';

type ChangeSettings = (change: SettingsChange) => void;
type Value = Habits[keyof Habits];

const profile = byId('profile', HTMLSelectElement);
const hint = byId('profile-hint', HTMLElement);
const needs = byId('needs', HTMLElement);
const needsList = byId('needs-list', HTMLElement);
const form = byId('habits', HTMLElement);

const mixed = 'mixed';

const sameValue = (one: Value, other: Value): boolean => JSON.stringify(one) === JSON.stringify(other);

const namesAre = (value: Value): string =>
  profileNames.find((name) => sameValue(value, profiles[name].names)) ?? 'own';

const habitLabel = (habit: keyof Habits, value: Value): string => {
  if (typeof value === 'number') {
    return value === 0
      ? say('habit.contactDelay.none')
      : say('habit.contactDelay.later', { time: amount(value, 'second') });
  }
  if (habit === 'corePrefix' || habit === 'textPrefix') return value as string;
  const word = typeof value === 'string' ? value : namesAre(value);
  return say(`habit.${habit}.${word}` as KeyOf<Catalogue['page']>);
};

/** The values that are offered for a habit: its choices, else those in the profiles and the current one. */
const offered = (habit: keyof Habits, current: Value): readonly Value[] => {
  if (habit in habitChoices) return habitChoices[habit as keyof typeof habitChoices];
  const values: Value[] = [];
  for (const value of [...profileNames.map((name) => profiles[name][habit]), current])
    if (!values.some((known) => sameValue(known, value))) values.push(value);
  return values;
};

const drawHabit = (habit: keyof Habits, current: Value, change: ChangeSettings): HTMLElement => {
  const values = offered(habit, current);
  const select = element('select', { 'data-action': habit });
  select.append(
    ...values.map((value, index) => element('option', { value: String(index) }, habitLabel(habit, value))),
  );
  select.value = String(values.findIndex((value) => sameValue(value, current)));
  select.addEventListener('change', () => {
    change({ habits: { [habit]: values[Number(select.value)] } });
  });
  return element('label', {}, element('span', {}, say(`habit.${habit}.label`)), select);
};

const showNeeds = (habits: Habits): void => {
  const usual = environmentFor(profiles.usual);
  const other = Object.entries(environmentFor(habits)).filter(
    ([setting, value]) => !sameValue(value, usual[setting as keyof typeof usual] ?? ''),
  );
  needs.hidden = other.length === 0;
  needsList.replaceChildren(
    ...other.flatMap(([setting, value]) => [
      element('dt', {}, setting),
      element('dd', {}, typeof value === 'string' ? value : JSON.stringify(value, null, 1)),
    ]),
  );
};

export const showProfile = (habits: Habits, change: ChangeSettings): void => {
  const chosen = profileOf(habits) ?? mixed;
  const choices = chosen === mixed ? [...profileNames, mixed] : profileNames;
  profile.replaceChildren(
    ...choices.map((name) => element('option', { value: name }, say(`profile.${name}` as 'profile.mixed'))),
  );
  profile.value = chosen;
  profile.onchange = () => {
    if (profile.value !== mixed) change({ profile: profile.value as ProfileName });
  };
  hint.textContent = say(`profile.${chosen}Hint` as 'profile.mixedHint');
  showNeeds(habits);
  showList(form, habitNames, {
    key: (habit) => habit,
    version: (habit) => JSON.stringify(habits[habit]),
    draw: (habit) => drawHabit(habit, habits[habit], change),
  });
};
