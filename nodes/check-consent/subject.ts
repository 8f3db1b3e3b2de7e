import type { Subject } from '../../lib/consent/waits';
import type { Source } from '../../lib/runtime/inputs';
import type { Tools } from '../../lib/runtime/flow-node';
import { invalid } from '../../lib/runtime/errors';
import { peopleByPhone, type People, type PeopleOptions, type Person } from '../../lib/runtime/people';

const memberIdOf = (value: unknown): number | undefined => {
  const id = typeof value === 'string' && /^\s*\d+\s*$/.test(value) ? Number(value) : value;
  return typeof id === 'number' && Number.isSafeInteger(id) ? id : undefined;
};

const peopleByMember = (value: unknown, { where }: Source): People => {
  const isEmpty = value === undefined || value === null || value === '';
  if (isEmpty || (Array.isArray(value) && value.length === 0)) throw invalid('member_missing', { where });
  const given: readonly unknown[] = Array.isArray(value) ? Array.from(value as readonly unknown[]) : [value];
  const people = given.map((each, index): Person => {
    const memberId = memberIdOf(each);
    return memberId === undefined
      ? { index, wrong: invalid('member_kind', { where }).problem }
      : { index, memberId };
  });
  return { list: Array.isArray(value), items: people, count: people.length };
};

/** Who is meant, by whichever of the two the node is set to. */
export const subjects = (tools: Tools): Pick<PeopleOptions, 'source' | 'read'> => {
  const isByMember = tools.plain.text('by') === 'memberId';
  const source = tools.source(isByMember ? 'memberId' : 'phone');
  return {
    source,
    read: (value, environment) =>
      isByMember
        ? peopleByMember(value, source)
        : peopleByPhone(value, source.where, environment?.settings.country ?? ''),
  };
};

export const subjectOf = ({ phone, memberId = 0 }: Person): Subject =>
  phone === undefined ? { memberId } : { phone };
