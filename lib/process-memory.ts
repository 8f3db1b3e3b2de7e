/**
 * Everything that outlives a deploy in memory. What is not here belongs to an environment or a node and ends with it; what
 * must survive the process is in the store.
 */
type ProcessMemory =
  /** Stores in files and databases: one handle for all environments that use one, closed with the last. */
  | 'stores'
  /** Stores that are in memory because the disk cannot be used: as much as can be kept then. */
  | 'storesInMemory'
  /** The keys that seal what is on disk, where the runtime keeps no settings. */
  | 'unsavedKeys'
  /** What all environments of a runtime share: vault, tokens, simulator. */
  | 'services'
  /** The environments that run, for routes that ask for one. */
  | 'environments'
  /** The service each node's status speaks of: after a change of service it is cleared. */
  | 'statuses'
  /** Parts of messages that no disk holds, such as an open connection. */
  | 'liveMessages'
  /** Outcomes on their way from one node of ours to the next, which a deploy does not stop. */
  | 'handOvers'
  /** The last arrival: no two items have the same, nor one that sorts before an earlier one. */
  | 'arrivals'
  /** Texts with a key of their own that are in flight: a deploy waits for them, and the next node must not send again. */
  | 'onceKeys'
  /** Changes of one contact or group, one after the other, also across a deploy. */
  | 'turns'
  /** What was said in the log and is not said again. */
  | 'saidOnce'
  /** Results of calculations that take long, by their input: forgotten, they are made again. */
  | 'calculated';

/** A value that lives as long as the process, by what it is for. */
export const processMemory = <T extends object>(_what: ProcessMemory, made: T): T => made;
