import { searchAtService, type Caller, type SearchOperation } from '../../lib/address-book/operation';
import { pagesOf, totalOf } from '../../lib/address-book/paging';
import { failedOutcome, invalidInput, problemOf } from '../../lib/runtime/errors';
import { isGone, serviceError } from '../../lib/service/errors';
import type { Tools } from '../../lib/runtime/flow-node';
import type { Portion, Stream } from '../../lib/runtime/searches';
import type { Outcome } from '../../lib/outbox/outcome';
import { largestPage } from '../../lib/contract-values';
import type { Id, ResponseOf } from '../../lib/service/endpoints';
import { notANumber, phoneNumber } from '../../lib/texting/recipients';
import { groupNamed, isSame } from './names';

type Summary = ResponseOf<'searchContacts'>['data'][number];
type NamedGroup = Awaited<ReturnType<typeof groupNamed>>;

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

/** Whether a search result names the group; undefined when it has no group names, or fewer than groups. */
const isNamedIn = ({ groupNames, groupCount }: Summary, { name }: NamedGroup): boolean | undefined => {
  const isNamed = groupNames?.some((each) => each.trim() === name);
  const count = typeof groupCount === 'number' ? groupCount : 0;
  return isNamed || count <= (groupNames?.length ?? 0) ? isNamed : undefined;
};

/** An empty list without a count may mean that the search does not name groups at all. */
const isCertain = ({ groupNames, groupCount }: Summary): boolean =>
  Boolean(groupNames?.length) || groupCount === 0;

const membershipOf = (
  groupIds: readonly Id[] | null | undefined,
  isNamed: boolean | undefined,
  group: NamedGroup,
): boolean => {
  if (groupIds) return groupIds.some((id) => isSame(id, group.id));
  if (isNamed !== undefined && group.isOnlyOne) return isNamed;
  throw serviceError('invalid_response', 'members_unclear');
};

/** Streams the contacts of one group, each read in full and ready to be texted. */
export const listingMembers = (tools: Tools): SearchOperation => {
  const groupId = tools.source('groupId');
  const skips = tools.plain.flag('skipWithoutPhone');

  const memberOf = async (
    { givenUp }: Stream,
    caller: Caller,
    summary: Summary,
    group: NamedGroup,
  ): Promise<MemberResult> => {
    const isNamed = isNamedIn(summary, group);
    const { contactId } = summary;
    if (contactId == null || contactId === '') return undefined;
    if (isNamed === false && isCertain(summary)) return undefined;
    const set: Record<string, unknown> = { groupId: group.id, contactId };
    let contact: ResponseOf<'getContact'>;
    try {
      contact = await caller.call('getContact', { params: { contactId } }, givenUp);
    } catch (thrown) {
      // The contact was deleted since it was listed.
      if (isGone(thrown)) return undefined;
      const why = problemOf(thrown);
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

  async function* portionsOf(stream: Stream, caller: Caller, group: NamedGroup): AsyncGenerator<Portion> {
    const { stopped } = stream;
    let [read, ready, skipped] = [0, 0, 0];
    let total: number | undefined;
    const fetch = (page: number, signal?: AbortSignal) =>
      caller.call('searchContacts', { query: { page, pageSize: largestPage } }, signal);
    const idOf = ({ contactId }: Summary): Summary['contactId'] => contactId;
    for await (const { page, fresh } of pagesOf(fetch, { pageSize: largestPage, stop: stopped, idOf }))
      for (let from = 0; from < fresh.length && !stopped.aborted; from += atOnce) {
        const some = fresh.slice(from, from + atOnce);
        const found = await Promise.all(some.map((each) => memberOf(stream, caller, each, group)));
        const outcomes = found.filter((each) => each !== undefined && each !== 'skipped');
        ready += outcomes.filter(({ port }) => port === 0).length;
        skipped += found.filter((each) => each === 'skipped').length;
        read += some.length;
        total = totalOf(page);
        yield { outcomes, read, total, found: ready, more: { skipped } };
      }
    yield { outcomes: [], read, total, found: ready, more: { skipped } };
  }

  return searchAtService(tools, async (stream, caller) => {
    const group = await groupNamed(caller, await groupId.read(stream.job.msg), groupId.where);
    await stream.emitAll(portionsOf(stream, caller, group));
  });
};
