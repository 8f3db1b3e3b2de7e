const closers: (() => Promise<void>)[] = [];

/** For `afterEach`: ends everything that a test has started, clients first. */
export const closeAll = async (): Promise<void> => {
  for (const close of closers.splice(0).reverse()) await close();
};

export const alsoClose = <T extends { close(): Promise<void> }>(thing: T): T => {
  closers.push(() => thing.close());
  return thing;
};
