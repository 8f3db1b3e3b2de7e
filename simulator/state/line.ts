import { z } from 'zod';

const phoneMessage = z.object({
  id: z.int(),
  /** When the service accepted it. */
  at: z.number(),
  kind: z.enum(['text', 'consent-request', 'reply']),
  text: z.string(),
  messageId: z.int().nullable(),
  /** When a scheduled text arrives. */
  scheduledFor: z.number().nullable(),
});
export type PhoneMessage = z.output<typeof phoneMessage>;

/** All messages between an advisor and one number. */
export const lineSchema = z.object({
  phone: z.string(),
  asked: z.boolean(),
  answer: z.enum(['accepted', 'declined']).nullable(),
  lastChanged: z.number(),
  /** Checks of the consent status since the last consent request. */
  checks: z.int(),
  /** Endpoints at which a magic number has shown its one error. */
  struck: z.array(z.string()),
  messages: z.array(phoneMessage),
  /** When something last happened; the latest are shown first. */
  touched: z.number(),
});
export type Line = z.output<typeof lineSchema>;

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
