/** How often a wait looks, and for how long; milliseconds. */
export interface Pace {
  readonly pollEvery: number;
  readonly pollFor: number;
  readonly thenEvery: number;
  readonly giveUpAfter: number;
}

/** As the service recommends: every 30 seconds for 5 minutes, then every 5 minutes, for a day. */
export const recommended: Pace = {
  pollEvery: 30_000,
  pollFor: 300_000,
  thenEvery: 300_000,
  giveUpAfter: 86_400_000,
};

export const isSame = (one: Pace, other: Pace): boolean =>
  one.pollEvery === other.pollEvery &&
  one.pollFor === other.pollFor &&
  one.thenEvery === other.thenEvery &&
  one.giveUpAfter === other.giveUpAfter;

/** Paces as numbers: a hundred thousand waits have a few. */
export class Paces {
  private readonly known: Pace[] = [recommended];
  private latest = 0;

  numberOf(pace: Pace): number {
    if (isSame(pace, this.at(this.latest))) return this.latest;
    const found = this.known.findIndex((each) => isSame(each, pace));
    this.latest = found < 0 ? this.known.push(pace) - 1 : found;
    return this.latest;
  }

  at(number: number): Pace {
    return this.known[number] ?? recommended;
  }
}

const second = 1000;
/** Under this, polls would only chase each other. */
const shortest = 50;

/** A pace from settings in seconds, fractions included; what is not a number there is as recommended. */
export const paceOf = (seconds: Readonly<Record<keyof Pace, number>>): Pace => {
  const ms = (name: keyof Pace, least: number): number =>
    Number.isFinite(seconds[name]) ? Math.max(seconds[name] * second, least) : recommended[name];
  return {
    pollEvery: ms('pollEvery', shortest),
    pollFor: ms('pollFor', 0),
    thenEvery: ms('thenEvery', shortest),
    giveUpAfter: ms('giveUpAfter', shortest),
  };
};

/** The due times are numbered: 0 is the start, then come the quick ones, then the slow ones; the last is the end. */
const offsetOf = (pace: Pace, number: number): number => {
  const quick = Math.floor(pace.pollFor / pace.pollEvery);
  const offset =
    number <= quick ? number * pace.pollEvery : quick * pace.pollEvery + (number - quick) * pace.thenEvery;
  return Math.min(offset, pace.giveUpAfter);
};

const numberAt = (pace: Pace, elapsed: number): number => {
  const quick = Math.floor(pace.pollFor / pace.pollEvery);
  const quickEnd = quick * pace.pollEvery;
  return elapsed < quickEnd
    ? Math.floor(elapsed / pace.pollEvery)
    : quick + Math.floor((elapsed - quickEnd) / pace.thenEvery);
};

/** A poll may come up to a tenth of its interval late, and never early. */
const latest = 10;

const spreadOffset = (pace: Pace, number: number, share: number): number => {
  const offset = offsetOf(pace, number);
  const interval = number === 0 ? offsetOf(pace, 1) : offset - offsetOf(pace, number - 1);
  return offset + Math.floor((interval / latest) * share);
};

/** When, counted from the start, the poll comes that decides. `share` as in `nextPoll`. */
export const lastPoll = (pace: Pace, share: number): number => {
  const before = numberAt(pace, pace.giveUpAfter);
  const number = offsetOf(pace, before) < pace.giveUpAfter ? before + 1 : before;
  return spreadOffset(pace, number, share);
};

/**
 * The first poll later than `elapsed`, both counted from the start; undefined after the last. `share` (0 to 1) says how
 * much of the allowed lateness this number takes, so that waits begun together do not poll together.
 */
export const nextPoll = (pace: Pace, share: number, elapsed: number): number | undefined => {
  const last = lastPoll(pace, share);
  if (elapsed >= last) return undefined;
  if (elapsed < 0) return Math.min(spreadOffset(pace, 0, share), last);
  let number = numberAt(pace, elapsed);
  while (spreadOffset(pace, number, share) <= elapsed) number += 1;
  return Math.min(spreadOffset(pace, number, share), last);
};

/**
 * The same for a wait whose number has been looked at already, be it for another wait: the poll at its start is left out.
 */
export const nextPollAgain = (pace: Pace, share: number, elapsed: number): number | undefined =>
  nextPoll(pace, share, Math.max(elapsed, spreadOffset(pace, 0, share)));

/** A number between 0 and 1 that is always the same for the same text (FNV-1a, then mixed). */
export const shareOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
};
