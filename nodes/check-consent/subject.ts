import { anyId, entriesOf, type Source } from '../../lib/runtime/inputs';
import type { Tools } from '../../lib/runtime/flow-node';
import { invalidInput } from '../../lib/runtime/errors';
import { isNothing } from '../../lib/runtime/kinds';
import {
  readWith,
  withOwnAdvisor,
  type RecipientNodeOptions,
  type TextingOrder,
} from '../../lib/texting/recipient-node';
import { recipientsOf, type Recipient, type Recipients } from '../../lib/texting/recipients';

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

/** Reads whom to check: by number or by member id, as the node is set. */
export const subjects = (
  tools: Tools,
): Pick<RecipientNodeOptions<Recipient, TextingOrder>, 'source' | 'read'> => {
  const isByMember = tools.plain.text('by') === 'memberId';
  const source = tools.source(isByMember ? 'memberId' : 'phone');
  return {
    source,
    read: readWith(tools, source, (value, rules) =>
      isByMember
        ? recipientsByMember(value, source)
        : recipientsOf(value, source.where, rules, withOwnAdvisor(tools)),
    ),
  };
};
