/** The last task of each key; a key is forgotten when its last task has ended. */
const lastOf = new Map<string, Promise<void>>();

/**
 * Runs the tasks of one key one after the other, in the order they came, whichever node they come from: what one read
 * is what it writes back.
 */
export const oneAtATime = <T>(key: string, task: () => Promise<T>): Promise<T> => {
  const before = lastOf.get(key);
  const result = before ? before.then(task) : task();
  const ended = result.then(
    () => undefined,
    () => undefined,
  );
  lastOf.set(key, ended);
  void ended.then(() => {
    if (lastOf.get(key) === ended) lastOf.delete(key);
  });
  return result;
};

/** Works through a list, `width` of it at a time: a list of 10,000 must not become 10,000 requests in waiting. */
export const eachOf = async <T>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> => {
  const remaining = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of remaining) await work(item, index);
  };
  await Promise.all(Array.from({ length: Math.min(Math.max(1, width), items.length) }, worker));
};
