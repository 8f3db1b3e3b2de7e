import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { spokenOf, type Language } from '../lib/languages';
import { splitTarget } from './http';
import { sayFrom, type Catalogue, type KeyOf, type WordValues } from './wording';

export interface SimulatorWords {
  readonly language: Language;
  readonly catalogue: Catalogue;
  readonly say: (key: KeyOf<Catalogue>, values?: WordValues) => string;
}

const folder = join(__dirname, '..', 'locales');

const opened = new Map<Language, SimulatorWords>();

export const simulatorWordsIn = (language: Language): SimulatorWords => {
  const known = opened.get(language);
  if (known !== undefined) return known;
  const file = join(folder, language, 'simulator.json');
  const catalogue = JSON.parse(readFileSync(file, 'utf8')) as Catalogue;
  const words = { language, catalogue, say: sayFrom(catalogue) };
  opened.set(language, words);
  return words;
};

/** The languages of an *Accept-Language* header, the most wanted first (RFC 9110, section 12.5.4). */
const acceptedIn = (header: string): string[] =>
  header
    .split(',')
    .map((part) => {
      const [tag = '', ...parameters] = part.split(';').map((piece) => piece.trim());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return { tag, weight: quality === undefined ? 1 : Number(quality.slice(2)) };
    })
    .filter(({ tag, weight }) => tag !== '' && weight > 0)
    .sort((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag);

/** The words in the language of the request; `?lang=` takes precedence over `Accept-Language`. */
export const simulatorWordsFor = (request: IncomingMessage): SimulatorWords => {
  const [, query] = splitTarget(request.url ?? '');
  const chosen = new URLSearchParams(query).get('lang') ?? '';
  return simulatorWordsIn(spokenOf([chosen, ...acceptedIn(request.headers['accept-language'] ?? '')]));
};
