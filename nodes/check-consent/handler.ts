import { isControl, type Handler, type Tools } from '../../lib/runtime/flow-node';
import { RecipientNode } from '../../lib/texting/recipient-node';
import { checkOnce } from './check';
import { cancelledWait } from './outcome';
import { subjects } from './subject';
import { WaitNode } from './waits';

/** Checks once or waits, as the node is set. Both handlers run, because work that began under the other setting goes on. */
export const checkHandler = (tools: Tools): Handler => {
  const isWaiting = tools.plain.text('mode') === 'wait';
  const subject = subjects(tools);
  const checks = new RecipientNode(tools, {
    ...subject,
    work: checkOnce(tools),
    cancelled: cancelledWait,
    statusTexts: { first: 'status.accepted', third: 'status.notAccepted' },
  });
  const waits = new WaitNode(tools, (outcome, counts) => {
    checks.show(outcome, counts);
  });

  return {
    get opening() {
      const both = [checks.opening, waits.opening].filter((each) => each !== undefined);
      return both.length === 0 ? undefined : Promise.all(both).then(() => undefined);
    },
    input: (msg, job) => checks.input(msg, job, isWaiting ? waits : undefined),
    control(msg, at) {
      const isReset = isControl(msg, 'reset');
      if (!isReset && !isControl(msg, 'flush')) return false;
      const phones = checks.phonesOf(msg);
      if (isReset) {
        checks.reset(phones, at);
        waits.reset(phones, at);
      } else waits.flush(phones);
      return true;
    },
    completeFailure: (failure, msg) => checks.completeFailure(failure, msg),
    isBusy: () => checks.isBusy(),
    async close() {
      await Promise.all([checks.close(), waits.close()]);
    },
  };
};
