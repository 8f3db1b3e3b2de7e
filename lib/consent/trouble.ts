/** What can go wrong with waits on disk; nobody is left waiting by it, and whoever knows Node-RED says it. */
export type Trouble = 'unsettled' | 'notRemoved' | 'notPacked';

export type Warn = (trouble: Trouble, fault: unknown) => void;
