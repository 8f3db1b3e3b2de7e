/** Milliseconds after which keep-alive connections have ended. */
const patience = 10_000;

/** What keeps this process from exiting, such as timers and servers: the number of each kind. */
export const openResources = (): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
};

const atStart = openResources();

/** What is open that was not open before, such as `2 Timeout`; what is just closing has a few seconds. */
export const whatStaysOpen = async (before = new Map<string, number>()): Promise<string[]> => {
  const end = Date.now() + patience;
  for (;;) {
    const left = [...openResources()]
      .map(([kind, count]) => [count - (before.get(kind) ?? 0), kind] as const)
      .filter(([more]) => more > 0);
    if (left.length === 0 || Date.now() > end) return left.map(([more, kind]) => `${more} ${kind}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

/** For plain mocha: says what keeps it from exiting, and exits. */
export const mochaGlobalTeardown = async (): Promise<void> => {
  const left = await whatStaysOpen(atStart);
  if (left.length === 0) return;
  console.error(`These tests leave ${left.join(', ')} open, and would never end. Close it in \`after\`.`);
  process.exit(1);
};
