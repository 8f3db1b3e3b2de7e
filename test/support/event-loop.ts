/** The next iteration of the event loop: everything that waits for nothing external has advanced. */
export const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
