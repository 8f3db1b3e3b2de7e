import { isRecord } from '../lib/kinds';
import { fill } from '../lib/languages';
import type english from '../locales/en-US/simulator.json';

/** All sentences of the simulator in one language; those under `page` are for the page itself. */
export type Catalogue = typeof english;

type Leaves<Group> = {
  [Name in keyof Group & string]: Group[Name] extends string ? Name : `${Name}.${Leaves<Group[Name]>}`;
}[keyof Group & string];

/** The keys of the sentences in a group, such as `clock.title`. */
export type KeyOf<Group> = Leaves<Group>;

export type WordValues = Readonly<Record<string, string | number>>;

const found = (group: unknown, key: string): string => {
  let at = group;
  for (const step of key.split('.')) at = isRecord(at) && Object.hasOwn(at, step) ? at[step] : undefined;
  return typeof at === 'string' ? at : key;
};

/** Returns the sentences of a group, with each `__name__` filled in. */
export const sayFrom =
  <Group>(group: Group) =>
  (key: KeyOf<Group>, values: WordValues = {}): string =>
    fill(found(group, key), values);
