import { problemCodes, type ProblemCode } from './codes';
import type { Effect } from './effects';

/** What a number does, in every account. All are fictional (+1 xxx 555 01xx) and documented in docs/simulator.md. */
export interface Magic {
  readonly phone: string;
  /** The name of its contact in lists and on the phones page. */
  readonly name: string;
  readonly does: string;
  /** The owner has consented before anybody asked. */
  readonly consented?: true;
  /** How the owner answers a consent request: accepts after this many checks of the consent status, or declines. */
  readonly answers?: { readonly afterChecks: number } | 'declines';
  /** A send fails for lack of consent though the consent status says `accepted`. */
  readonly disbelieved?: true;
  /** The reason why no text reaches the number, even with consent. */
  readonly refusal?: string;
  readonly effect?: Effect;
  /** The effect applies only to the first request, for each advisor and endpoint. */
  readonly once?: true;
}

const magicPhone = (line: number): string => `+1202555${String(line).padStart(4, '0')}`;

/** Numbers that accept by themselves have people's names, because they are in the examples. */
const accepting = [
  'Bea Lang',
  'Cem Aydin',
  'Dana Brooks',
  'Erin Cole',
  'Finn Moss',
  'Gita Rao',
  'Hal Wood',
  'Ivo Kral',
  'Juno Park',
];

const times = (count: number): string => (count === 1 ? '1 check' : `${String(count)} checks`);

const consenting: readonly Magic[] = [
  {
    phone: magicPhone(100),
    name: 'Accepts At Once',
    does: 'accepts at once: the answer to a consent request already says accepted',
    answers: { afterChecks: 0 },
  },
  ...accepting.map((name, index): Magic => {
    const checks = index + 1;
    return {
      phone: magicPhone(100 + checks),
      name,
      does: `accepts a consent request by itself: ${times(checks)} of the consent status ${checks === 1 ? 'says' : 'say'} pending, then accepted`,
      answers: { afterChecks: checks },
    };
  }),
  {
    phone: magicPhone(110),
    name: 'Declines',
    does: 'declines a consent request, which the contract shows as pending',
    answers: 'declines',
  },
  {
    phone: magicPhone(111),
    name: 'Stays Silent',
    does: 'never answers a consent request: still pending after a day of polling',
    answers: { afterChecks: Infinity },
  },
  {
    phone: magicPhone(112),
    name: 'Has Not Consented',
    does: 'is a contact that was never asked: none, and a send fails for lack of consent',
  },
  {
    phone: magicPhone(113),
    name: 'Has Consented',
    does: 'has already accepted: texts arrive, and a consent request answers 400 invalid_request',
    consented: true,
  },
  {
    phone: magicPhone(114),
    name: 'Opted Out',
    does: 'has opted out: sends and consent requests answer 200 with a failure that says so',
    refusal: 'the recipient has opted out of texts (replied STOP)',
  },
  {
    phone: magicPhone(115),
    name: 'Is A Landline',
    does: 'is a landline: sends and consent requests answer 200 with a failure that says so',
    refusal: 'the number is a landline and cannot receive texts',
  },
  {
    phone: magicPhone(116),
    name: 'Is Not Believed',
    does: 'has already accepted, and a send still fails for lack of consent',
    consented: true,
    disbelieved: true,
  },
];

const faulty = (line: number, name: string, does: string, effect: Effect, once?: true): Magic => ({
  phone: magicPhone(line),
  name,
  does,
  consented: true,
  effect,
  ...(once === undefined ? {} : { once }),
});

const network: readonly Magic[] = [
  faulty(120, 'Slow', 'answers after 3 seconds', { kind: 'slow', delay: 3 }),
  faulty(121, 'Very Slow', 'answers after 60 seconds, later than most clients wait', {
    kind: 'slow',
    delay: 60,
  }),
  faulty(
    130,
    'Cut Before Once',
    'once: the connection is cut before the request is processed',
    { kind: 'cut-before' },
    true,
  ),
  faulty(131, 'Cut Before', 'always: the connection is cut before the request is processed', {
    kind: 'cut-before',
  }),
  faulty(
    132,
    'Cut After Once',
    'once: the request is processed, then the connection is cut',
    { kind: 'cut-after' },
    true,
  ),
  faulty(133, 'Cut After', 'always: the request is processed, then the connection is cut', {
    kind: 'cut-after',
  }),
  faulty(
    134,
    'Cut Inside',
    'always: the request is processed and the connection cut in the middle of the answer',
    { kind: 'cut-inside' },
  ),
  faulty(140, 'Gateway Page', 'always: 502 with an HTML page, not processed', { kind: 'gateway' }),
  faulty(141, 'Empty 502', 'always: 502 without a body, not processed', { kind: 'empty' }),
  faulty(142, 'Truncated', 'always: processed, and answered 200 with JSON that stops halfway', {
    kind: 'truncated',
  }),
  faulty(143, 'Malformed', 'always: processed, and answered 200 with JSON in another format', {
    kind: 'malformed',
  }),
];

const errors = (Object.keys(problemCodes) as ProblemCode[]).flatMap((code, index): Magic[] => {
  const words = code.replaceAll('_', ' ').replace(/\b\w/g, (letter) => letter.toUpperCase());
  const answer = `${String(problemCodes[code].status)} ${code}`;
  return [
    faulty(150 + index, `${words} Once`, `once: ${answer}, then fine`, { code }, true),
    faulty(170 + index, words, `always: ${answer}`, { code }),
  ];
});

export const magicNumbers: readonly Magic[] = [
  ...consenting,
  ...network,
  ...errors.filter(({ once }) => once),
  ...errors.filter(({ once }) => !once),
];

const byPhone = new Map(magicNumbers.map((magic) => [magic.phone, magic]));

export const magicOf = (phone: string): Magic | undefined => byPhone.get(phone);
