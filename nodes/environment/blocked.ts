import { setImmediate as nextTick } from 'node:timers/promises';
import { doNotTextOf, type DoNotText } from '../../lib/guards/do-not-text';
import { activityOf } from '../../lib/runtime/activity';
import type { BlockedItem, Listed } from '../../lib/runtime/activity-items';
import { lastFour } from '../../lib/runtime/log';
import { folded } from '../../lib/kinds';
import { phoneNumber } from '../../lib/texting/recipients';
import { pageAsked, runningIn, soon } from './sidebar-data';
import type { RouteRequest } from './form';
import { Refused, textIn } from './reply';

/** The most numbers that are scanned for a search without a key. */
const mostScanned = 20_000;
const readAtOnce = 1_000;
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
  { page, pageSize }: { readonly page: number; readonly pageSize: number },
): Promise<Listed<BlockedItem>> => {
  const skip = (page - 1) * pageSize;
  if (search === '') {
    const { data: first, total } = await list.page(0, mostSorted);
    const data =
      total > mostSorted
        ? (await list.page(skip, pageSize)).data
        : first.toSorted((one, other) => other.since - one.since).slice(skip, skip + pageSize);
    return { data, pageInfo: { page, pageSize, totalRecord: total } };
  }
  const all: BlockedItem[] = [];
  let scanned = 0;
  for (let total = Infinity; scanned < Math.min(total, mostScanned);) {
    const read = await list.page(scanned, readAtOnce);
    if (read.data.length === 0) break;
    ({ total } = read);
    scanned += read.data.length;
    all.push(...read.data.filter((each) => matches(each, search)));
    await nextTick();
  }
  const data = all.slice(skip, skip + pageSize);
  return { data, pageInfo: { page, pageSize, totalRecord: scanned < mostScanned ? all.length : null } };
};

/** A page of the do-not-text list. Without the permission to write, numbers show their last four digits, and no reasons. */
export const readBlocked = async (asked: RouteRequest): Promise<Listed<BlockedItem>> => {
  const { request, mayWrite } = asked;
  const paging = pageAsked(request);
  const search = textIn(request, 'phone').trim();
  if (search !== '' && !mayWrite) return { data: [], pageInfo: { ...paging, totalRecord: 0 } };
  const running = runningIn(asked);
  const read = async (): Promise<Listed<BlockedItem>> => {
    const list = await doNotTextOf(running);
    const phone = phoneNumber(search, running.settings.country);
    const one = phone === undefined ? undefined : await list.get(phone);
    return one ? { data: [one], pageInfo: { ...paging, totalRecord: 1 } } : found(list, search, paging);
  };
  const { data, pageInfo } = await soon(read());
  return { data: mayWrite ? data : data.map(masked), pageInfo };
};

/** Takes a number off the list. */
export const unblock = async (asked: RouteRequest): Promise<object> => {
  const running = runningIn(asked);
  const phone = asked.request.params['phone'] ?? '';
  const remove = async (): Promise<boolean> => {
    const list = await doNotTextOf(running);
    if (!(await list.check(phone))) return false;
    await list.unblock(phone);
    return true;
  };
  if (!(await soon(remove()))) throw new Refused(404, 'refused.notBlocked');
  activityOf(running).changed();
  return { phone };
};
