/** The only result. */
export const only = <T>(things: readonly T[]): T => {
  const [thing, ...others] = things;
  if (thing === undefined || others.length > 0) throw new Error(`${String(things.length)} instead of one`);
  return thing;
};
