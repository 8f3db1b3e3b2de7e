import type { Problem } from '../service/errors';
import type { Tools } from './flow-node';
import type { Outcome } from './outcomes';
import { look, type Look } from './status';
import type { Words } from './language';

/** These last until somebody does something about them: what to do says more than since when. */
const todo = new Map<string, string>([
  ['authorization_required', 'status.authorizeAgain'],
  ['not_configured', 'status.notConfigured'],
]);

const subjects = ['phone', 'text', 'date'];

/** The kind of failure: its code, or for an invalid input what it is that is invalid. */
const kindOf = (why: Problem): string => {
  const key = why.code === 'invalid_input' ? (why.wording?.key ?? '') : '';
  return subjects.find((subject) => key.startsWith(subject)) ?? why.code;
};

export const failureLook = (words: Words, why: Problem | undefined, at: number): Look => {
  const time = words.time(at);
  const said = (): string => {
    if (!why) return words.say('status.failed', { time });
    const action = todo.get(why.code);
    if (action !== undefined) return words.say(action);
    const kind = words.find(`failed.${kindOf(why)}`);
    return kind === undefined
      ? words.say('status.failed', { time })
      : words.say('status.failedFor', { why: kind, time });
  };
  const unauthorized =
    why?.code === 'authorization_required' ? String(why.wording?.values['advisor'] ?? '') : undefined;
  return { ...look('red', 'ring', said()), unauthorized };
};

interface Progress {
  readonly done: number;
  readonly total: number;
}

/** The status texts of the first output, which may depend on its payload, and of the third. */
export interface Said {
  readonly first: string | ((payload: unknown) => string);
  readonly third?: string;
}

const firstOf = ({ first }: Said, { payload }: Outcome): string =>
  typeof first === 'string' ? first : first(payload);

/** Shows how far the lists have come, how many of a list failed in the end, or what became of the last recipient. */
export const outcomeStatus =
  ({ words, status, now }: Tools, said: Said, progress: () => Progress) =>
  (outcome: Outcome, failed = 0): void => {
    status.show(() => {
      const { done, total } = progress();
      if (total > 0) {
        const values = { done: words.number(done), total: words.number(total) };
        return look('blue', 'dot', words.say('status.progress', values));
      }
      const at = now();
      const time = words.time(at);
      if (failed > 0)
        return look('yellow', 'dot', words.say('status.someFailed', { count: words.number(failed), time }));
      if (outcome.port === 0) return look('green', 'dot', words.say(firstOf(said, outcome), { time }));
      const { port, problem } = outcome;
      const isRefused = port === 2 && problem?.code !== 'cancelled';
      if (isRefused && said.third) return look('yellow', 'ring', words.say(said.third, { time }));
      const failure = failureLook(words, problem, at);
      return port === 2 ? look('yellow', 'ring', failure.text) : failure;
    });
  };
