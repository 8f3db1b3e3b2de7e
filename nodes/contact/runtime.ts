import type { MessageValue } from '../../lib/service/errors';
import {
  OperationHandler,
  contactKey,
  type ItemOperation,
  type OperationTurn,
  type BookOperation,
  type Stream,
} from '../../lib/address-book/operation';
import { unknownFields } from '../../lib/address-book/record-fields';
import { filterFrom, matcherOf, runSearch, searchSettings } from '../../lib/address-book/search';
import { flowNode, type Tools } from '../../lib/runtime/flow-node';
import { anyId, idFrom, oneOrList } from '../../lib/runtime/inputs';
import { invalidInput } from '../../lib/runtime/errors';
import { oneAtATime } from '../../lib/service/concurrency';
import { isRecord } from '../../lib/runtime/kinds';
import type { Config } from '../../lib/runtime/register';
import type { Id, RequestOf } from '../../lib/service/endpoints';
import { contactBody, changesOf, contactReader, merged } from './input';
import { contactFieldKinds, spec } from './spec';

const creating = (tools: Tools, config: Config): ItemOperation => {
  const contact = tools.source('contact');
  const read = contactReader(tools, contact, config.fields);
  const warn = unknownFields(tools, contactFieldKinds);
  return {
    kind: 'items',
    source: contact,
    async read(msg) {
      const given = oneOrList(await read(msg), contact.where);
      warn(given.items);
      return { ...given, data: null };
    },
    carries: (item) => ({ contact: item }),
    async work({ caller, item, known }) {
      const body = contactBody(item, contact.where, caller.environment.settings.country);
      const result = await caller.call('createContact', { body });
      if (result.id != null) known.contactId = result.id;
      return result;
    },
  };
};

/** In a list, each contact names its own id: with one id for all, each would overwrite the one before. */
const idToUpdate = ({ item, data: ids, index, list }: OperationTurn<unknown>, where: MessageValue): Id => {
  const own = isRecord(item) ? anyId(item.contactId) : undefined;
  if (!list) return own !== undefined && anyId(ids) === undefined ? own : idFrom(ids, where);
  const id = own ?? (Array.isArray(ids) ? anyId(ids[index]) : undefined);
  if (id === undefined) throw invalidInput('contact_id_in_list');
  return id;
};

const updating = (tools: Tools, config: Config): ItemOperation => {
  const contact = tools.source('contact');
  const contactId = tools.source('contactId');
  const merge = tools.plain.flag('merge');
  const read = contactReader(tools, contact, config.fields);
  const warn = unknownFields(tools, { ...contactFieldKinds, contactId: true });
  return {
    kind: 'items',
    source: contact,
    async read(msg) {
      const [value, ids] = await Promise.all([read(msg), contactId.read(msg)]);
      const given = oneOrList(value, contact.where);
      warn(given.items);
      return { ...given, data: ids };
    },
    carries: (item) => ({ contact: item }),
    async work(turn) {
      const id = idToUpdate(turn, contactId.where);
      turn.known.contactId = id;
      return updateOne(turn, id, contact.where, merge);
    },
  };
};

const updateOne = ({ caller, item }: OperationTurn<unknown>, id: Id, where: MessageValue, merge: boolean) => {
  const params = { contactId: id };
  const { country } = caller.environment.settings;
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => oneAtATime(contactKey(caller, id), work);
  if (!merge) {
    const body = contactBody(item, where, country);
    return inTurn(() => caller.call('updateContact', { params, body }));
  }
  const changes = changesOf(item, where, country);
  return inTurn(async () => {
    const current = await caller.call('getContact', { params });
    return caller.call('updateContact', { params, body: merged(current, changes, country) });
  });
};

/** For operations that need nothing but the id. */
const byContactId = (
  tools: Tools,
  operate: (caller: OperationTurn<unknown>['caller'], id: Id) => Promise<unknown>,
): ItemOperation => {
  const contactId = tools.source('contactId');
  return {
    kind: 'items',
    source: contactId,
    read: async (msg) => ({ ...oneOrList(await contactId.read(msg), contactId.where), data: null }),
    carries: (item, list) => (list ? { contactId: item } : {}),
    async work({ caller, item, known }) {
      const id = idFrom(item, contactId.where);
      known.contactId = id;
      return operate(caller, id);
    },
  };
};

const getting = (tools: Tools): ItemOperation =>
  byContactId(tools, (caller, contactId) => caller.call('getContact', { params: { contactId } }));

const deleting = (tools: Tools): ItemOperation =>
  byContactId(tools, (caller, contactId) =>
    oneAtATime(contactKey(caller, contactId), async () => {
      await caller.call('deleteContact', { params: { contactId } });
      return { id: contactId };
    }),
  );

type Sorting = Pick<NonNullable<RequestOf<'searchContacts'>['query']>, 'sortBy' | 'sortDirection'>;

/** Empty leaves the order to the service; an unknown value is refused before anything is sent. */
const sortingOf = (tools: Tools): Sorting => {
  const sortBy = tools.plain.text('sortBy');
  const sortDirection = tools.plain.text('sortDirection');
  return { ...(sortBy !== '' && { sortBy }), ...(sortDirection !== '' && { sortDirection }) } as Sorting;
};

/** The fields in which a filter searches. */
const nameFields = ['fullName', 'firstName', 'lastName', 'email'];

const searching = (tools: Tools): BookOperation => {
  const settings = searchSettings(tools);
  const sorting = sortingOf(tools);
  const filter = tools.source('filter');
  const run = async (stream: Stream): Promise<void> =>
    runSearch(
      stream,
      {
        matches: matcherOf(filterFrom(await filter.read(stream.msg), filter.where), nameFields),
        fetch: (page, pageSize, signal) =>
          stream.caller.call('searchContacts', { query: { page, pageSize, ...sorting } }, signal),
        idOf: ({ contactId }) => contactId ?? undefined,
        set: ({ contactId }) => (contactId == null ? {} : { contactId }),
      },
      settings,
    );
  return { kind: 'search', run };
};

const operationsOf = (tools: Tools, config: Config): Readonly<Record<string, BookOperation>> => ({
  create: creating(tools, config),
  update: updating(tools, config),
  get: getting(tools),
  delete: deleting(tools),
  search: searching(tools),
});

export const create = flowNode(
  spec,
  (tools, config) => new OperationHandler(tools, operationsOf(tools, config)),
);
