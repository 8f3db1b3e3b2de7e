import type { Tools } from './flow-node';
import type { Outcome } from './outcomes';
import { failureLook, look, progressLook, type StatusLook } from './status';
import type { Words } from './language';

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

/** How many outcomes left by each output, in the order of the outputs. */
type Counts = readonly number[];

/** One sign for each output: signs read the same in every language. */
const signs = ['✓', '✗', '?'];

/** Such as `1 ✓ 1 ✗ 3 ?`. */
const countsLook = (words: Words, counts: Counts): StatusLook => {
  const [first = 0, failed = 0, third = 0] = counts;
  const text = counts
    .flatMap((count, port) => (count > 0 ? [`${words.number(count)} ${signs[port] ?? ''}`] : []))
    .join(' ');
  if (failed + third === 0) return look('green', 'dot', text);
  return first + third === 0 ? look('red', 'ring', text) : look('yellow', 'dot', text);
};

/** Shows the progress of lists, the counts of a list that has ended, or the outcome of the last recipient. */
export const outcomeStatus =
  (tools: Tools, texts: StatusTexts, progress: () => Progress | undefined) =>
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
