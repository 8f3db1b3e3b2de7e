import type { Fault } from '../faults';
import type { Message } from '../state/line';
import type { Settings } from '../state/settings';

export type { Message };

/** What the page reads from control/state, and nothing more: the simulator may send further fields. */
export interface SimulatorState {
  readonly now: number;
  /** How far that is ahead of real time, in ms. */
  readonly ahead: number;
  /** The keys of those with an account. */
  readonly advisors: readonly string[];
  readonly identities: readonly { readonly advisor: string; readonly name: string }[];
  readonly phones: readonly Line[];
  /** How many numbers something happened on; `phones` holds the latest of them. */
  readonly phoneCount: number;
  readonly contacts: { readonly count: number };
  /** Whether a flow of Node-RED is on this simulator; null where none can be known of. */
  readonly hasFlows: boolean | null;
  readonly faults: readonly Fault[];
  readonly settings: Settings;
}

/** What passed between one advisor and one number. */
export interface Line {
  readonly phone: string;
  readonly name: string;
  readonly advisor: string;
  readonly consent: string;
  readonly messages: readonly Message[];
}

/** A number, whoever texts it. */
export interface Phone {
  readonly phone: string;
  readonly name: string;
  /** At least one. */
  readonly lines: readonly Line[];
}

export interface Contact {
  readonly advisor: string;
  readonly contactId: number;
  readonly fullName: string;
  readonly phone: string;
  readonly email: string;
  readonly groupNames: readonly string[];
}

/** One page of control/contacts. */
export interface ContactPage {
  readonly data: readonly Contact[];
  readonly total: number;
}
