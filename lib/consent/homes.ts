import type { Store } from '../state/store';

/**
 * Whether a node was given another environment since it last waited, and from now on this one is its home: it must not
 * ask here about people it was to wait for elsewhere.
 */
export const hasMoved = async (store: Store, node: string, environment: string): Promise<boolean> => {
  const homes = store.table<string>('homes');
  const key = `${node}/home`;
  const home = await homes.get(key);
  if (home !== environment) await homes.write([{ put: key, value: environment }]);
  return home !== undefined && home !== environment;
};
