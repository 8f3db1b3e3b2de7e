import type { Tools } from './flow-node';
import type { Outcome } from './outcomes';
import { look, type Look } from './status';
import type { Words } from './words';

const ofFailure: Readonly<Record<string, string>> = {
  authorization_required: 'authorizeAgain',
  not_configured: 'notConfigured',
};

export const failureLook = (words: Words, code: string | undefined, at: number): Look =>
  look('red', 'ring', words.say(`status.${ofFailure[code ?? ''] ?? 'failed'}`, { time: words.time(at) }));

/** The status texts of the first output, which may depend on its payload, and of the third. */
export interface Said {
  readonly first: string | ((payload: unknown) => string);
  readonly third?: string;
}

const firstOf = ({ first }: Said, { payload }: Outcome): string =>
  typeof first === 'string' ? first : first(payload);

interface Progress {
  readonly done: number;
  readonly total: number;
}

/** Shows how far the lists have come, or what became of the last recipient. */
export const outcomeStatus =
  ({ words, status }: Tools, said: Said, progress: () => Progress) =>
  (outcome: Outcome): void => {
    status.show(() => {
      const { done, total } = progress();
      if (total > 0) {
        const values = { done: words.number(done), total: words.number(total) };
        return look('blue', 'dot', words.say('status.progress', values));
      }
      const now = Date.now();
      const time = words.time(now);
      if (outcome.port === 0) return look('green', 'dot', words.say(firstOf(said, outcome), { time }));
      if (outcome.port === 2 && said.third) return look('yellow', 'ring', words.say(said.third, { time }));
      return failureLook(words, outcome.problem?.code, now);
    });
  };
