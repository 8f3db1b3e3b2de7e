import { z } from 'zod';
import type { Language } from '../../lib/languages';
import type { ProblemCode } from '../codes';
import { Refusal } from '../problem';
import type { Catalogue, KeyOf, WordValues } from '../wording';
import type { SimulatorWords } from '../words';

/** An error of the control API, in the language of the request. */
export class Misuse extends Error {
  constructor(
    readonly code: ProblemCode,
    readonly key: KeyOf<Catalogue>,
    readonly values: WordValues = {},
  ) {
    super(key);
  }
}

const complaints = { 'en-US': z.locales.en, de: z.locales.de, 'es-ES': z.locales.es, ja: z.locales.ja };

/** The error messages of schemas in a language. */
export const sentencesIn = (language: Language) => complaints[language]().localeError;

/** One of our own rules (see rule.ts) names its sentence; messages of zod are already in the language. */
const issueInWords = (issue: z.core.$ZodIssue, words: SimulatorWords): z.core.$ZodIssue => {
  const key: unknown = issue.code === 'custom' ? issue.params?.['says'] : undefined;
  return typeof key === 'string' ? { ...issue, message: words.say(key as KeyOf<Catalogue>) } : issue;
};

export const asRefusal = (error: unknown, words: SimulatorWords): Refusal => {
  if (error instanceof Misuse) return new Refusal(error.code, words.say(error.key, error.values));
  if (error instanceof z.ZodError) {
    const issues = error.issues.map((issue) => issueInWords(issue, words));
    return new Refusal('invalid_request', z.prettifyError({ issues }));
  }
  return new Refusal('internal_error', error instanceof Error ? error.message : String(error));
};
