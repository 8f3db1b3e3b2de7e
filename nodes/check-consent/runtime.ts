import { consentOf } from '../../lib/consent/consent';
import { resultOfFault, nothingKnown, consentStatusOf } from '../../lib/consent/consent-status';
import { subjectOf } from '../../lib/consent/look';
import type { Outcome } from '../../lib/runtime/outcomes';
import { flowNode, type Tools } from '../../lib/runtime/flow-node';
import type { RecipientTurn } from '../../lib/texting/recipient-node';
import { CheckNode } from './check-node';
import { accepted, notAccepted, outcomeOfWait } from './outcome';
import { spec } from './spec';

/** Checks one recipient's consent once. */
const checkOnce =
  (tools: Tools) =>
  async ({
    environment,
    client,
    shared: { advisor, dryRun },
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
      const consent = await consentOf(environment);
      await consent.accepted(advisor, subject, status);
      if (recipient.phone !== undefined)
        await consent.history.accepted(advisor, recipient.phone, status.memberId);
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

export const create = flowNode(spec, (tools) => new CheckNode(tools, checkOnce(tools)));
