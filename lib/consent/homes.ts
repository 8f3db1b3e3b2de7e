import type { Store } from '../state/store';

export interface Move {
  /** Whether a wait on disk was begun in another environment. */
  isForeign(id: string): boolean;
  /** All of those have ended. */
  done(): Promise<void>;
}

/**
 * From now on this environment is the node's home. Waits begun before it was given to the node are not this
 * environment's: it must not be asked about people who were to be waited for elsewhere. That stays on record until they
 * have ended, for the process may be killed, or the node closed, before. `now` is an id of this moment.
 */
export const moveIn = async (
  store: Store,
  node: string,
  environment: string,
  now: string,
): Promise<Move | undefined> => {
  const homes = store.table<string>('homes');
  const homeKey = `${node}/home`;
  const movedKey = `${node}/moved`;
  const home = await homes.get(homeKey);
  const hasMoved = home !== undefined && home !== environment;
  const put = { put: homeKey, value: environment };
  if (hasMoved) await homes.write([put, { put: movedKey, value: now }]);
  else if (home === undefined) await homes.write([put]);
  const moved = hasMoved ? now : await homes.get(movedKey);
  if (moved === undefined) return undefined;
  return {
    isForeign: (id) => hasMoved || id < moved,
    done: () => homes.writeSoon([{ remove: movedKey }]),
  };
};
