/** The event loop has come round: what was under way without waiting for the world has gone a step on. */
export const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
