import type { Fault } from '../effects';
import type { PhoneMessage } from '../state/line';
import type { Settings } from '../state/settings';

export type { PhoneMessage };

/** The fields of control/state that the page reads; the simulator may send more. */
export interface SimulatorState {
  readonly now: number;
  /** How far that time is ahead of real time, in milliseconds. */
  readonly ahead: number;
  /** The keys of advisors with an account. */
  readonly advisors: readonly string[];
  readonly identities: readonly { readonly advisor: string; readonly name: string }[];
  readonly phones: readonly ShownLine[];
  /** The number of phones on which something has happened; `phones` holds the latest of them. */
  readonly phoneCount: number;
  readonly contacts: { readonly count: number };
  /** Whether a flow of Node-RED uses this simulator; null if unknown. */
  readonly hasFlows: boolean | null;
  readonly faults: readonly Fault[];
  readonly settings: Settings;
}

/** All messages between one advisor and one number. */
export interface ShownLine {
  readonly phone: string;
  readonly name: string;
  readonly advisor: string;
  readonly consent: string;
  readonly messages: readonly PhoneMessage[];
}

/** A number, with all advisors who text it. */
export interface Phone {
  readonly phone: string;
  readonly name: string;
  /** At least one. */
  readonly lines: readonly ShownLine[];
}

export interface ShownContact {
  readonly advisor: string;
  readonly contactId: number;
  readonly fullName: string;
  readonly phone: string;
  readonly email: string;
  readonly groupNames: readonly string[];
}

/** One page of control/contacts. */
export interface ContactPage {
  readonly data: readonly ShownContact[];
  readonly total: number;
}
