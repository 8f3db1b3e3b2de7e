/** Numbers that the simulator documents. */
export const numbers = {
  /** Never answers a consent request. */
  silent: '+12025550111',
  /** A contact that was never asked. */
  unasked: '+12025550112',
  consented: '+12025550113',
  optedOut: '+12025550114',
  landline: '+12025550115',
  /** Has accepted, and is still rejected for lack of consent. */
  disbelieved: '+12025550116',
} as const;

/** Those of which a text contains more than the last four digits: fewer than seven occur in timestamps or ids. */
export const toldIn = (text: string, phones: readonly string[]): string[] =>
  phones.filter((phone) => new RegExp(`${phone.slice(-7, -4)}\\W?${phone.slice(-4)}`).test(text));
