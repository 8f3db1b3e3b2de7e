import type { Engine, Store } from '../../../lib/state/store';

/** A store with changes. Over one in memory it is as in another process: what is kept by the store is not shared. */
export const overStore = <T extends Partial<Store>>(
  store: Store,
  changes?: T,
  ofEngine?: Partial<Engine>,
): Store & T => {
  const own = Object.getOwnPropertyDescriptors(changes ?? {});
  const value =
    store.engine.durable && !ofEngine
      ? store.engine
      : Object.defineProperties(
          Object.create(store.engine) as Engine,
          Object.getOwnPropertyDescriptors(ofEngine ?? {}),
        );
  return Object.defineProperties(Object.create(store) as Store & T, { engine: { value }, ...own });
};
