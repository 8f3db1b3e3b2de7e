export interface PhoneMessage {
  readonly id: number;
  /** When the service accepted it. */
  readonly at: number;
  readonly kind: 'text' | 'consent-request' | 'reply';
  readonly text: string;
  readonly messageId: number | null;
  /** When a scheduled text arrives. */
  readonly scheduledFor: number | null;
}

/** All messages between an advisor and one number. */
export interface Line {
  readonly phone: string;
  asked: boolean;
  answer: 'accepted' | 'declined' | null;
  lastChanged: number;
  /** Checks of the consent status since the last consent request. */
  checks: number;
  /** Endpoints at which a magic number has shown its one error. */
  struck: string[];
  messages: PhoneMessage[];
  /** When something last happened; the latest are shown first. */
  touched: number;
}

export type ConsentState = 'none' | 'pending' | 'accepted';

/** The most texts that are kept for one number, so that a long load test cannot fill the memory. */
const keptMessages = 100;

export const freshLine = (phone: string, consented: boolean, now: number): Line => ({
  phone,
  asked: false,
  answer: consented ? 'accepted' : null,
  lastChanged: now,
  checks: 0,
  struck: [],
  messages: [],
  touched: now,
});

/** The contract has no state for a decline (*States and transitions*): the consent stays pending. */
export const consentStateOf = (line: Line): ConsentState => {
  if (line.answer === 'accepted') return 'accepted';
  return line.asked || line.answer === 'declined' ? 'pending' : 'none';
};

export const keepMessage = (line: Line, message: PhoneMessage): void => {
  line.messages.push(message);
  if (line.messages.length > 2 * keptMessages) line.messages = line.messages.slice(-keptMessages);
  line.touched = message.at;
};

export const arrived = (message: PhoneMessage, now: number): boolean =>
  message.scheduledFor === null || message.scheduledFor <= now;
