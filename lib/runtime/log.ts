import { visible } from '../visible';
import type { Red } from './red';

/** A sentence never holds a secret, a token or a text. */
export type Log = Readonly<Record<'info' | 'warn' | 'error', (sentence: string) => void>>;

const digitsIn = (phone: string): string => phone.replaceAll(/\P{Nd}/gu, '');

/** `…0199`: enough to recognize the recipient, too little to text them. */
export const lastFour = (phone: string): string => `…${digitsIn(phone).slice(-4)}`;

/** The number that our own sentences give as an example. It is fictional. */
const example = '12025550123';

/** Phone numbers as people and programs write them. */
const writtenNumbers = [
  // International, with up to two separators, which may be invisible, between the digits.
  /(?:\+|(?<!\p{Nd})00)[\s().\-‐-―/\p{Cf}]{0,2}\p{Nd}(?:[\s().\-‐-―/\p{Cf}]{0,2}\p{Nd}){7,14}(?!\p{Nd})/gu,
  // An area code in parentheses.
  /\(\p{Nd}{2,5}\)(?:[\s.\-‐-―/\p{Cf}]{0,2}\p{Nd}){5,10}(?!\p{Nd})/gu,
  // In the groups of North America.
  /(?<!\p{Nd})(?:1[\s.\-‐-―\p{Cf}])?\p{Nd}{3}[\s.\-‐-―\p{Cf}]\p{Nd}{3}[\s.\-‐-―\p{Cf}]\p{Nd}{4}(?!\p{Nd})/gu,
  /(?<!\p{Nd})\p{Nd}{10,15}(?!\p{Nd})/gu,
] as const;

export const hideNumbers = (sentence: string): string =>
  writtenNumbers.reduce(
    (hidden, written) =>
      hidden.replaceAll(written, (number) => (digitsIn(number) === example ? number : lastFour(number))),
    sentence,
  );

/**
 * Hides secrets and numbers. Our own sentences hold none, but the message of a platform error may quote an address or a
 * number.
 */
export const redact = (sentence: string): string =>
  hideNumbers(sentence)
    .replaceAll(/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, '[token]')
    .replaceAll(/\bBearer\s+\S+/gi, 'Bearer [token]')
    .replaceAll(
      /\b(code|state|key|access_token|refresh_token|client_secret|code_verifier|x-api-key|api_?key)(["']?\s*[=:]\s*["']?)[^\s"'&,;]+/gi,
      '$1$2[hidden]',
    );

const line = (sentence: string): string => visible(`[advisor-texting] ${redact(sentence)}`);

/** The only way to Node-RED's log for messages that are not about a single node. */
export const logOf = ({ log }: Pick<Red, 'log'>): Log => ({
  info: (sentence) => log.info(line(sentence)),
  warn: (sentence) => log.warn(line(sentence)),
  error: (sentence) => log.error(line(sentence)),
});
