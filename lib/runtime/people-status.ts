import { look, type Tools } from './flow-node';
import type { Outcome } from './outcomes';

const ofFailure: Readonly<Record<string, string>> = {
  authorization_required: 'status.authorizeAgain',
  not_configured: 'status.notConfigured',
};

/** How far a list has come, or what became of the last person. */
export const peopleStatus =
  ({ status, words }: Tools, success: string) =>
  (outcome: Outcome, left: number, total: number): void => {
    status.show(() => {
      if (left > 0 && total > 1) {
        const values = { done: words.number(total - left), total: words.number(total) };
        return look('blue', 'dot', words.say('status.progress', values));
      }
      const time = words.time(Date.now());
      if (outcome.port === 0) return look('green', 'dot', words.say(success, { time }));
      if (outcome.port === 2) return look('yellow', 'ring', words.say('status.notAccepted', { time }));
      return look(
        'red',
        'ring',
        words.say(ofFailure[outcome.problem?.code ?? ''] ?? 'status.failed', { time }),
      );
    });
  };
