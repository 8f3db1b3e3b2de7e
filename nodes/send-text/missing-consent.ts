interface RefusedText {
  readonly failures?: readonly string[] | null | undefined;
  /** Planned; its shape is not shown (contract, *Message result*). */
  readonly failureDetails?: unknown;
}

/** A text that may be a code: one word, such as `consent_required`. */
const isWord = (value: unknown): value is string => typeof value === 'string' && /^[\w.-]+$/.test(value);

/** The codes in `failureDetails`, at any depth: values under a name such as `code`, or words in a list. */
const codesIn = (details: unknown, isCode = true, depth = 8): string[] => {
  if (isWord(details)) return isCode ? [details] : [];
  if (typeof details !== 'object' || details === null || depth === 0) return [];
  if (Array.isArray(details)) return details.flatMap((each) => codesIn(each, isCode, depth - 1));
  return Object.entries(details).flatMap(([name, value]) => {
    const isNamed = /codes?$/i.test(name);
    return isNamed && typeof value === 'string' ? [value] : codesIn(value, isNamed, depth - 1);
  });
};

/** Words that mean that somebody has opted out: they must not be asked again, whatever else the reason says about consent. */
const optedOut = /(?<!\p{L})stop|opt(?:ed|ing)?[\s_-]?out|unsubscri|revok|withdr[ae]w/iu;
/** Also finds the word inside another, as in `UserStopped`, but not in "Christopher". */
const hasOptedOut = (words: string): boolean => optedOut.test(words) || words.includes('Stop');
const byDefault = /consent/i;

/** Tests whether a refusal can be mended by asking for consent. It reads the codes; without any, the text. */
export const consentTest = (pattern: string): ((refusal: RefusedText) => boolean) => {
  const wanted = pattern === '' ? byDefault : new RegExp(pattern, 'i');
  return ({ failures, failureDetails }) => {
    const codes = codesIn(failureDetails);
    if (codes.some(hasOptedOut)) return false;
    if (codes.some((code) => byDefault.test(code))) return true;
    const texts = failures ?? [];
    return !texts.some(hasOptedOut) && texts.some((words) => wanted.test(words));
  };
};
