import type { Red } from './red';

/** What may stand beside a sentence in the log: never a secret, a token or a text. */
export interface About {
  readonly environment?: string;
  readonly advisor?: string;
  readonly phone?: string;
  readonly code?: string;
  readonly status?: number;
  readonly traceId?: string;
}

export interface Log {
  info(sentence: string, about?: About): void;
  warn(sentence: string, about?: About): void;
  error(sentence: string, about?: About): void;
}

/** `…0199`: enough to recognize the recipient, too little to text them. */
export const lastFour = (phone: string): string => `…${phone.slice(-4)}`;

export const hideNumbers = (sentence: string): string => sentence.replaceAll(/\+\d{8,15}\b/g, lastFour);

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

const line = (sentence: string, { phone, ...rest }: About = {}): string => {
  const shown = Object.entries({ ...rest, ...(phone === undefined ? {} : { phone: lastFour(phone) }) });
  const details = shown.map(([name, value]) => `${name} ${String(value)}`).join(', ');
  return `[advisor-texting] ${redact(sentence)}${details === '' ? '' : ` (${redact(details)})`}`;
};

/** The one way to Node-RED's log for what concerns no single node. */
export const logOf = (RED: Pick<Red, 'log'>): Log => ({
  info: (sentence, about) => {
    RED.log.info(line(sentence, about));
  },
  warn: (sentence, about) => {
    RED.log.warn(line(sentence, about));
  },
  error: (sentence, about) => {
    RED.log.error(line(sentence, about));
  },
});
