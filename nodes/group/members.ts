import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BookOperation, Stream } from '../../lib/address-book/operation';
import { pagesOf, totalOf } from '../../lib/address-book/paging';
import { Sequence, streamed } from '../../lib/address-book/search';
import { invalidInput, nodeError } from '../../lib/runtime/errors';
import type { Tools } from '../../lib/runtime/flow-node';
import type { Outcome } from '../../lib/outbox/outcome';
import { failedOutcome, problemOf } from '../../lib/runtime/outcomes';
import { largestPage } from '../../lib/contract-values';
import type { Id, ResponseOf } from '../../lib/service/endpoints';
import { notANumber, phoneNumber } from '../../lib/texting/recipients';
import { groupNamed, isSame } from './names';

type Summary = ResponseOf<'searchContacts'>['data'][number];
type NamedGroup = Awaited<ReturnType<typeof groupNamed>>;

/** The number of contacts that are read at once. */
const atOnce = 4;

/** Codes that end the stream: they are not about one contact, and the next would fail with the same. */
const endsAll = new Set([
  'cancelled',
  'authorization_required',
  'not_configured',
  'unauthorized',
  'forbidden',
]);

/** `skipped`: the contact is in the group and has no number to text. */
type MemberResult = Outcome | 'skipped' | undefined;

/** Whether a search result names the group; undefined when it has no group names. */
const isNamedIn = ({ groupNames }: Summary, { name }: NamedGroup): boolean | undefined =>
  groupNames?.some((each) => each.trim() === name);

const membershipOf = (
  groupIds: readonly Id[] | null | undefined,
  isNamed: boolean | undefined,
  group: NamedGroup,
): boolean => {
  if (groupIds) return groupIds.some((id) => isSame(id, group.id));
  if (isNamed !== undefined && group.isOnlyOne) return isNamed;
  throw nodeError('invalid_response', 'members_unclear');
};

/** Streams the contacts of one group, each read in full and ready to be texted. */
export const listingMembers = (tools: Tools): BookOperation => {
  const groupId = tools.source('groupId');
  const skips = tools.plain.flag('skipWithoutPhone');

  const read = async (
    { caller, givenUp }: Stream,
    summary: Summary,
    group: NamedGroup,
  ): Promise<MemberResult> => {
    const isNamed = isNamedIn(summary, group);
    const { contactId } = summary;
    if (isNamed === false || contactId == null || contactId === '') return undefined;
    const set: Record<string, unknown> = { groupId: group.id, contactId };
    let contact: ResponseOf<'getContact'>;
    try {
      contact = await caller.call('getContact', { params: { contactId } }, givenUp);
    } catch (thrown) {
      const why = problemOf(thrown);
      // The contact was deleted since it was listed.
      if (why.code === 'not_found') return undefined;
      if (endsAll.has(why.code)) throw thrown;
      return failedOutcome(why, set);
    }
    if (!membershipOf(contact.groupIds, isNamed, group)) return undefined;
    set['contact'] = contact;
    const { country } = caller.environment.settings;
    const phone = phoneNumber(contact.phone, country);
    if (phone !== undefined) return { port: 0, payload: contact, set: { ...set, phone } };
    if (skips) return 'skipped';
    const why =
      contact.phone == null || contact.phone === ''
        ? invalidInput('member_without_phone', { id: String(contactId) })
        : notANumber(contact.phone, country, { where: 'phone', list: true });
    return failedOutcome(why.problem, set);
  };

  const list = async (stream: Stream, group: NamedGroup): Promise<void> => {
    const { caller, job, stopped } = stream;
    const sequence = new Sequence(job);
    const counts = { done: 0, failed: 0, skipped: 0 };
    const byCode = new Map<string, number>();
    const take = (found: MemberResult): void => {
      if (found === undefined) return;
      if (found === 'skipped') {
        counts.skipped += 1;
        return;
      }
      if (found.problem) {
        counts.failed += 1;
        byCode.set(found.problem.code, (byCode.get(found.problem.code) ?? 0) + 1);
      } else counts.done += 1;
      sequence.add(found);
    };
    let records = 0;
    const fetch = (page: number, signal?: AbortSignal) =>
      caller.call('searchContacts', { query: { page, pageSize: largestPage } }, signal);
    const isComplete = await sequence.filledBy(stream, async () => {
      const idOf = ({ contactId }: Summary): Summary['contactId'] => contactId;
      for await (const { page, fresh } of pagesOf(fetch, { pageSize: largestPage, stop: stopped, idOf })) {
        for (let from = 0; from < fresh.length && !stopped.aborted; from += atOnce) {
          const some = fresh.slice(from, from + atOnce);
          const found = await Promise.all(some.map((each) => read(stream, each, group)));
          found.forEach(take);
          records += some.length;
          stream.progress(records, totalOf(page));
        }
        if (stopped.aborted) break;
        await nextTurn();
      }
    });
    if (!isComplete) return;
    sequence.end({ total: counts.done + counts.failed, ...counts, byCode: Object.fromEntries(byCode) });
    stream.show('found', counts.done);
  };

  return {
    kind: 'search',
    async run(stream) {
      const group = await groupNamed(stream.caller, await groupId.read(stream.msg), groupId.where);
      await streamed(stream, () => list(stream, group));
    },
  };
};
