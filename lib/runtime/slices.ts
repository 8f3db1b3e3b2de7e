import { setImmediate as nextTick } from 'node:timers/promises';

/** The number of entries of a list that are read before other work has its turn. */
const entriesAtOnce = 2000;

/**
 * As `map`, also for the holes of a sparse array. A long list is read in slices, between which Node-RED goes on: a
 * number in the notation of its country takes long to read.
 */
export const mapInSlices = <T, R>(
  list: readonly T[],
  map: (entry: T | undefined, index: number) => R,
): R[] | Promise<R[]> => {
  const results: R[] = [];
  const read = (): void => {
    const to = Math.min(list.length, results.length + entriesAtOnce);
    for (let index = results.length; index < to; index++) results.push(map(list[index], index));
  };
  read();
  if (results.length === list.length) return results;
  return (async () => {
    while (results.length < list.length) {
      await nextTick();
      read();
    }
    return results;
  })();
};

/** Goes on with a value that may have to be waited for, at once where it need not. */
export const whenRead = <T, R>(value: T | Promise<T>, goOn: (value: T) => R | Promise<R>): R | Promise<R> =>
  value instanceof Promise ? value.then(goOn) : goOn(value);
