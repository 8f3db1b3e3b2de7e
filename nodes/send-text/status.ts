import { look, type Tools } from '../../lib/runtime/flow-node';
import type { Outcome } from '../../lib/runtime/outcomes';
import type { Look } from '../../lib/runtime/status';

const ofFailure = (code: string | undefined): readonly [key: string, shape: Look['shape']] => {
  if (code === 'authorization_required') return ['status.authorizeAgain', 'ring'];
  return code === 'not_configured' ? ['status.notConfigured', 'ring'] : ['status.failed', 'dot'];
};

interface Progress {
  readonly done: number;
  readonly total: number;
}

/** Shows how far the lists have come, or what became of the last text. */
export const sendStatus =
  ({ words, status }: Tools, progress: () => Progress) =>
  (outcome: Outcome): void => {
    status.show(() => {
      const { done, total } = progress();
      if (total > 0) {
        const values = { done: words.number(done), total: words.number(total) };
        return look('blue', 'dot', words.say('status.progress', values));
      }
      const time = words.time(Date.now());
      if (outcome.port === 0) return look('green', 'dot', words.say('status.sent', { time }));
      if (outcome.port === 2) return look('yellow', 'ring', words.say('status.needsConsent', { time }));
      const [key, shape] = ofFailure(outcome.problem?.code);
      return look('red', shape, words.say(key, { time }));
    });
  };
