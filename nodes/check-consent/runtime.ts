import { consentIn, consentOf, subjectOf, waitOf, type Consent } from '../../lib/consent/consent';
import {
  resultOfFault,
  nothingKnown,
  consentStatusOf,
  type ConsentStatus,
  type WaitOutcome,
} from '../../lib/consent/consent-status';
import { paceOf } from '../../lib/consent/pace';
import { ownListOf } from '../../lib/guards/do-not-text';
import type { Environment } from '../../lib/runtime/environment';
import { failedOutcome, invalidInput } from '../../lib/runtime/errors';
import { entriesOf, type Source } from '../../lib/runtime/inputs';
import type { Item } from '../../lib/outbox/item';
import { itemNode } from '../../lib/runtime/item-node';
import { anyId, isNothing } from '../../lib/kinds';
import type { Outcome } from '../../lib/outbox/outcome';
import type { Subject } from '../../lib/outbox/records';
import type { Clock } from '../../lib/service/clock';
import { serviceError, type Problem } from '../../lib/service/errors';
import { texting, type Recipient, type Recipients } from '../../lib/texting/recipients';
import { spec } from './spec';
import { WaitStatus, type CheckQueue, type CheckShared } from './wait-status';

const recipientsByMember = (value: unknown, { where }: Source): Recipients => {
  const list = Array.isArray(value);
  const given = list ? entriesOf(value, where) : [value];
  if (given.length === 0 || isNothing(value)) throw invalidInput('member_missing', { where });
  const items = given.map((each, index): Recipient => {
    const memberId = anyId(each);
    return memberId === undefined
      ? { index, wrong: invalidInput('member_kind', { where }).problem }
      : { index, memberId };
  });
  return { list, items, count: items.length, ...(list && { entries: given }) };
};

/** The failure that an outcome of the third output becomes when nothing is wired there: its code and its sentence. */
const failures = {
  not_accepted: ['consent_required', 'not_accepted'],
  dry_run: ['consent_required', 'consent_required'],
  expired: ['consent_required', 'consent_expired'],
  cancelled: ['cancelled', 'wait_cancelled'],
  unknown_number: ['not_found', 'unknown_number'],
} as const;

const accepted = (status: ConsentStatus): Outcome => ({ port: 0, payload: { ...status } });

/** `said` is what else is known for `msg.error`: the service's words, and the number of requests. */
const notAccepted = (
  reason: keyof typeof failures,
  status: ConsentStatus,
  subject?: Subject,
  said: Partial<Problem> = {},
): Outcome => {
  const [code, key] = failures[reason];
  const isUnknown = reason === 'unknown_number';
  const sentence = isUnknown && subject && 'memberId' in subject ? 'unknown_member' : key;
  const { problem } = serviceError(code, sentence, {}, { ...(isUnknown && { status: 404 }), ...said });
  return { port: 2, payload: { ...status, reason }, problem };
};

const cancelled = (status: ConsentStatus): Outcome => notAccepted('cancelled', status);

/** The problem as the service gave it, without its sentence and code: our own say what to do. */
const saidIn = ({ message: _message, code: _code, ...said }: Problem): Partial<Problem> => said;

const outcomeOfWait = (ended: WaitOutcome, subject: Subject): Outcome => {
  if (ended.kind === 'accepted') return accepted(ended.status);
  if (ended.kind === 'failed') return failedOutcome(ended.problem);
  return notAccepted(ended.reason, ended.status, subject, ended.problem && saidIn(ended.problem));
};

const checkOnce = async (item: Item<Recipient, CheckShared>, environment: Environment): Promise<Outcome> => {
  const { advisor } = item;
  const { dryRun } = item.shared;
  const subject = subjectOf(item.data);
  try {
    const { data, attempts } = await item.call('getConsent', { query: subject });
    const status = consentStatusOf(data);
    if (status.state !== 'accepted')
      return notAccepted(dryRun ? 'dry_run' : 'not_accepted', status, subject, { attempts });
    await (await consentOf(environment, item)).accepted(advisor, subject, status);
    return accepted(status);
  } catch (fault) {
    const result = resultOfFault(fault);
    if (result.kind !== 'unknown_number') throw fault;
    const unknown = notAccepted('unknown_number', nothingKnown, subject, saidIn(result.problem));
    return dryRun ? { ...unknown, payload: { ...nothingKnown, reason: 'dry_run' } } : unknown;
  }
};

export const create = itemNode<Recipient, CheckShared>(spec, (tools) => {
  const isByMember = tools.plain.text('by') === 'memberId';
  const isWaiting = tools.plain.text('mode') === 'wait';
  const source = tools.source(isByMember ? 'memberId' : 'phone');
  const seconds = (name: string): number => tools.plain.number(name);
  const pace = paceOf({
    pollEvery: seconds('pollEvery'),
    pollFor: seconds('pollFor'),
    thenEvery: seconds('thenEvery'),
    giveUpAfter: seconds('giveUpAfter'),
  });
  const consents = new Map<CheckQueue, Consent>();
  const status = new WaitStatus(tools, consents);
  const { draw } = status;
  /** That of the queue which messages enter; without one, they fail. */
  let clock: Clock | undefined;

  return {
    ...texting<Recipient, CheckShared>(tools, {
      source,
      recipients: isByMember ? (value) => recipientsByMember(value, source) : undefined,
      share(shared) {
        // A dry run never waits.
        if (!isWaiting || shared.dryRun) return;
        shared.pace = pace;
        shared.start = clock?.now() ?? 0;
      },
    }),
    async work(item) {
      const environment = tools.environment();
      if (!item.isWait) return checkOnce(item, environment);
      const ended = await (await consentOf(environment, item)).look(item, tools.node.id);
      if (!ended) throw serviceError('cancelled', 'cancelled');
      return outcomeOfWait(ended, subjectOf(item.data));
    },
    async endedBy(item, reason) {
      const isSaved = reason !== 'refused' && reason !== 'taken_over';
      if (item.isWait && isSaved)
        return cancelled(await (await consentOf(tools.environment(), item)).seenOf(waitOf(item)));
      return reason === 'reset' ? cancelled(nothingKnown) : undefined;
    },
    statusTexts: { first: 'status.accepted', third: 'status.notAccepted' },
    waits: {
      isOn: isWaiting,
      draw,
      async opened(queue) {
        const environment = tools.environment();
        const consent = consentIn(environment, queue.store);
        if (queue.store === (await environment.store())) ({ clock } = consent);
        const list = await ownListOf(environment);
        consents.set(queue, consent);
        const ends = [
          list.onBlock((phone) => queue.reset([phone])),
          environment.onChange(draw),
          () => {
            consents.delete(queue);
            status.close();
            draw();
          },
        ];
        tools.whenStarted(() => {
          const waits = { queue, outcomeOf: outcomeOfWait, changed: draw };
          if (!tools.closed.aborted) ends.push(consent.attach(tools.node.id, waits));
        });
        return () => {
          for (const end of ends) end();
        };
      },
    },
  };
});
