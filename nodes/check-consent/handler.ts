import { isControl, type Handler, type Tools } from '../../lib/runtime/flow-node';
import { RecipientNode } from '../../lib/texting/recipient-node';
import { lookOnce } from './look';
import { cancelledWait } from './outcome';
import { subjects } from './subject';
import { NodeWaits } from './waits';

/** Checks once or waits, as the node is set. Both handlers run, because work that began under the other setting goes on. */
export const checkHandler = (tools: Tools): Handler => {
  const isWaiting = tools.plain.text('mode') === 'wait';
  const subject = subjects(tools);
  const looks = new RecipientNode(tools, {
    ...subject,
    work: lookOnce(tools),
    dryRun: lookOnce(tools),
    cancelled: cancelledWait,
    statusTexts: { first: 'status.accepted', third: 'status.notAccepted' },
  });
  const waits = new NodeWaits(tools, looks.show);

  return {
    get opening() {
      const both = [looks.opening, waits.opening].filter((each) => each !== undefined);
      return both.length === 0 ? undefined : Promise.all(both).then(() => undefined);
    },
    input: (msg, job) => looks.input(msg, job, isWaiting ? waits : undefined),
    control(msg, at) {
      const isReset = isControl(msg, 'reset');
      if (!isReset && !isControl(msg, 'flush')) return false;
      const phones = looks.phonesOf(msg);
      if (isReset) {
        looks.reset(phones, at);
        waits.reset(phones, at);
      } else waits.flush(phones);
      return true;
    },
    isBusy: () => looks.isBusy(),
    async close() {
      await Promise.all([looks.close(), waits.close()]);
    },
  };
};
