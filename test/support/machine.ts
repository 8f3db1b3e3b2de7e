/** Why tests were left out: the machine lacks what they need. */
export const notHere = new Set<string>();

/**
 * Leaves out a test, or from a `before` all tests of its suite, if the machine lacks something. In CI on
 * Linux, which can have everything, it fails.
 */
export const leaveOut = (context: Mocha.Context, reason: string): never => {
  if (process.env['CI'] && process.platform === 'linux') throw new Error(`This cannot run here: ${reason}`);
  notHere.add(reason);
  return context.skip();
};
