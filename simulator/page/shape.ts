/** What the page reads from control/state, and nothing more: the simulator may send further fields. */
export interface SimulatorState {
  readonly now: number;
  readonly advisors: readonly string[];
  readonly phones: readonly Phone[];
  readonly contacts: { readonly count: number };
  readonly faults: readonly Fault[];
  readonly settings: Readonly<Record<string, boolean | number | string | null>>;
}

export interface Phone {
  readonly phone: string;
  readonly name: string;
  readonly advisor: string;
  readonly contactId: number;
  readonly memberId: number;
  readonly consent: string;
  readonly messages: readonly Message[];
}

export interface Message {
  readonly id: number | string;
  readonly at: number;
  readonly kind: 'text' | 'consent-request' | 'reply';
  readonly text: string;
  readonly messageId?: number | null;
  readonly scheduledFor?: number | null;
  readonly from?: string;
}

/** A fault as it stands in the simulator: what happens, where, and how often still. */
export interface Fault {
  readonly endpoint?: string;
  readonly code?: string;
  readonly status?: number;
  readonly kind?: string;
  readonly rate?: number;
  readonly next?: number;
}

export interface Contact {
  readonly contactId: number;
  readonly fullName: string;
  readonly phone: string;
  readonly email: string;
  readonly groupNames: readonly string[];
  readonly sourceText: string;
}

/** control/contacts?advisor=&page=&pageSize=&filter= */
export interface ContactPage {
  readonly data: readonly Contact[];
  readonly total: number;
}
