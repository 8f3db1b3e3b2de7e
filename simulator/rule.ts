import english from '../locales/en-US/simulator.json';
import { sayFrom, type Catalogue, type KeyOf } from './wording';

/** For a rule of a schema: its sentence, in English to a program, and its key for whoever tells it to a person. */
export const rule = (key: KeyOf<Catalogue>) => ({
  error: () => sayFrom(english)(key),
  params: { says: key },
});
