import { runSearch, searchSettings, type Search } from '../../lib/address-book/search';
import { doNotTextOf, refusalBy } from '../../lib/guards/do-not-text';
import type { BlockedItem } from '../../lib/runtime/activity-items';
import type { Environment } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import type { Tools } from '../../lib/runtime/flow-node';
import { readAll } from '../../lib/runtime/inputs';
import type { Item } from '../../lib/outbox/item';
import type { Shared } from '../../lib/outbox/records';
import { itemNode, type ItemNodeOptions } from '../../lib/runtime/item-node';
import { fieldOf, isNothing } from '../../lib/kinds';
import type { Outcome } from '../../lib/outbox/outcome';
import type { PrepareSearch } from '../../lib/runtime/searches';
import type { MessageValue } from '../../lib/service/errors';
import {
  phoneRules,
  phonesOfControl,
  recipientsOf,
  usedFields,
  whenRead,
  type Recipient,
} from '../../lib/texting/recipients';
import { spec } from './spec';

interface ListShared extends Shared {
  /** The operation when the message was accepted: an item is carried out by it, even if the node was changed since. */
  readonly operation: string;
}

interface NumberToList extends Recipient {
  readonly reason?: string;
}

const blockReason = (value: unknown, where: MessageValue): string | undefined => {
  if (isNothing(value)) return undefined;
  if (typeof value !== 'string' && typeof value !== 'number') throw invalidInput('reason_kind', { where });
  return String(value);
};

interface ListedNumber {
  readonly phone: string;
  readonly blocked: boolean;
  readonly since: number | null;
  readonly reason: string | null;
}

const payloadOf = (phone: string, blocked: BlockedItem | undefined): ListedNumber => ({
  phone,
  blocked: blocked !== undefined,
  since: blocked?.since ?? null,
  reason: blocked?.reason ?? null,
});

/**
 * Throws when it is not clear which list is meant. Other faults of the environment are ignored: a number can be
 * blocked even if something else needs fixing.
 */
const checked = (tools: Tools): Environment => {
  tools.checkSettings();
  const environment = tools.environment();
  if (environment.storeFault) throw environment.storeFault;
  return environment;
};

const carryOut = async (
  { shared, data }: Item<NumberToList, ListShared>,
  environment: Environment,
): Promise<Outcome> => {
  const { phone = '', reason = null } = data;
  const list = await doNotTextOf(environment);
  switch (shared.operation) {
    case 'block':
      return { port: 0, payload: payloadOf(phone, await list.block(phone, reason, environment.clock.now())) };
    case 'unblock':
      await list.unblock(phone);
      return { port: 0, payload: payloadOf(phone, undefined) };
    default: {
      const by = await list.check(phone);
      if (!by) return { port: 0, payload: payloadOf(phone, undefined) };
      const payload = { ...payloadOf(phone, typeof by === 'object' ? by : undefined), blocked: true };
      return { port: 2, payload, problem: refusalBy(by).problem };
    }
  }
};

const reader = (tools: Tools, operation: string): ItemNodeOptions<NumberToList, ListShared>['read'] => {
  const [source, reasons] = [tools.source('phone'), tools.source('reason')];
  const rules = phoneRules(tools);
  return (msg) =>
    whenRead(readAll([source, reasons], msg), ([who, why]) => {
      const reason = operation === 'block' ? blockReason(why, reasons.where) : undefined;
      const recipients = recipientsOf<NumberToList>(who, source.where, rules, (entry, { record }) => {
        // A list that was exported has a reason for each number.
        const own = record && fieldOf(record, 'reason');
        const given = typeof own === 'string' && own !== '' ? own : reason;
        if (given !== undefined) entry.reason = given;
      });
      return whenRead(recipients, (read) => ({
        ...read,
        source,
        shared: { advisor: '', operation },
        check: () => void checked(tools),
      }));
    });
};

/** Streams everybody on the list, as a search streams its results. */
const listing = (tools: Tools): PrepareSearch => {
  const settings = searchSettings(tools);
  return async () => {
    const list = await doNotTextOf(checked(tools));
    const listed = (blocked: BlockedItem): ListedNumber => payloadOf(blocked.phone, blocked);
    const search: Search<ListedNumber> = {
      async fetch(page, pageSize) {
        const { data, total } = await list.page((page - 1) * pageSize, pageSize);
        return { data: data.map(listed), pageInfo: { page, pageSize, totalRecord: total } };
      },
      // A flow may unblock what it lists.
      async *all() {
        for await (const blocked of list.all()) yield listed(blocked);
      },
      set: ({ phone }) => ({ phone }),
    };
    return (stream) => runSearch(stream, search, settings);
  };
};

export const create = itemNode<NumberToList, ListShared>(spec, (tools) => {
  const operation = tools.plain.text('operation');
  return {
    read: reader(tools, operation),
    work: (item) => carryOut(item, tools.environment()),
    fields: usedFields,
    phonesOf: (msg) => phonesOfControl(msg, phoneRules(tools)),
    isLocal: true,
    statusTexts: { first: 'status.done', third: 'status.blocked' },
    search: operation === 'list' ? listing(tools) : undefined,
  };
});
