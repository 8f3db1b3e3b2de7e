import type { Store } from '../../../lib/state/store';

/** A store with changes. Over one in memory it is as in another process: what is kept by the store is not shared. */
export const overStore = <T extends Partial<Store>>(store: Store, changes?: T): Store & T => {
  const engine = { value: store.durable ? store.engine : (Object.create(store.engine) as unknown) };
  const own = Object.getOwnPropertyDescriptors(changes ?? {});
  return Object.defineProperties(Object.create(store) as Store & T, { engine, ...own });
};
