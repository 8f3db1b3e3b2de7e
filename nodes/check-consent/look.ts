import { consentOf } from '../../lib/consent/shared';
import { statusOf, verdictOfFault } from '../../lib/consent/verdict';
import type { Handler, Tools } from '../../lib/runtime/flow-node';
import type { Outcome } from '../../lib/runtime/outcomes';
import { PeopleHandler, type PersonTurn } from '../../lib/runtime/people';
import { warnOfWaits } from '../../lib/runtime/wait-trouble';
import { accepted, cancelledLook, notAccepted, outcomeOf } from './outcome';
import { subjectOf, subjects } from './subject';

/** Status texts of a check, whether it looks once or waits. */
export const checkStatus = { first: 'status.accepted', third: 'status.notAccepted' } as const;

/** One look at one person's consent. */
export const lookOf =
  (tools: Tools) =>
  async ({ environment, client, order: { advisor }, item: person, signal }: PersonTurn): Promise<Outcome> => {
    const subject = subjectOf(person);
    const options = { advisor, lane: tools.node.id, signal };
    try {
      const { data, attempts } = await client.call('getConsent', { query: subject }, options);
      const status = statusOf(data);
      if (status.state !== 'accepted') return notAccepted('not_accepted', status, subject, { attempts });
      const { waits, asked } = await consentOf(environment, warnOfWaits(tools));
      waits.accepted(advisor, subject, status);
      if (person.phone !== undefined) await asked.accepted(advisor, person.phone, status.memberId);
      return accepted(status);
    } catch (fault) {
      const verdict = verdictOfFault(fault);
      if (verdict.kind === 'not_accepted') return outcomeOf(verdict, subject);
      throw fault;
    }
  };

/** `once`: one look per person. */
export const lookHandler = (tools: Tools): Handler =>
  new PeopleHandler(tools, {
    ...subjects(tools),
    work: lookOf(tools),
    cancelled: cancelledLook,
    said: checkStatus,
  });
