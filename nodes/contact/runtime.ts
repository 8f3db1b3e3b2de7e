import type { MessageValue } from '../../lib/service/errors';
import {
  operationNode,
  contactKey,
  type Caller,
  type ItemOperation,
  type OperationTurn,
  type BookOperation,
} from '../../lib/address-book/operation';
import { unknownFields } from '../../lib/address-book/record-fields';
import { filterOf, searching, sortingOf } from '../../lib/address-book/search';
import type { Tools } from '../../lib/runtime/flow-node';
import { idFrom } from '../../lib/runtime/inputs';
import { invalidInput } from '../../lib/runtime/errors';
import { oneAtATime } from '../../lib/service/concurrency';
import { anyId, isNothing, isRecord } from '../../lib/kinds';
import type { Config } from '../../lib/runtime/register';
import type { Id, ResponseOf } from '../../lib/service/endpoints';
import { contactBody, changesOf, contactSource, merged, type ContactBody } from './input';
import {
  forgetCreated,
  Matcher,
  matchKey,
  matchValueOf,
  matchValuesOf,
  readMatches,
  type MatchBy,
} from './matches';
import { contactFieldKinds, spec } from './spec';

const createOne = async (
  { caller, known }: OperationTurn,
  body: ContactBody,
): Promise<ResponseOf<'createContact'>> => {
  const result = await caller.call('createContact', { body });
  if (result.id != null) known.contactId = result.id;
  return result;
};

const creating = (tools: Tools, config: Config): ItemOperation => {
  const contact = contactSource(tools, config.fields);
  return {
    kind: 'items',
    source: contact,
    warn: unknownFields(tools, contactFieldKinds),
    carries: (item) => ({ contact: item }),
    async work(turn) {
      return createOne(turn, contactBody(turn.item, contact.where, turn.caller.environment.settings.country));
    },
  };
};

/**
 * The id of the contact; undefined when none is given. In a list, each contact has its own: with one id for all, each
 * would overwrite the one before.
 */
const idGiven = ({ item, data: ids, index, list }: OperationTurn, where: MessageValue) => {
  const own = isRecord(item) ? item.contactId : undefined;
  const given: unknown[] = list ? [own, Array.isArray(ids) ? ids[index] : undefined] : [ids, own];
  const id = given.map(anyId).find((each) => each !== undefined);
  const wrong = given.find((each) => !isNothing(each));
  return id === undefined && wrong !== undefined ? idFrom(wrong, list ? 'contactId' : where) : id;
};

/** An operation on contacts of the message that may have ids. */
const byContact = (
  tools: Tools,
  config: Config,
  work: (turn: OperationTurn, id: Id | undefined) => Promise<unknown>,
): ItemOperation => {
  const contactId = tools.source('contactId');
  return {
    kind: 'items',
    source: contactSource(tools, config.fields),
    warn: unknownFields(tools, { ...contactFieldKinds, contactId: true }),
    data: contactId.read,
    carries: (item) => ({ contact: item }),
    work: async (turn) => work(turn, idGiven(turn, contactId.where)),
  };
};

const updating = (tools: Tools, config: Config): ItemOperation => {
  const { where } = tools.source('contactId');
  const update = updater(tools);
  return byContact(tools, config, (turn, id) => {
    if (id !== undefined) return update(turn, id);
    throw turn.list ? invalidInput('contact_id_in_list') : invalidInput('id_missing', { where });
  });
};

const updater = (tools: Tools) => {
  const { where } = tools.source('contact');
  const merge = tools.plain.flag('merge');
  return async ({ caller, item, known }: OperationTurn, id: Id) => {
    known.contactId = id;
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
};

/** Updates the contact with the given id, else the only one that matches; creates it where there is none. */
const saving = (tools: Tools, config: Config): ItemOperation => {
  const { where } = tools.source('contact');
  const matchBy = tools.plain.text('matchBy') as MatchBy;
  const update = updater(tools);
  return byContact(tools, config, async (turn, id) => {
    if (id !== undefined) return update(turn, id);
    const { caller, item, list, once } = turn;
    const body = contactBody(item, where, caller.environment.settings.country);
    const value = matchValueOf(body, matchBy);
    return oneAtATime(matchKey(caller, matchBy, value), async () => {
      const ofList = async (all: Caller) =>
        new Matcher(matchBy, await readMatches(all, matchBy, matchValuesOf(turn.entries, matchBy)));
      const matcher = list ? await once(ofList) : new Matcher(matchBy);
      const match = await matcher.find(caller, value);
      return match === undefined
        ? matcher.creating(caller, value, () => createOne(turn, body))
        : update(turn, match);
    });
  });
};

const byContactId = (
  tools: Tools,
  operate: (caller: OperationTurn['caller'], id: Id) => Promise<unknown>,
): ItemOperation => {
  const contactId = tools.source('contactId');
  return {
    kind: 'items',
    source: contactId,
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
      forgetCreated(caller, contactId);
      await caller.call('deleteContact', { params: { contactId } });
      return { id: contactId };
    }),
  );

const nameFields = ['fullName', 'firstName', 'lastName', 'email'];

const searchingContacts = (tools: Tools): BookOperation => {
  const sorting = sortingOf(tools, 'sortBy', 'sortDirection');
  const filter = filterOf(tools, nameFields);
  return searching(tools, async (msg, caller) => ({
    matches: await filter(msg),
    fetch: (page, pageSize, signal) =>
      caller.call('searchContacts', { query: { page, pageSize, ...sorting } }, signal),
    idOf: ({ contactId }) => contactId ?? undefined,
    set: ({ contactId }) => (contactId == null ? {} : { contactId }),
  }));
};

export const create = operationNode(spec, (tools, config) => ({
  search: searchingContacts(tools),
  get: getting(tools),
  create: creating(tools, config),
  update: updating(tools, config),
  save: saving(tools, config),
  delete: deleting(tools),
}));
