import { atTime, systemClock, type Clock } from '../service/clock';
import type { Problem } from '../service/errors';
import type { Environment } from './environment';
import type { Words } from './language';
import { codePrefix, isOfDryRun, type OutcomeCounts, type Outputs } from './delivery';
import type { Outcome } from '../outbox/outcome';
import type { Queue } from '../outbox/queue';
import type { RunningNode } from './red';
import { second } from '../durations';
import { visible } from '../visible';

export type Fill = 'green' | 'yellow' | 'red' | 'blue' | 'grey';

export interface StatusLook {
  readonly fill: Fill;
  readonly shape: 'dot' | 'ring';
  readonly text: string;
  /** The advisor who is asked to authorize; empty if any advisor may. */
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

const neverAuthorized = new Set([
  'not_authorized',
  'nobody_authorized',
  'advisor_unauthorized',
  'advisor_case',
]);

/** The kind of a failure: its code, or for an invalid input the kind of value that is invalid. */
const kindOf = ({ code, wording }: Problem): string =>
  /^(phone|text|date|group)s?_/.exec(wording?.key ?? '')?.[1] ?? code;

export const failureLook = (words: Words, why: Problem | undefined, at: number, now: number): StatusLook => {
  const time = words.time(at, now);
  const said = (): string => {
    if (!why) return words.say('status.failed', { time });
    const action = neverAuthorized.has(why.wording?.key ?? '')
      ? 'status.notAuthorized'
      : actionTexts.get(why.code);
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

/** No advisor is authorized; `hasEnded` when one was. */
export const unauthorizedLook = (words: Words, hasEnded: boolean): StatusLook => ({
  ...look('red', 'ring', words.say(hasEnded ? 'status.authorizeAgain' : 'status.notAuthorized')),
  unauthorized: '',
});

/** Texts are held until their recipients, who may be in other zones, may be texted; the first until `notBefore`. */
export const heldLook = (words: Words, count: number, notBefore: number, now: number): StatusLook => {
  const values = { count: words.number(count), time: words.zonedTime(notBefore, now) };
  return look('blue', 'ring', words.say(count === 1 ? 'status.held' : 'status.heldNext', values));
};

/** Messages that came back too often are delayed, the first until `until`. */
export const loopLook = (words: Words, count: number, until: number, now: number): StatusLook =>
  look(
    'yellow',
    'ring',
    words.say('status.loop', { count: words.number(count), time: words.time(until, now) }),
  );

export interface Waiting {
  readonly count: number;
  readonly next: number;
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

export type Status = ReturnType<typeof createStatus>;

const leastInterval = second;

/** Shortly after the next midnight: the times of the day before then need a date. */
const tomorrowAfter = (now: number): number => new Date(now).setHours(24, 0, 1, 0);

/**
 * Times in statuses are by the clock of the environment: a simulator's can be moved by a day. A status from before a
 * deploy (`hasOld`) stays in the editor until the node shows another, or until midnight, because it would then need a
 * date.
 */
export const createStatus = (
  node: Pick<RunningNode, 'status'>,
  words: Pick<Words, 'say'>,
  environment: Pick<Environment, 'service' | 'clock'> | undefined,
  hasOld = false,
  clock: Clock = systemClock,
) => {
  const calendar = environment?.clock ?? clock;
  /** Words before each status. On the simulator, nobody is really texted. */
  const marks = new Set(environment?.service === 'simulator' ? ['status.sim'] : []);
  let current: (() => StatusLook) | undefined;
  let lastDrawn = -Infinity;
  let lastText: string | undefined;
  let cancel: (() => void) | undefined;
  let cancelTomorrow: (() => void) | undefined;
  let isClosed = false;

  const drawTomorrow = (): void => {
    cancelTomorrow ??= atTime(calendar, tomorrowAfter(calendar.now()), () => {
      cancelTomorrow = undefined;
      if (current) draw();
      else node.status({});
    });
  };

  const draw = (): void => {
    cancel = undefined;
    if (!current) return;
    const { fill, shape, text } = current();
    drawTomorrow();
    lastDrawn = clock.now();
    const whole = visible([...Array.from(marks, (mark) => words.say(mark)), text].join(' '));
    const key = `${fill} ${shape} ${whole}`;
    if (key === lastText) return;
    lastText = key;
    node.status({ fill, shape, text: whole });
  };
  if (hasOld) drawTomorrow();

  return {
    /** Shows a look, which is made when it is drawn, at most once a second. */
    show(look: () => StatusLook): void {
      if (isClosed) return;
      current = look;
      if (cancel) return;
      const wait = lastDrawn + leastInterval - clock.now();
      if (wait <= 0) draw();
      else cancel = clock.after(Math.min(wait, leastInterval), draw);
    },
    /** From now on, every status says that waits and records do not outlive the process. */
    markUnsaved(): void {
      marks.add('status.unsaved');
    },
    /** Clears a status that asks for an authorization when that has been given. */
    clearIfAuthorized(isAuthorized: (advisor: string) => boolean): void {
      const { unauthorized } = current?.() ?? {};
      if (unauthorized === undefined || !isAuthorized(unauthorized)) return;
      current = undefined;
      lastText = undefined;
      node.status({});
    },
    /** Clears a status that asks for an authorization: after a deploy, it may be about settings of before. */
    close(): void {
      if (current?.().unauthorized !== undefined) node.status({});
      isClosed = true;
      cancel?.();
      cancelTomorrow?.();
    },
  };
};

type QueueState = Pick<Queue, 'progress' | 'heldItems'>;

export const stateOf = (queues: Iterable<QueueState>): QueueState => {
  const progress = { done: 0, total: 0 };
  const heldItems = { count: 0, notBefore: Infinity };
  for (const { progress: own, heldItems: held } of queues) {
    progress.done += own.done;
    progress.total += own.total;
    heldItems.count += held?.count ?? 0;
    heldItems.notBefore = Math.min(heldItems.notBefore, held?.notBefore ?? Infinity);
  }
  return { progress, heldItems: heldItems.count > 0 ? heldItems : undefined };
};

/** The status texts of the first output, which may depend on the payload, and of the third. */
export interface StatusTexts {
  readonly first: string | ((payload: unknown) => string);
  readonly third?: string;
  /** The planned time in the text of the first output. */
  readonly plannedFor?: (payload: unknown) => number | undefined;
}

/** The reason that all failures share, if nothing else has left. */
const sharedReason = (words: Words, counts: OutcomeCounts, failed: number): string | undefined => {
  const code = Object.keys(counts).find((kind) => kind.startsWith(codePrefix) && counts[kind] === failed);
  return code === undefined ? undefined : words.find(`failed.${code.slice(codePrefix.length)}`);
};

/** Such as `2 sent, 2 failed, 1 no consent`. In a dry run, it says what would be done. */
const countsLook = (
  words: Words,
  [first = '', failed = '', third = '']: readonly string[],
  counts: OutcomeCounts,
  isDry: boolean,
): StatusLook => {
  const count = (kind: string): number => counts[kind] ?? 0;
  const repeats = count('alreadySent');
  const shown: readonly (readonly [string, number])[] = [
    [first, count(first) - repeats],
    [first === 'asked' ? 'notAsked' : 'alreadySent', repeats],
    [failed, count(failed)],
    [third, count(third)],
  ];
  const text = shown
    .filter(([, some]) => some > 0)
    .map(([kind, some]) => {
      const wouldBe = isDry && words.find(`counts.dryRun.${kind}`) !== undefined ? 'dryRun.' : '';
      return words.say(`counts.${wouldBe}${kind}`, { count: words.number(some) });
    })
    .join(words.say('counts.separator'));
  if (count(failed) + count(third) === 0) return look('green', 'dot', text);
  const why = count(first) + count(third) === 0 ? sharedReason(words, counts, count(failed)) : undefined;
  if (why !== undefined)
    return look('red', 'ring', words.say('status.allFailed', { count: words.number(count(failed)), why }));
  return count(first) + count(third) === 0 ? look('red', 'ring', text) : look('yellow', 'dot', text);
};

/** A dry run looks like nothing that was done. */
const dryLook = (words: Words, { fill, text }: StatusLook): StatusLook =>
  look(fill === 'green' ? 'grey' : fill, 'ring', words.say('status.dryRun', { status: text }));

/** Outcomes of single messages, counted by the second and kept for a minute. */
class LastMinute {
  private seconds: { readonly at: number; readonly counts: Record<string, number> }[] = [];

  add(kinds: readonly string[], time: number): void {
    const at = Math.floor(time / second);
    // The clock may have been set back.
    this.seconds = this.seconds.filter((each) => each.at > at - 60 && each.at <= at);
    let latest = this.seconds.at(-1);
    if (latest?.at !== at) this.seconds.push((latest = { at, counts: {} }));
    for (const kind of kinds) latest.counts[kind] = (latest.counts[kind] ?? 0) + 1;
  }

  get counts(): OutcomeCounts {
    const sum: Record<string, number> = {};
    for (const { counts } of this.seconds)
      for (const [kind, some] of Object.entries(counts)) sum[kind] = (sum[kind] ?? 0) + some;
    return sum;
  }
}

interface StatusTools {
  readonly words: Words;
  readonly status: Pick<Status, 'show'>;
  readonly outputs: Pick<Outputs, 'names'>;
  readonly clock: Clock;
  environment(): { readonly settings: { readonly timeZone: string } };
}

export const outcomeStatus = (
  tools: StatusTools,
  texts: StatusTexts,
  queues: ReadonlyMap<unknown, QueueState & Pick<Queue, 'waitCount'>>,
) => {
  const { words, clock, outputs } = tools;
  const minute = { real: new LastMinute(), dry: new LastMinute() };
  const minuteOf = (outcome: Outcome): LastMinute => (isOfDryRun(outcome) ? minute.dry : minute.real);
  let last: (() => StatusLook) | undefined;
  let isHeld = false;

  const lookOfOne = ({ port, problem, payload, offset }: Outcome, at: number): StatusLook => {
    const time = words.time(at, clock.now());
    if (port === 0) {
      const { first } = texts;
      const planned = texts.plannedFor?.(payload);
      const when =
        planned === undefined ? time : words.moment(planned, tools.environment().settings.timeZone, offset);
      return look(
        'green',
        'dot',
        words.say(typeof first === 'string' ? first : first(payload), { time: when }),
      );
    }
    const isRefused = port === 2 && problem?.code !== 'cancelled';
    if (isRefused && texts.third) return look('yellow', 'ring', words.say(texts.third, { time }));
    const failure = failureLook(words, problem, at, clock.now());
    return port === 2 ? look('yellow', 'ring', failure.text) : failure;
  };

  const totalOf = (counts: OutcomeCounts): number =>
    outputs.names.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
  const isWaitingForSomebody = ({ problem }: Outcome): boolean => actionTexts.has(problem?.code ?? '');

  return {
    /**
     * Shows the progress of lists, the counts of a finished list, or the single messages of the last minute; and what
     * is held. `list` counts the outcomes of the list that have left. While some wait, the status says so instead.
     */
    show(outcome: Outcome, kinds: readonly string[], list?: OutcomeCounts): void {
      const at = clock.now();
      if (!list) minuteOf(outcome).add(kinds, at);
      if (Array.from(queues.values()).some(({ waitCount }) => waitCount > 0)) return;
      let counts = list;
      const isDry = isOfDryRun(outcome);
      const lookBy = (progress: QueueState['progress']): StatusLook => {
        if (progress.total > 0) return progressLook(words, progress.done, progress.total);
        // At midnight, the same look is drawn again.
        counts ??= minuteOf(outcome).counts;
        if (totalOf(counts) <= 1 && !(isDry && outcome.port === 0)) return lookOfOne(outcome, at);
        const [, failed = ''] = outputs.names;
        const haveAllFailed = totalOf(counts) === (counts[failed] ?? 0);
        return isWaitingForSomebody(outcome) && (!list || haveAllFailed)
          ? lookOfOne(outcome, at)
          : countsLook(words, outputs.names, counts, isDry);
      };
      last = () => {
        const { progress, heldItems } = stateOf(queues.values());
        const settled = lookBy(progress);
        const drawn = isDry && progress.total === 0 ? dryLook(words, settled) : settled;
        if (!heldItems) return drawn;
        const held = heldLook(words, heldItems.count, heldItems.notBefore, clock.now());
        return { ...drawn, text: drawn.text + words.say('counts.separator') + held.text };
      };
      tools.status.show(last);
    },
    heldChanged(): void {
      const { heldItems: held } = stateOf(queues.values());
      if (held) tools.status.show(() => heldLook(words, held.count, held.notBefore, clock.now()));
      else if (isHeld && last) tools.status.show(last);
      isHeld = held !== undefined;
    },
  };
};
