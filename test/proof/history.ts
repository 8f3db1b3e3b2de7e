/** A step of an operation, as its caller saw it. */
export interface Step {
  readonly name: string;
  readonly kind: 'send' | 'ask' | 'wait';
  readonly phone: string;
  /** `invoked`, then `accepted` once it is saved, then what was emitted, perhaps more than once. */
  readonly type: 'invoked' | 'accepted' | 'ok' | 'failed' | 'unknown';
  /** The code of a failure, or how a wait ended. */
  readonly code?: string;
  readonly repeated?: boolean;
  readonly at: number;
}

/** A request that the service carried out. */
export interface Deed {
  readonly kind: 'send' | 'ask';
  /** The text of a send. */
  readonly name: string;
  readonly phone: string;
  readonly at: number;
  /** When the request left, by the clock that ages are measured with. */
  readonly age: number;
}

/** A consent status that was requested, however many requests it took. */
export interface Poll {
  readonly phone: string;
  readonly at: number;
}

export interface Evidence {
  readonly steps: readonly Step[];
  readonly deeds: readonly Deed[];
  readonly polls: readonly Poll[];
  /** Times of the first acceptance, by number. */
  readonly acceptances: ReadonlyMap<string, number>;
  readonly askEvery: number;
  readonly pollEvery: number;
  /** Starts of processes: each may poll once more than scheduled. Without them, polls are not checked. */
  readonly starts: readonly number[] | undefined;
}

const grouped = <T>(things: readonly T[], nameOf: (thing: T) => string): Map<string, T[]> => {
  const groups = new Map<string, T[]>();
  for (const thing of things) {
    const name = nameOf(thing);
    const group = groups.get(name);
    if (group) group.push(thing);
    else groups.set(name, [thing]);
  }
  return groups;
};

/** What is wrong with a history, based only on what was seen from outside; empty when all is well. */
export const faultsIn = (evidence: Evidence): string[] => {
  const { steps, deeds, polls, acceptances, askEvery, pollEvery, starts } = evidence;
  const wrong: string[] = [];
  const sent = grouped(
    deeds.filter(({ kind }) => kind === 'send'),
    ({ name }) => name,
  );
  for (const [name, all] of sent)
    if (all.length > 1) wrong.push(`${name} was sent ${String(all.length)} times`);

  const histories = grouped(steps, (step) => step.name);
  for (const [name, all] of histories) {
    const isAccepted = all.some(({ type }) => type === 'accepted');
    const told = all.filter(({ type }) => type !== 'invoked' && type !== 'accepted');
    const [first] = told;
    if (isAccepted && !first) wrong.push(`${name} was accepted and never emitted`);
    for (const again of told.slice(1)) {
      if (!again.repeated) wrong.push(`${name} was emitted again as if for the first time`);
      if (again.type !== first?.type) wrong.push(`${name} was ${String(first?.type)}, then ${again.type}`);
    }
    if (first?.kind === 'send') {
      if (first.type === 'ok' && !sent.has(name)) wrong.push(`${name} was emitted as sent, and was not`);
      if (first.type === 'failed' && sent.has(name))
        wrong.push(`${name} was emitted as ${String(first.code)}, and was sent`);
    }
    if (first?.kind === 'wait' && first.type === 'ok') {
      const accepted = acceptances.get(first.phone);
      if (accepted === undefined || accepted > first.at) wrong.push(`${name} ended before its consent`);
    }
  }

  for (const [phone, asked] of grouped(
    deeds.filter(({ kind }) => kind === 'ask'),
    (deed) => deed.phone,
  )) {
    const ages = asked.map(({ age }) => age).sort((a, b) => a - b);
    for (const [index, age] of ages.entries()) {
      const since = age - (ages[index - 1] ?? -Infinity);
      if (since < askEvery)
        wrong.push(`${phone} was asked again after ${String(Math.round(since / 60_000))} minutes`);
    }
  }

  for (const [phone, made] of grouped(starts ? polls : [], (poll) => poll.phone)) {
    // In any ten intervals: eleven polls, one more for each start and for each wait that started or ended
    // there, and some more where waits of different ages alternate. Unanswered last polls are retried for
    // each wait by itself. The exact times are for test/unit/consent/waits-model.test.ts.
    const waits = [...histories.values()].filter(
      ([first]) => first?.kind === 'wait' && first.phone === phone,
    );
    let next = 0;
    for (const [from, { at }] of made.entries()) {
      const until = at + 10 * pollEvery;
      while (next < made.length && (made[next]?.at ?? 0) <= until) next += 1;
      const within = next - from;
      if (within <= 15) continue;
      const isThere = (time: number): boolean => time >= at - pollEvery && time <= until;
      const open = waits.filter((all) => all.some((step) => step.at <= until) && (all.at(-1)?.at ?? 0) >= at);
      const others =
        (starts ?? []).filter(isThere).length +
        waits.flat().filter((step) => step.type !== 'accepted' && isThere(step.at)).length;
      if (within > 15 * Math.max(1, open.length) + others)
        wrong.push(`${phone} was polled ${String(within)} times in ten intervals`);
    }
  }
  return wrong;
};
