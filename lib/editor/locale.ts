const baseOf = (tag: string): string => tag.split('-')[0] ?? '';

/** That of our own words: the editor may have none for a language of ours, and we none for one of its. */
export const language = (): string => RED.nodes.getType('advisor-environment')?._('language') ?? '';

/** How to write numbers and dates: in the language of the words, of whose regions the browser knows the right one. */
export const locale = (): string => {
  const spoken = language();
  return navigator.languages.find((tag) => baseOf(tag) === spoken) ?? spoken;
};

export const numberOf = (value: number): string => new Intl.NumberFormat(locale()).format(value);
