const baseOf = (tag: string): string => tag.split('-')[0] ?? '';

/** How to write numbers and dates: in the editor's language, of whose regions the browser knows the right one. */
export const locale = (): string => {
  const spoken = RED.i18n.lang();
  return navigator.languages.find((tag) => baseOf(tag) === baseOf(spoken)) ?? spoken;
};

export const numberOf = (value: number): string => new Intl.NumberFormat(locale()).format(value);
