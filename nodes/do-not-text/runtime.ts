import type { Node, NodeAPI } from 'node-red';
import { Stream } from '../../lib/address-book/operation';
import { runSearch, searchSettings } from '../../lib/address-book/search';
import { doNotTextOf, type Blocked } from '../../lib/guards/do-not-text';
import { invalidInput, nodeError } from '../../lib/runtime/errors';
import { flowNode, isOrder, type Handler, type Tools } from '../../lib/runtime/flow-node';
import { readAll } from '../../lib/runtime/inputs';
import { fieldOf, isNothing } from '../../lib/runtime/kinds';
import type { Order } from '../../lib/runtime/node-outbox';
import { failedOutcome, type Outcome } from '../../lib/runtime/outcomes';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { RecipientNode, type GuardedTurn, type RecipientNodeOptions } from '../../lib/texting/recipient-node';
import { recipientsOf, type Recipient } from '../../lib/texting/recipients';
import type { MessageValue } from '../../lib/service/errors';
import { spec } from './spec';

interface ListOrder extends Order {
  /** It is carried out as it was meant when it came, whatever the node is set to since. */
  readonly operation: string;
}

interface Entry extends Recipient {
  readonly reason?: string;
}

const reasonOf = (value: unknown, where: MessageValue): string | undefined => {
  if (isNothing(value)) return undefined;
  if (typeof value !== 'string' && typeof value !== 'number') throw invalidInput('reason_kind', { where });
  return String(value);
};

const payloadOf = (phone: string, blocked: Blocked | undefined) => ({
  phone,
  blocked: blocked !== undefined,
  since: blocked?.since ?? null,
  reason: blocked?.reason ?? null,
});

const carryOut = async ({ environment, order, item }: GuardedTurn<Entry, ListOrder>): Promise<Outcome> => {
  const { phone = '', reason = null } = item;
  const list = await doNotTextOf(environment);
  switch (order.operation) {
    case 'block':
      return { port: 0, payload: payloadOf(phone, await list.block(phone, reason, environment.clock.now())) };
    case 'unblock':
      await list.unblock(phone);
      return { port: 0, payload: payloadOf(phone, undefined) };
    default: {
      const blocked = await list.get(phone);
      const payload = payloadOf(phone, blocked);
      return blocked
        ? { port: 2, payload, problem: nodeError('blocked', 'blocked').problem }
        : { port: 0, payload };
    }
  }
};

const reader = (tools: Tools, operation: string): RecipientNodeOptions<Entry, ListOrder>['read'] => {
  const [source, reasons] = [tools.source('phone'), tools.source('reason')];
  return (msg, country) => {
    const reading = ([who, why]: readonly unknown[]) => {
      const reason = operation === 'block' ? reasonOf(why, reasons.where) : undefined;
      const recipients = recipientsOf<Entry>(who, source.where, country, (entry, { record }) => {
        // A list that was exported brings the reasons with it.
        const own = record && fieldOf(record, 'reason');
        const given = typeof own === 'string' && own !== '' ? own : reason;
        if (given !== undefined) entry.reason = given;
      });
      return {
        ...recipients,
        complete: (order: { operation?: string }) => {
          tools.checkSettings();
          tools.environment();
          order.operation = operation;
        },
      };
    };
    const values = readAll([source, reasons], msg);
    return values instanceof Promise ? values.then(reading) : reading(values);
  };
};

/** Everybody on the list, as a search gives its results. */
const listing = (
  tools: Tools,
): { readonly input: Handler['input']; readonly stop: (isClosing: boolean) => void } => {
  const settings = searchSettings(tools);
  const streams = new Set<Stream<undefined>>();
  const input: Handler['input'] = async (msg, job) => {
    tools.checkSettings();
    const list = await doNotTextOf(tools.environment());
    const stream = new Stream(tools, msg, job, undefined);
    streams.add(stream);
    const { pageSize } = settings;
    const fetch = async (page: number) => {
      const { data, total } = await list.page((page - 1) * pageSize, pageSize);
      return {
        data: data.map((blocked) => payloadOf(blocked.phone, blocked)),
        pageInfo: { page, pageSize, totalRecord: total },
      };
    };
    try {
      await runSearch(
        stream,
        { fetch, idOf: ({ phone }) => phone, set: ({ phone }) => ({ phone }) },
        settings,
      );
    } finally {
      streams.delete(stream);
    }
  };
  const stop = (isClosing: boolean): void => {
    for (const stream of streams) stream.stop(isClosing);
  };
  return { input, stop };
};

const handler = (tools: Tools): Handler => {
  const operation = tools.plain.text('operation');
  const numbers = new RecipientNode<Entry, ListOrder>(tools, {
    source: tools.source('phone'),
    read: reader(tools, operation),
    work: carryOut,
    cancelled: () => failedOutcome(nodeError('cancelled', 'cancelled').problem),
    said: { first: 'status.done', third: 'status.blocked' },
  });
  const list = listing(tools);
  return {
    get opening() {
      return numbers.opening;
    },
    input: (msg, job) => (operation === 'list' ? list.input(msg, job) : numbers.input(msg, job)),
    control: (msg, at) => {
      if (isOrder(msg, 'reset')) list.stop(false);
      return numbers.control(msg, at);
    },
    isBusy: () => false,
    close: () => {
      list.stop(true);
      return numbers.close();
    },
  };
};

export const create = (RED: NodeAPI, node: Node, config: Config): void => {
  flowNode(RED, node as RunningNode, config, spec, handler);
};
