import { sharedBy } from '../../lib/runtime/fields';
import type { Tools } from '../../lib/runtime/flow-node';
import { idFrom, oneOrList, wholeId } from '../../lib/runtime/ids';
import { invalid } from '../../lib/runtime/messages';
import { oneAtATime } from '../../lib/runtime/queue';
import { fieldsGiven, unknownFields } from '../../lib/runtime/record';
import { isRecord } from '../../lib/runtime/red';
import { runSearch, searchSettings } from '../../lib/runtime/search';
import { contactKey, type Known, type Run, type Task } from '../../lib/runtime/task';
import type { Id, RequestOf } from '../../lib/service/endpoints';
import { forgetNames, groupFrom } from './names';
import { groupFields } from './spec';

/** A name alone is enough of a group. */
const groupBody = (group: unknown, where: string): RequestOf<'createGroup'>['body'] => {
  const record = typeof group === 'string' ? { name: group.trim() } : group;
  if (!isRecord(record)) throw invalid('group_kind', { where });
  const body = fieldsGiven(record, groupFields);
  if ((body.name ?? '') === '' && (body.externalGroupId ?? '') === '') throw invalid('group_unnamed');
  return body;
};

const creating = (tools: Tools): Run => {
  const group = tools.source('group');
  const warn = unknownFields(tools, groupFields);
  return async (task) => {
    const given = oneOrList(await group.read(task.msg), group.where);
    warn(given.items);
    await task.each({
      ...given,
      shared: sharedBy(group),
      carries: (item) => ({ group: item }),
      async work(item, _index, known) {
        const body = groupBody(item, group.where);
        try {
          const result = await task.call('createGroup', { body });
          if (result.id != null) known.groupId = result.id;
          return result;
        } finally {
          forgetNames(task.caller);
        }
      },
    });
  };
};

const deleting = (tools: Tools): Run => {
  const groupId = tools.source('groupId');
  const idToDelete = (value: unknown): Id => {
    const isName = typeof value === 'string' && value.trim() !== '' && wholeId(value) === undefined;
    if (isName) throw invalid('group_delete_id', { where: groupId.where });
    return idFrom(value, groupId.where);
  };
  return async (task) => {
    const given = oneOrList(await groupId.read(task.msg), groupId.where);
    await task.each({
      ...given,
      shared: sharedBy(groupId),
      carries: (item) => (given.list ? { groupId: item } : {}),
      async work(item, _index, known) {
        const id = idToDelete(item);
        known.groupId = id;
        try {
          await task.call('deleteGroup', { params: { groupId: id } });
          return { id };
        } finally {
          forgetNames(task.caller);
        }
      },
    });
  };
};

interface Change {
  /** Message fields that every outcome carries. */
  readonly known: Known;
  make(task: Task, contactId: Id): Promise<unknown>;
}

/** Changes the groups of each contact of the message. What the change is gets found out once for all of them. */
const changing = (tools: Tools, prepare: (task: Task) => Promise<Change>): Run => {
  const contactId = tools.source('contactId');
  return async (task) => {
    const contacts = oneOrList(await contactId.read(task.msg), contactId.where);
    const prepared = prepare(task);
    // Every contact that gets so far says so itself.
    prepared.catch(() => undefined);
    await task.each({
      ...contacts,
      shared: sharedBy(contactId),
      carries: (item) => (contacts.list ? { contactId: item } : {}),
      async work(item, _index, known) {
        const id = idFrom(item, contactId.where);
        known.contactId = id;
        const change = await prepared;
        Object.assign(known, change.known);
        return oneAtATime(contactKey(task.caller, id), () => change.make(task, id));
      },
    });
  };
};

/** Reads the groups of a contact and writes them back with the change, unless there is none to make. */
const changeGroups =
  (change: (groupIds: readonly Id[]) => readonly Id[]) =>
  async (task: Task, contactId: Id): Promise<unknown> => {
    const params = { contactId };
    const { groupIds } = await task.call('getContact', { params });
    const before = groupIds ?? [];
    const after = change(before);
    if (after.length === before.length) return { id: contactId };
    return task.call('setContactGroups', { params, body: { groupIds: [...after] } });
  };

const withGroup = (tools: Tools, change: (groupIds: readonly Id[], groupId: Id) => readonly Id[]): Run => {
  const group = tools.source('groupId');
  return changing(tools, async (task) => {
    const groupId = await groupFrom(task.caller, await group.read(task.msg), group.where);
    return { known: { groupId }, make: changeGroups((groupIds) => change(groupIds, groupId)) };
  });
};

/** A service that writes its ids as strings gives `"12"` for what a message calls 12. */
const isSame = (one: Id, other: Id): boolean => String(one) === String(other);

const adding = (tools: Tools): Run =>
  withGroup(tools, (groupIds, groupId) => {
    if (groupIds.some((id) => isSame(id, groupId))) return groupIds;
    // A long integer is a string here only because a number would round it.
    const areStrings = groupIds.some((id) => typeof id === 'string' && !/^\d{16,}$/.test(id));
    return [...groupIds, areStrings ? String(groupId) : groupId];
  });

const removing = (tools: Tools): Run =>
  withGroup(tools, (groupIds, groupId) => groupIds.filter((id) => !isSame(id, groupId)));

const setting = (tools: Tools): Run => {
  const groups = tools.source('groupIds');
  const isSelectAllGroup = tools.plain.flag('isSelectAllGroup');
  return changing(tools, async (task) => {
    const value = await groups.read(task.msg);
    const none = isSelectAllGroup && (value === undefined || value === null || value === '');
    const given: readonly unknown[] = Array.isArray(value) ? value : none ? [] : [value];
    const groupIds: Id[] = [];
    for (const one of given) groupIds.push(await groupFrom(task.caller, one, groups.where));
    const body = { groupIds: [...new Set(groupIds)], ...(isSelectAllGroup && { isSelectAllGroup }) };
    return {
      known: {},
      make: (at, contactId) => at.call('setContactGroups', { params: { contactId }, body }),
    };
  });
};

type Sorting = Pick<NonNullable<RequestOf<'searchGroups'>['query']>, 'sortDirection'>;

const searching = (tools: Tools): Run => {
  const settings = searchSettings(tools);
  const sortDirection = tools.plain.text('sortDirection');
  const sorting = (sortDirection === '' ? {} : { sortDirection }) as Sorting;
  return (task) =>
    runSearch(
      task,
      {
        fetch: (page, signal) =>
          task.caller.call(
            'searchGroups',
            { query: { page, pageSize: settings.pageSize, ...sorting } },
            signal,
          ),
        idOf: ({ groupId }) => groupId ?? undefined,
        set: ({ groupId }) => (groupId == null ? {} : { groupId }),
      },
      settings,
    );
};

export const operations: Readonly<Record<string, (tools: Tools) => Run>> = {
  create: creating,
  search: searching,
  delete: deleting,
  addContact: adding,
  removeContact: removing,
  setGroups: setting,
};
