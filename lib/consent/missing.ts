interface Refusal {
  readonly failures: readonly string[];
  readonly failureDetails?: readonly { readonly code?: string | null | undefined }[] | null | undefined;
}

/** Somebody who left is not to be asked again, whatever else the reason says about consent. */
const left = /\bstop|opt(?:ed|ing)?[\s_-]?out|unsubscri|revok|withdr[ae]w/i;
const byDefault = /consent/i;

/** The test for a refusal that asking for consent can mend. */
export const consentTest = (pattern: string): ((refusal: Refusal) => boolean) => {
  const wanted = pattern === '' ? byDefault : new RegExp(pattern, 'i');
  return ({ failures, failureDetails }) => {
    const codes = (failureDetails ?? []).map(({ code }) => code ?? '');
    if ([...failures, ...codes].some((words) => left.test(words))) return false;
    return codes.some((code) => byDefault.test(code)) || failures.some((words) => wanted.test(words));
  };
};
