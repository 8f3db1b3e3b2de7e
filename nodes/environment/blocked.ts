import { doNotTextOf, type DoNotText } from '../../lib/guards/do-not-text';
import { activityOf, pageIn } from '../../lib/runtime/activity';
import type { BlockedItem, Listed } from '../../lib/runtime/activity-items';
import { lastFour } from '../../lib/runtime/log';
import { folded } from '../../lib/kinds';
import { phoneNumber } from '../../lib/texting/recipients';
import { pageAsked, runningIn } from './sidebar-data';
import type { RouteRequest } from './form';
import { Refused, textIn, soon } from './reply';

/** The most numbers that are scanned for a search without a key. */
const mostScanned = 20_000;
/** Up to this number, the latest come first; above it, they come in the order of their keys. */
const mostSorted = 200;

/** The reason is left out: it may name a person. */
const masked = ({ phone, since }: BlockedItem): BlockedItem => ({
  phone: lastFour(phone),
  since,
  reason: null,
});

/** Whether an entry has these digits in its number, or these words in its reason. */
const matches = ({ phone, reason }: BlockedItem, search: string): boolean => {
  if (/\p{L}/u.test(search)) return reason !== null && folded(reason).includes(folded(search));
  const digits = search.replaceAll(/\D/g, '');
  return digits !== '' && phone.includes(digits);
};

const found = async (
  list: DoNotText,
  search: string,
  asked: ReturnType<typeof pageAsked>,
): Promise<Listed<BlockedItem>> => {
  if (search === '') {
    const { page, pageSize } = asked;
    const { data: first, total } = await list.page(0, mostSorted);
    if (total <= mostSorted)
      return pageIn(
        first.toSorted((one, other) => other.since - one.since),
        asked,
      );
    const { data } = await list.page((page - 1) * pageSize, pageSize);
    return { data, pageInfo: { page, pageSize, totalRecord: total } };
  }
  const all: BlockedItem[] = [];
  let scanned = 0;
  for await (const each of list.all()) {
    if (matches(each, search)) all.push(each);
    scanned += 1;
    if (scanned === mostScanned) return pageIn(all, asked, null);
  }
  return pageIn(all, asked);
};

/** A page of the do-not-text list. Without the permission to write, numbers show their last four digits, and no reasons. */
export const readBlocked = async (asked: RouteRequest): Promise<Listed<BlockedItem>> => {
  const { request, mayWrite } = asked;
  const paging = pageAsked(request);
  const search = textIn(request, 'phone').trim();
  if (search !== '' && !mayWrite) return pageIn([], paging);
  const running = runningIn(asked);
  const read = async (): Promise<Listed<BlockedItem>> => {
    const list = await doNotTextOf(running);
    const phone = phoneNumber(search, running.settings.country);
    const one = phone === undefined ? undefined : await list.get(phone);
    return one ? pageIn([one], paging) : found(list, search, paging);
  };
  const { data, pageInfo } = await soon(read());
  return { data: mayWrite ? data : data.map(masked), pageInfo };
};

/** Takes a number off the list. */
export const unblock = async (asked: RouteRequest): Promise<object> => {
  const running = runningIn(asked);
  const phone = asked.request.params['phone'] ?? '';
  const list = await soon(doNotTextOf(running));
  // When the answer is that the store is unavailable, the number must stay on the list.
  if (!(await soon(list.check(phone)))) throw new Refused(404, 'refused.notBlocked');
  await soon(list.unblock(phone));
  activityOf(running).changed();
  return { phone };
};
