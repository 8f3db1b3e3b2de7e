import { serviceError, type MessageValue } from '../../lib/service/errors';
import {
  operationNode,
  contactKey,
  type Caller,
  type ItemOperation,
  type Fields,
  type BookOperation,
} from '../../lib/address-book/operation';
import { fieldsGiven, unknownFields } from '../../lib/address-book/record-fields';
import { filterOf, searching, sortingOf } from '../../lib/address-book/search';
import type { Tools } from '../../lib/runtime/flow-node';
import { entriesOf, idFrom } from '../../lib/runtime/inputs';
import { invalidInput } from '../../lib/runtime/errors';
import { oneAtATime } from '../../lib/service/concurrency';
import { isNothing, isRecord, wholeId } from '../../lib/kinds';
import type { Message } from '../../lib/runtime/red';
import type { Id, RequestOf } from '../../lib/service/endpoints';
import { listingMembers } from './members';
import { asServiceWrites, forgetNames, groupFrom, isSame, knownId } from './names';
import { groupFieldKinds, spec } from './spec';

/** A bare text is a group with this name. */
const groupBody = (group: unknown, where: MessageValue): RequestOf<'createGroup'>['body'] => {
  const record = typeof group === 'string' ? { name: group.trim() } : group;
  if (!isRecord(record)) throw invalidInput('group_kind', { where });
  const body = fieldsGiven(record, groupFieldKinds);
  if ((body.name ?? '') === '' && (body.externalGroupId ?? '') === '') throw invalidInput('group_unnamed');
  return body;
};

const creating = (tools: Tools): ItemOperation => {
  const group = tools.source('group');
  return {
    kind: 'items',
    source: group,
    warn: unknownFields(tools, groupFieldKinds),
    carries: (item) => ({ group: item }),
    async work({ caller, item, known }) {
      const body = groupBody(item, group.where);
      try {
        const result = await caller.call('createGroup', { body });
        if (result.id != null) known.groupId = result.id;
        return result;
      } finally {
        forgetNames(caller);
      }
    },
  };
};

const deleting = (tools: Tools): ItemOperation => {
  const groupId = tools.source('groupId');
  const idToDelete = async (caller: Caller, value: unknown): Promise<Id> => {
    const isWord = typeof value === 'string' && value.trim() !== '' && wholeId(value) === undefined;
    if (!isWord) return idFrom(value, groupId.where);
    const id = await knownId(caller, value.trim());
    if (id === undefined) throw invalidInput('group_delete_id', { where: groupId.where });
    return id;
  };
  return {
    kind: 'items',
    source: groupId,
    carries: (item, list) => (list ? { groupId: item } : {}),
    async work({ caller, item, known }) {
      const id = await idToDelete(caller, item);
      known.groupId = id;
      try {
        await caller.call('deleteGroup', { params: { groupId: id } });
        return { id };
      } finally {
        forgetNames(caller);
      }
    },
  };
};

interface MembershipChange {
  /** Message fields that every outcome carries. */
  readonly known: Fields;
  readonly make: (caller: Caller, contactId: Id) => Promise<unknown>;
}

/** Changes the groups of each contact of the message. `prepare` works out the change once for all contacts. */
const changing = (
  tools: Tools,
  readGroups: (msg: Message) => unknown,
  prepare: (caller: Caller, groups: unknown) => Promise<MembershipChange>,
): ItemOperation => {
  const contactId = tools.source('contactId');
  return {
    kind: 'items',
    source: contactId,
    data: readGroups,
    carries: (item, list) => (list ? { contactId: item } : {}),
    async work({ caller, item, data, known, once }) {
      const id = idFrom(item, contactId.where);
      known.contactId = id;
      const change = await once((all) => prepare(all, data));
      Object.assign(known, change.known);
      return oneAtATime(contactKey(caller, id), () => change.make(caller, id));
    },
  };
};

/** Sent as set, true or false: the contract does not say what it does (*Endpoints*, Gaps). */
const selectAllOf = ({ plain }: Tools): { readonly isSelectAllGroup?: boolean } => {
  const chosen = plain.text('isSelectAllGroup');
  return chosen === '' ? {} : { isSelectAllGroup: chosen === 'true' };
};

/** Reads the groups of a contact and writes them back with the change, if there is one. */
const changeGroups =
  (
    selectAll: ReturnType<typeof selectAllOf>,
    change: (groupIds: readonly Id[], writtenId: Id) => readonly Id[],
  ) =>
  async (caller: Caller, contactId: Id): Promise<unknown> => {
    const params = { contactId };
    const { groupIds, contactId: writtenId } = await caller.call('getContact', { params });
    // The memberships are replaced as a whole (contract, *Address book and content*): without the present ones, the
    // contact would leave its other groups.
    if (!groupIds) throw serviceError('invalid_response', 'contact_without_groups');
    const after = change(groupIds, writtenId);
    const isUnchanged = after.length === groupIds.length && selectAll.isSelectAllGroup === undefined;
    if (isUnchanged) return { id: contactId };
    return caller.call('setContactGroups', { params, body: { groupIds: [...after], ...selectAll } });
  };

const withGroup = (
  tools: Tools,
  change: (groupIds: readonly Id[], groupId: Id, writtenId: Id) => readonly Id[],
): ItemOperation => {
  const group = tools.source('groupId');
  const selectAll = selectAllOf(tools);
  return changing(tools, group.read, async (caller, value) => {
    const groupId = await groupFrom(caller, value, group.where);
    const make = changeGroups(selectAll, (groupIds, writtenId) => change(groupIds, groupId, writtenId));
    return { known: { groupId }, make };
  });
};

const adding = (tools: Tools): ItemOperation =>
  withGroup(tools, (groupIds, groupId, writtenId) => {
    if (groupIds.some((id) => isSame(id, groupId))) return groupIds;
    // An id of 16 digits or more is a string here only because a number would be rounded, so it does not tell how ids
    // are written. That of a contact in no group tells it only if it is digits: groups may have ids of another kind.
    const areStrings =
      groupIds.some((id) => typeof id === 'string' && !/^\d{16,}$/.test(id)) ||
      (groupIds.length === 0 && typeof writtenId === 'string' && /^\d{1,15}$/.test(writtenId));
    return [...groupIds, areStrings ? String(groupId) : groupId];
  });

const removing = (tools: Tools): ItemOperation =>
  withGroup(tools, (groupIds, groupId) => groupIds.filter((id) => !isSame(id, groupId)));

const setting = (tools: Tools): ItemOperation => {
  const groups = tools.source('groupIds');
  const selectAll = selectAllOf(tools);
  return changing(tools, groups.read, async (caller, value) => {
    const none = selectAll.isSelectAllGroup === true && isNothing(value);
    const given = Array.isArray(value) ? entriesOf(value, groups.where) : none ? [] : [value];
    const written = (one: unknown): Promise<Id> =>
      typeof one === 'string' && wholeId(one) !== undefined
        ? asServiceWrites(caller, one)
        : groupFrom(caller, one, groups.where);
    const groupIds: Id[] = [];
    for (const id of await Promise.all(given.map(written)))
      if (!groupIds.some((other) => isSame(other, id))) groupIds.push(id);
    const body = { groupIds, ...selectAll };
    return {
      known: {},
      make: (at, contactId) => at.call('setContactGroups', { params: { contactId }, body }),
    };
  });
};

const searchingGroups = (tools: Tools): BookOperation => {
  const sorting = sortingOf(tools, 'sortDirection');
  const filter = filterOf(tools, ['name']);
  return searching(tools, async (msg, caller) => ({
    matches: await filter(msg),
    fetch: (page, pageSize, signal) =>
      caller.call('searchGroups', { query: { page, pageSize, ...sorting } }, signal),
    idOf: ({ groupId }) => groupId ?? undefined,
    set: ({ groupId }) => (groupId == null ? {} : { groupId }),
  }));
};

export const create = operationNode(spec, (tools) => ({
  create: creating(tools),
  search: searchingGroups(tools),
  members: listingMembers(tools),
  delete: deleting(tools),
  addContact: adding(tools),
  removeContact: removing(tools),
  setGroups: setting(tools),
}));
