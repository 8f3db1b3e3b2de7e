interface Refusal {
  readonly failures?: readonly string[] | null | undefined;
  /** Planned in the contract, which shows no shape for it. */
  readonly failureDetails?: unknown;
}

/** A text that may be a code: one word, such as `consent_required`. */
const isWord = (value: unknown): value is string => typeof value === 'string' && /^[\w.-]+$/.test(value);

/** The codes in it, wherever they are: under a name such as `code`, or as words where nothing has a name. */
const codesIn = (details: unknown, isCode = true, depth = 8): string[] => {
  if (isWord(details)) return isCode ? [details] : [];
  if (typeof details !== 'object' || details === null || depth === 0) return [];
  if (Array.isArray(details)) return details.flatMap((each) => codesIn(each, isCode, depth - 1));
  return Object.entries(details).flatMap(([name, value]) => {
    const isNamed = /codes?$/i.test(name);
    return isNamed && typeof value === 'string' ? [value] : codesIn(value, isNamed, depth - 1);
  });
};

/** Somebody who left is not to be asked again, whatever else the reason says about consent. */
const left = /(?<!\p{L})stop|opt(?:ed|ing)?[\s_-]?out|unsubscri|revok|withdr[ae]w/iu;
/** Also as a word inside another, as in `UserStopped`; the one in "Christopher" is none. */
const hasLeft = (words: string): boolean => left.test(words) || words.includes('Stop');
const byDefault = /consent/i;

/** The test for a refusal that asking for consent can mend. A code is the service's word; without one, its text is read. */
export const consentTest = (pattern: string): ((refusal: Refusal) => boolean) => {
  const wanted = pattern === '' ? byDefault : new RegExp(pattern, 'i');
  return ({ failures, failureDetails }) => {
    const codes = codesIn(failureDetails);
    if (codes.some(hasLeft)) return false;
    if (codes.some((code) => byDefault.test(code))) return true;
    const texts = failures ?? [];
    return !texts.some(hasLeft) && texts.some((words) => wanted.test(words));
  };
};
