import english from '../locales/en-US/simulator.json';
import { sayFrom, type Catalogue, type KeyOf } from './wording';

/** The message of a schema's rule: its English sentence for programs, and its key for people's languages. */
export const rule = (key: KeyOf<Catalogue>) => ({
  error: () => sayFrom(english)(key),
  params: { says: key },
});
