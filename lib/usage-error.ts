/** A mistake on the command line that the user can correct. */
export class UsageError extends Error {}
