import should from 'should';
import { languages } from '../../../lib/languages';
import { wordsIn } from '../../../lib/runtime/language';
import type { Outcome } from '../../../lib/outbox/outcome';
import { systemClock } from '../../../lib/service/clock';
import { outcomeStatus, type StatusLook } from '../../../lib/runtime/status';
import { serviceError } from '../../../lib/service/errors';
import { second } from '../../../lib/durations';

const sent: Outcome = { port: 0, payload: {} };
const refused: Outcome = {
  port: 2,
  payload: {},
  problem: serviceError('consent_required', 'consent_required').problem,
};
const failedWith = (problem: NonNullable<Outcome['problem']>): Outcome => ({ port: 1, problem });
const failed = failedWith(serviceError('blocked', 'blocked').problem);
const unauthorized = failedWith(
  serviceError('authorization_required', 'advisor_unauthorized', { advisor: 'a', environment: 'e' }).problem,
);

/** The status of a send node, drawn immediately. */
const statusOf = (language = 'en-US') => {
  const names = ['sent', 'failed', 'needsConsent'];
  let drawn: (() => StatusLook) | undefined;
  let now = new Date(2030, 0, 31, 14, 5).getTime();
  const status = outcomeStatus(
    {
      words: wordsIn(language),
      clock: { ...systemClock, now: () => now },
      outputs: { names },
      environment: () => ({ settings: { timeZone: '' } }),
      status: {
        show: (look) => {
          drawn = look;
          look();
        },
      },
    },
    { first: 'status.sent', third: 'status.needsConsent' },
    new Map(),
  );
  return {
    leave: (...outcomes: readonly Outcome[]): void => {
      for (const outcome of outcomes) {
        const name = names[outcome.port] ?? '';
        status.show(outcome, outcome.alreadySent ? ['alreadySent', name] : [name]);
      }
    },
    ofList: (counts: Record<string, number>, last = sent): void => {
      status.show(last, [], counts);
    },
    pass: (ms: number): void => {
      now += ms;
    },
    text: () => drawn?.().text,
    fill: () => drawn?.().fill,
  };
};

describe('the status of outcomes', () => {
  it('says in words how many of a list left by each output', () => {
    const { ofList, text, fill } = statusOf();
    ofList({ sent: 2, failed: 2, needsConsent: 1 });
    should([text(), fill()]).eql(['2 sent, 2 failed, 1 no consent', 'yellow']);
    ofList({ sent: 12_400 });
    should([text(), fill()]).eql(['12,400 sent', 'green']);
    ofList({ failed: 2 }, failed);
    should([text(), fill()]).eql(['2 failed', 'red']);
  });

  it('gives the reason when all have failed for the same one', () => {
    const { ofList, text, fill } = statusOf();
    ofList({ failed: 3, 'code blocked': 3 }, failed);
    should([text(), fill()]).eql(['3 failed: blocked', 'red']);
    ofList({ failed: 3, 'code blocked': 2, 'code rejected': 1 }, failed);
    should(text()).equal('3 failed');
    ofList({ sent: 1, failed: 3, 'code blocked': 3 }, failed);
    should(text()).equal('1 sent, 3 failed');
  });

  it('does not count a repeated text as sent twice', () => {
    const { ofList, text } = statusOf();
    ofList({ sent: 5, alreadySent: 2, failed: 1 });
    should(text()).equal('3 sent, 2 already sent, 1 failed');
  });

  it('sums up the single messages of the last minute like a list', () => {
    const { leave, pass, text } = statusOf();
    leave(sent);
    should(text()).equal('sent 2:05 PM');
    leave(sent, failed, refused);
    should(text()).equal('2 sent, 1 failed, 1 no consent');
    pass(50 * second);
    leave({ ...sent, alreadySent: true });
    should(text()).equal('2 sent, 1 already sent, 1 failed, 1 no consent');
    pass(11 * second);
    leave(sent);
    should(text()).equal('1 sent, 1 already sent');
    pass(61 * second);
    should(text()).equal('1 sent, 1 already sent');
    leave(failed);
    should(text()).equal('blocked 2:07 PM');
  });

  it('says that a dry run is one, and does not sum it up with what was sent', () => {
    const { leave, ofList, pass, text, fill } = statusOf();
    const payload = { dryRun: true };
    const dryFailure = { ...serviceError('blocked', 'blocked').problem, dryRun: true as const };
    leave(sent, sent, { port: 0, payload });
    should([text(), fill()]).eql(['dry run: 1 would be sent', 'grey']);
    leave({ port: 1, problem: dryFailure });
    should([text(), fill()]).eql(['dry run: 1 would be sent, 1 failed', 'yellow']);
    leave(sent);
    should([text(), fill()]).eql(['3 sent', 'green']);
    pass(61 * second);
    leave({ port: 1, problem: dryFailure });
    should([text(), fill()]).eql(['dry run: blocked 2:06 PM', 'red']);
    ofList({ sent: 5, alreadySent: 1, needsConsent: 1 }, { port: 0, payload });
    should([text(), fill()]).eql(['dry run: 4 would be sent, 1 already sent, 1 no consent', 'yellow']);
  });

  it('starts a new minute when the clock is set back', () => {
    const { leave, pass, text } = statusOf();
    leave(failed, failed);
    pass(-3600 * second);
    leave(sent);
    should(text()).equal('sent 1:05 PM');
  });

  it('shows what somebody must do rather than how often it failed', () => {
    const { leave, ofList, text } = statusOf();
    leave(sent, unauthorized, unauthorized);
    should(text()).equal('not authorized');
    ofList({ failed: 3 }, unauthorized);
    should(text()).equal('not authorized');
    ofList({ sent: 1, failed: 3 }, unauthorized);
    should(text()).equal('1 sent, 3 failed');
  });

  it('has words in every language, and no symbols that need a legend', () => {
    const shown = languages.map((language) => {
      const { ofList, text } = statusOf(language);
      ofList({ sent: 3, alreadySent: 1, failed: 2, needsConsent: 1 });
      return text() ?? '';
    });
    should(new Set(shown).size).equal(languages.length);
    for (const text of shown) should(text).match(/^[\p{L}\d ,:、]+$/u);
  });
});
