import { consentOf } from '../../lib/consent/consent';
import { resultOfFault, nothingKnown, consentStatusOf } from '../../lib/consent/consent-status';
import type { Outcome } from '../../lib/runtime/outcomes';
import { flowNode, isControl, type Handler, type Tools } from '../../lib/runtime/flow-node';
import { RecipientNode, type RecipientTurn } from '../../lib/texting/recipient-node';
import { accepted, cancelledWait, notAccepted, outcomeOfWait } from './outcome';
import { spec } from './spec';
import { subjectOf, subjects } from './subject';
import { WaitNode } from './wait-node';

/** Checks one recipient's consent once. */
const checkOnce =
  (tools: Tools) =>
  async ({
    environment,
    client,
    order: { advisor, dryRun },
    item: recipient,
    signal,
  }: RecipientTurn): Promise<Outcome> => {
    const subject = subjectOf(recipient);
    const options = { advisor, lane: tools.node.id, signal };
    try {
      const { data, attempts } = await client.call('getConsent', { query: subject }, options);
      const status = consentStatusOf(data);
      if (status.state !== 'accepted')
        return notAccepted(dryRun ? 'dry_run' : 'not_accepted', status, subject, { attempts });
      const { waits, history } = await consentOf(environment);
      await waits.accepted(advisor, subject, status);
      if (recipient.phone !== undefined) await history.accepted(advisor, recipient.phone, status.memberId);
      return accepted(status);
    } catch (fault) {
      const result = resultOfFault(fault);
      if (result.kind !== 'unknown_number') throw fault;
      const { problem } = result;
      const unknown = outcomeOfWait(
        { kind: 'not_accepted', reason: 'unknown_number', status: nothingKnown, problem },
        subject,
      );
      return dryRun ? { ...unknown, payload: { ...nothingKnown, reason: 'dry_run' } } : unknown;
    }
  };

/** Checks once or waits, as the node is set. Both handlers run, because work that began under the other setting goes on. */
const handler = (tools: Tools): Handler => {
  const isWaiting = tools.plain.text('mode') === 'wait';
  const subject = subjects(tools);
  const checks = new RecipientNode(tools, {
    ...subject,
    work: checkOnce(tools),
    cancelled: cancelledWait,
    statusTexts: { first: 'status.accepted', third: 'status.notAccepted' },
  });
  const waits = new WaitNode(tools, checks.outcomeStatus);

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
    showFailure: (failure) => {
      checks.showFailure(failure);
    },
    completeFailure: (failure, msg) => checks.completeFailure(failure, msg),
    isBusy: () => checks.isBusy(),
    async close() {
      await Promise.all([checks.close(), waits.close()]);
    },
  };
};

export const create = flowNode(spec, handler);
