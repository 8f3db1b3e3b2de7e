import { atTime, systemClock, type Clock } from '../service/clock';
import type { Problem } from '../service/errors';
import { inputKindOf } from './errors';
import type { Words } from './language';
import type { Outcome, Outputs } from './outcomes';
import type { RunningNode } from './red';
import { second } from '../durations';
import { visible } from '../visible';

export type Fill = 'green' | 'yellow' | 'red' | 'blue' | 'grey';

export interface StatusLook {
  readonly fill: Fill;
  readonly shape: 'dot' | 'ring';
  readonly text: string;
  /** The advisor who is asked to authorize; empty where any advisor may. */
  readonly unauthorized?: string | undefined;
}

export const look = (fill: Fill, shape: StatusLook['shape'], text: string): StatusLook => ({
  fill,
  shape,
  text,
});

/** Failures that last until somebody acts: their status says what to do, without a time. */
const actionTexts = new Map<string, string>([
  ['authorization_required', 'status.authorizeAgain'],
  ['not_configured', 'status.notConfigured'],
]);

/** The kind of a failure: its code, or for an invalid input the kind of value that is invalid. */
const kindOf = ({ code, wording }: Problem): string => inputKindOf(wording?.key ?? '') ?? code;

/** `at` is the time of the failure. */
export const failureLook = (words: Words, why: Problem | undefined, at: number, now: number): StatusLook => {
  const time = words.time(at, now);
  const said = (): string => {
    if (!why) return words.say('status.failed', { time });
    const action = why.wording?.key === 'not_authorized' ? 'status.authorize' : actionTexts.get(why.code);
    if (action !== undefined) return words.say(action);
    const kind = words.find(`failed.${kindOf(why)}`);
    return kind === undefined
      ? words.say('status.failed', { time })
      : words.say('status.failedFor', { why: kind, time });
  };
  const advisor = why?.wording?.values['advisor'];
  const unauthorized =
    why?.code === 'authorization_required' ? (typeof advisor === 'string' ? advisor : '') : undefined;
  return { ...look('red', 'ring', said()), unauthorized };
};

/** While a list is under way, or a search whose `total` may not be known. */
export const progressLook = (words: Words, done: number, total: number | undefined): StatusLook => {
  const read = words.number(done);
  return look(
    'blue',
    'dot',
    total === undefined
      ? words.say('status.read', { count: read })
      : words.say('status.progress', { done: read, total: words.number(total) }),
  );
};

/** What a search has come to, such as the number of records that it found. */
export const searchLook = (
  words: Words,
  result: 'found' | 'stopped' | 'done' | 'failed',
  count: number,
  at: number,
  now: number,
): StatusLook => {
  const text = words.say(`status.${result}`, { time: words.time(at, now), count: words.number(count) });
  return count > 0 ? look('green', 'dot', text) : look('grey', 'ring', text);
};

/** An advisor has to authorize again. */
export const authorizeLook = (words: Words): StatusLook =>
  look('red', 'ring', words.say('status.authorizeAgain'));

/** The service has asked for a pause. */
export const pausedLook = (words: Words, until: number, now: number): StatusLook =>
  look('yellow', 'ring', words.say('status.paused', { time: words.time(until, now) }));

export const storeTroubleLook = (words: Words): StatusLook =>
  look('red', 'ring', words.say('status.storeTrouble'));

export const storeLostLook = (words: Words): StatusLook => look('red', 'ring', words.say('status.storeLost'));

/** Texts are held until their recipients may be texted; the first until `notBefore`. */
export const heldLook = (words: Words, count: number, notBefore: number, now: number): StatusLook =>
  look(
    'blue',
    'ring',
    words.say('status.held', { count: words.number(count), time: words.time(notBefore, now) }),
  );

export interface Waiting {
  readonly count: number;
  /** When the next poll is due. */
  readonly next: number;
  /** How many people are waited for; undefined where that is not known. */
  readonly people: number | undefined;
  /** Why no answer comes. */
  readonly outage: Problem | undefined;
}

export const waitingLook = (
  words: Words,
  { count: waiting, next, people, outage }: Waiting,
  now: number,
): StatusLook => {
  const count = words.number(waiting);
  const why = outage && words.find(`failed.${outage.code}`);
  if (why !== undefined) return look('yellow', 'ring', words.say('status.waitingDespite', { count, why }));
  const time = words.time(next, now);
  if (people === undefined || people >= waiting)
    return look('blue', 'ring', words.say('status.waiting', { count, time }));
  const who = people === 1 ? 'status.onePerson' : 'status.people';
  const values = { count, time, people: words.say(who, { count: words.number(people) }) };
  return look('blue', 'ring', words.say('status.waitingPeople', values));
};

/** The mark before the status of a node on the simulator: nobody is really texted. */
export const simulatorMark = (words: Words, service: string | undefined): string =>
  service === 'simulator' ? `${words.say('status.sim')} ` : '';

export interface Status {
  /** Shows a look. It is made only when it is drawn, at most once a second. */
  show(look: () => StatusLook): void;
  /** Clears a status that asks for an authorization when that has been given. */
  clearIfAuthorized(isAuthorized: (advisor: string) => boolean): void;
  close(): void;
}

const leastInterval = second;

/** Shortly after the next midnight: the times of the day before then need a date. */
const tomorrowAfter = (now: number): number => new Date(now).setHours(24, 0, 1, 0);

/** `calendar` is the clock of the times in statuses: a simulator's can be moved by a day. */
export const createStatus = (
  node: Pick<RunningNode, 'status'>,
  prefix: () => string,
  clock: Clock = systemClock,
  calendar: Clock = clock,
): Status => {
  let latest: (() => StatusLook) | undefined;
  let lastDrawn = -Infinity;
  let lastText: string | undefined;
  let cancel: (() => void) | undefined;
  let unauthorized: string | undefined;
  let shown: (() => StatusLook) | undefined;
  let cancelTomorrow: (() => void) | undefined;
  let isClosed = false;

  const draw = (): void => {
    cancel = undefined;
    if (!latest) return;
    const drawn = latest();
    const { fill, shape, text } = drawn;
    shown = latest;
    latest = undefined;
    cancelTomorrow ??= atTime(calendar, tomorrowAfter(calendar.now()), () => {
      cancelTomorrow = undefined;
      latest ??= shown;
      draw();
    });
    unauthorized = drawn.unauthorized;
    lastDrawn = clock.now();
    const whole = visible(prefix() + text);
    const key = `${fill} ${shape} ${whole}`;
    if (key === lastText) return;
    lastText = key;
    node.status({ fill, shape, text: whole });
  };

  return {
    show(look) {
      if (isClosed) return;
      latest = look;
      if (cancel) return;
      const wait = lastDrawn + leastInterval - clock.now();
      if (wait <= 0) draw();
      else cancel = clock.after(Math.min(wait, leastInterval), draw);
    },
    clearIfAuthorized(isAuthorized) {
      if (unauthorized === undefined || !isAuthorized(unauthorized)) return;
      unauthorized = undefined;
      lastText = undefined;
      shown = undefined;
      node.status({});
    },
    close() {
      isClosed = true;
      cancel?.();
      cancelTomorrow?.();
    },
  };
};

interface Progress {
  readonly done: number;
  readonly total: number;
}

/** The status texts of the first output, which may depend on the payload, and of the third. */
export interface StatusTexts {
  readonly first: string | ((payload: unknown) => string);
  readonly third?: string;
  /** The time in the text of the first output, where that is a planned time. */
  readonly plannedFor?: (payload: unknown) => number | undefined;
}

const firstOf = ({ first }: StatusTexts, { payload }: Outcome): string =>
  typeof first === 'string' ? first : first(payload);

/** One sign for each output: signs read the same in every language. */
const signs = ['✓', '✗', '?'];

/** Such as `1 ✓ 1 ✗ 3 ?`. */
const countsLook = (words: Words, counts: readonly number[]): StatusLook => {
  const [first = 0, failed = 0, third = 0] = counts;
  const text = counts
    .flatMap((count, port) => (count > 0 ? [`${words.number(count)} ${signs[port] ?? ''}`] : []))
    .join(' ');
  if (failed + third === 0) return look('green', 'dot', text);
  return first + third === 0 ? look('red', 'ring', text) : look('yellow', 'dot', text);
};

/** What an outcome's status is made with. */
interface StatusTools {
  readonly words: Words;
  readonly status: Status;
  readonly outputs: Outputs;
  readonly now: () => number;
  environment(): { readonly settings: { readonly timeZone: string } };
}

/** Shows the progress of lists, the counts of a list that has ended, or the outcome of the last recipient. */
export const outcomeStatus =
  (tools: StatusTools, texts: StatusTexts, progress: () => Progress | undefined) =>
  /** `counts` come with the last outcome of a list, by the names of the outputs. */
  (outcome: Outcome, counts?: Readonly<Record<string, number>>): void => {
    const { words, now } = tools;
    const at = now();
    tools.status.show(() => {
      const { done = 0, total = 0 } = progress() ?? {};
      if (total > 0) return progressLook(words, done, total);
      if (counts)
        return countsLook(
          words,
          tools.outputs.names.map((name) => counts[name] ?? 0),
        );
      const { port, problem, payload } = outcome;
      const time = words.time(at, now());
      if (port === 0) {
        const planned = texts.plannedFor?.(payload);
        const when =
          planned === undefined
            ? time
            : words.moment(planned, tools.environment().settings.timeZone, outcome.offset);
        return look('green', 'dot', words.say(firstOf(texts, outcome), { time: when }));
      }
      const isRefused = port === 2 && problem?.code !== 'cancelled';
      if (isRefused && texts.third) return look('yellow', 'ring', words.say(texts.third, { time }));
      const failure = failureLook(words, problem, at, now());
      return port === 2 ? look('yellow', 'ring', failure.text) : failure;
    });
  };
