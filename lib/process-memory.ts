/**
 * Everything in memory that outlives a deploy. All other state in memory belongs to an environment, a node or a store
 * and ends with it, or is a table, a buffer or a module that is made when it is first needed; what must survive the
 * process is in the store.
 */
type ProcessMemory =
  /** One handle on a store for all environments, closed with the last; one in memory, without a usable disk, is kept. */
  | 'stores'
  /** What all environments of a runtime share: vault, tokens, simulator. */
  | 'services'
  /** The running environments, for routes that name one. */
  | 'environments'
  /** Whether the flows of a runtime are stopping, and tasks for their next start. */
  | 'flows'
  /** Our listeners to the events of a runtime: one for each event, however often our nodes are registered or made. */
  | 'listeners'
  /** The service that each node's status is about: when the service changes, the status is cleared. */
  | 'statuses'
  /** Parts of messages that cannot be stored, such as an open connection. */
  | 'liveMessages'
  /** Outcomes on their way from one node of ours to the next, which a deploy does not stop. */
  | 'handOvers'
  /** Messages that wait for a store in trouble: a deploy does not lose them. */
  | 'unaccepted'
  /** What each node has in work: a deploy does not stop it, and the next start must not take it up again. */
  | 'queues'
  /** The last arrival number: each is unique, and sorts after all earlier ones. */
  | 'arrivals'
  /** Texts with a once-key that are in flight: a deploy waits for them, and the next node must not send them again. */
  | 'onceKeys'
  /** Changes of one contact or group run one after the other, also across a deploy. */
  | 'turns'
  /** The instruments of the process: making one twice would count it twice. */
  | 'metrics'
  /** Until when each service has asked for a pause: a deploy does not end it. */
  | 'pauses'
  /** Results of long calculations, by their input; they can be calculated again. */
  | 'calculated';

/** Names the purpose of a variable that lives as long as the process. A test finds those without it. */
export const processMemory = <T extends object>(_what: ProcessMemory, made: T): T => made;

/** The most results that are remembered: their inputs may come from messages, so there is no limit to them. */
const mostCalculated = 1000;

/** The result for this input, from memory or calculated. */
export const calculated = <T>(results: Map<string, T>, input: string, calculate: () => T): T => {
  if (results.size >= mostCalculated && !results.has(input)) results.clear();
  return orMake(results, input, calculate);
};

interface Values<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

/** The value of a key, which is made when it is first needed. */
export const orMake = <K, V>(values: Values<K, V>, key: K, make: () => V): V => {
  const value = values.get(key) ?? make();
  values.set(key, value);
  return value;
};

/** What a process has once, however many use it. */
export interface Shared<T, L> {
  users: number;
  readonly made: T;
  /** What the last user has left. */
  left?: Promise<L> | undefined;
}

/** Makes what is shared by a name where there is none. `close`, once for each user, ends it with the last. */
export const share = <T, L>(
  all: Map<string, Shared<T, L>>,
  name: string,
  make: (left: Promise<L> | undefined) => T,
): { readonly made: T; readonly close: (end: () => Promise<L> | undefined) => Promise<void> } => {
  const known = all.get(name);
  const shared: Shared<T, L> = known && !known.left ? known : { users: 0, made: make(known?.left) };
  all.set(name, shared);
  shared.users += 1;
  let isOpen = true;
  const close = async (end: () => Promise<L> | undefined): Promise<void> => {
    if (isOpen && --shared.users === 0) shared.left = end();
    isOpen = false;
    await shared.left;
  };
  return { made: shared.made, close };
};
