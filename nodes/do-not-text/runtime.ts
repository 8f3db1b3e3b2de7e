import { Stream, Streams } from '../../lib/address-book/operation';
import { runSearch, searchSettings } from '../../lib/address-book/search';
import { doNotTextOf, type Blocked, type DoNotText } from '../../lib/guards/do-not-text';
import type { Environment } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import { flowNode, isControl, type Handler, type Tools } from '../../lib/runtime/flow-node';
import { readAll } from '../../lib/runtime/inputs';
import { fieldOf, isNothing } from '../../lib/runtime/kinds';
import type { Outcome } from '../../lib/runtime/outcomes';
import { refusalBy, type GuardedTurn } from '../../lib/texting/guard-chain';
import { whenRead } from '../../lib/runtime/slices';
import { RecipientNode, type RecipientNodeOptions } from '../../lib/texting/recipient-node';
import { recipientsOf, type Recipient, type TextingOrder } from '../../lib/texting/recipients';
import type { MessageValue } from '../../lib/service/errors';
import { spec } from './spec';

interface ListOrder extends TextingOrder {
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

const payloadOf = (phone: string, blocked: Blocked | undefined): ListedNumber => ({
  phone,
  blocked: blocked !== undefined,
  since: blocked?.since ?? null,
  reason: blocked?.reason ?? null,
});

/**
 * Throws when it is not clear which list is meant. Other faults of the environment are ignored: whoever wants no texts
 * is blocked, whatever has to be mended.
 */
const checked = (tools: Tools): Environment => {
  tools.checkSettings();
  const environment = tools.environment();
  if (environment.storeFault) throw environment.storeFault;
  return environment;
};

const carryOut = async ({
  environment,
  shared,
  item,
}: GuardedTurn<NumberToList, ListOrder>): Promise<Outcome> => {
  const { phone = '', reason = null } = item;
  const list = await doNotTextOf(environment);
  switch (shared.operation) {
    case 'block':
      return { port: 0, payload: payloadOf(phone, await list.block(phone, reason, environment.clock.now())) };
    case 'unblock':
      await list.unblock(phone);
      return { port: 0, payload: payloadOf(phone, undefined) };
    default: {
      const by = await list.judge(phone);
      if (!by) return { port: 0, payload: payloadOf(phone, undefined) };
      const payload = { ...payloadOf(phone, typeof by === 'object' ? by : undefined), blocked: true };
      return { port: 2, payload, problem: refusalBy(by).problem };
    }
  }
};

const reader = (tools: Tools, operation: string): RecipientNodeOptions<NumberToList, ListOrder>['read'] => {
  const [source, reasons] = [tools.source('phone'), tools.source('reason')];
  return (msg, rules) => {
    const reading = ([who, why]: readonly unknown[]) => {
      const reason = operation === 'block' ? blockReason(why, reasons.where) : undefined;
      const recipients = recipientsOf<NumberToList>(who, source.where, rules, (entry, { record }) => {
        // A list that was exported has a reason for each number.
        const own = record && fieldOf(record, 'reason');
        const given = typeof own === 'string' && own !== '' ? own : reason;
        if (given !== undefined) entry.reason = given;
      });
      return whenRead(recipients, (read) => ({
        ...read,
        completeOrder: (shared: { operation?: string }) => {
          checked(tools);
          shared.operation = operation;
        },
      }));
    };
    const values = readAll([source, reasons], msg);
    return values instanceof Promise ? values.then(reading) : reading(values);
  };
};

/** Streams everybody on the list, as a search streams its results. */
const listing = (tools: Tools): ((stream: Stream<DoNotText>) => Promise<void>) => {
  const settings = searchSettings(tools);
  const { pageSize } = settings;
  return (stream) => {
    const fetch = async (page: number) => {
      const { data, total } = await stream.caller.page((page - 1) * pageSize, pageSize);
      return {
        data: data.map((blocked) => payloadOf(blocked.phone, blocked)),
        pageInfo: { page, pageSize, totalRecord: total },
      };
    };
    const search = {
      fetch,
      idOf: ({ phone }: ListedNumber) => phone,
      set: ({ phone }: ListedNumber) => ({ phone }),
    };
    return runSearch(stream, search, settings);
  };
};

const handler = (tools: Tools): Handler => {
  const operation = tools.plain.text('operation');
  const numbers = new RecipientNode<NumberToList, ListOrder>(tools, {
    source: tools.source('phone'),
    read: reader(tools, operation),
    isLocal: true,
    work: carryOut,
    statusTexts: { first: 'status.done', third: 'status.blocked' },
  });
  const list = listing(tools);
  const listings = new Streams<DoNotText>(tools, ({ msg, job }, why) => numbers.refuse(msg, job, why));
  return {
    get opening() {
      return numbers.opening;
    },
    input: async (msg, job) => {
      if (operation !== 'list') return numbers.input(msg, job);
      const all = await doNotTextOf(checked(tools));
      return listings.run(new Stream(tools, msg, job, all), list);
    },
    control: (msg, at) => {
      if (isControl(msg, 'reset')) listings.stop();
      return numbers.control(msg, at);
    },
    showFailure: (failure) => {
      numbers.showFailure(failure);
    },
    completeFailure: (failure, msg) => numbers.completeFailure(failure, msg),
    isBusy: () => false,
    close: async () => {
      await listings.close();
      await numbers.close();
    },
  };
};

export const create = flowNode(spec, handler);
