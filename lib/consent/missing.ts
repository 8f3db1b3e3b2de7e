interface Refusal {
  readonly failures: readonly string[];
  readonly failureDetails?: readonly { readonly code?: string | null | undefined }[] | null | undefined;
}

/** Somebody who left is not to be asked again, whatever else the reason says about consent. */
const left = /(?<!\p{L})stop|opt(?:ed|ing)?[\s_-]?out|unsubscri|revok|withdr[ae]w/iu;
/** Also as a word inside another, as in `UserStopped`; the one in "Christopher" is none. */
const hasLeft = (words: string): boolean => left.test(words) || words.includes('Stop');
const byDefault = /consent/i;

/** The test for a refusal that asking for consent can mend. A code is the service's word; without one, its text is read. */
export const consentTest = (pattern: string): ((refusal: Refusal) => boolean) => {
  const wanted = pattern === '' ? byDefault : new RegExp(pattern, 'i');
  return ({ failures, failureDetails }) => {
    const codes = (failureDetails ?? []).map(({ code }) => code ?? '');
    if (codes.some(hasLeft)) return false;
    if (codes.some((code) => byDefault.test(code))) return true;
    return !failures.some(hasLeft) && failures.some((words) => wanted.test(words));
  };
};
