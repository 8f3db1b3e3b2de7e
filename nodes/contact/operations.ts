import { sharedBy } from '../../lib/runtime/fields';
import type { Tools } from '../../lib/runtime/flow-node';
import { anyId, idFrom, oneOrList } from '../../lib/runtime/ids';
import { invalid } from '../../lib/runtime/messages';
import { oneAtATime } from '../../lib/runtime/queue';
import { unknownFields } from '../../lib/runtime/record';
import { isRecord } from '../../lib/runtime/red';
import { runSearch, searchSettings } from '../../lib/runtime/search';
import { contactKey, type Run, type Task } from '../../lib/runtime/task';
import type { Id, RequestOf } from '../../lib/service/endpoints';
import { bodyOf, changesOf, contactReader, merged } from './input';
import { contactFields } from './spec';

type Config = Readonly<Record<string, unknown>>;

const creating = (tools: Tools, config: Config): Run => {
  const contact = tools.source('contact');
  const read = contactReader(tools, contact, config.fields);
  const warn = unknownFields(tools, contactFields);
  return async (task) => {
    const given = oneOrList(await read(task.msg), contact.where);
    warn(given.items);
    await task.each({
      ...given,
      shared: sharedBy(contact),
      carries: (item) => ({ contact: item }),
      async work(item, _index, known) {
        const body = bodyOf(item, contact.where, task.caller.environment.settings.country);
        const result = await task.call('createContact', { body });
        if (result.id != null) known.contactId = result.id;
        return result;
      },
    });
  };
};

/** In a list each contact says which one it is: one id for all would write them over each other. */
const idToUpdate = (item: unknown, ids: unknown, index: number, list: boolean, where: string): Id => {
  const own = isRecord(item) ? anyId(item.contactId) : undefined;
  if (!list) return own !== undefined && anyId(ids) === undefined ? own : idFrom(ids, where);
  const id = own ?? (Array.isArray(ids) ? anyId(ids[index]) : undefined);
  if (id === undefined) throw invalid('contact_id_in_list');
  return id;
};

const updating = (tools: Tools, config: Config): Run => {
  const contact = tools.source('contact');
  const contactId = tools.source('contactId');
  const merge = tools.plain.flag('merge');
  const read = contactReader(tools, contact, config.fields);
  const warn = unknownFields(tools, { ...contactFields, contactId: true });
  return async (task) => {
    const [value, ids] = await Promise.all([read(task.msg), contactId.read(task.msg)]);
    const given = oneOrList(value, contact.where);
    warn(given.items);
    await task.each({
      ...given,
      shared: sharedBy(contact),
      carries: (item) => ({ contact: item }),
      async work(item, index, known) {
        const id = idToUpdate(item, ids, index, given.list, contactId.where);
        known.contactId = id;
        return updateOne(task, id, item, contact.where, merge);
      },
    });
  };
};

const updateOne = (task: Task, id: Id, given: unknown, where: string, merge: boolean) => {
  const params = { contactId: id };
  const { country } = task.caller.environment.settings;
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => oneAtATime(contactKey(task.caller, id), work);
  if (!merge) {
    const body = bodyOf(given, where, country);
    return inTurn(() => task.call('updateContact', { params, body }));
  }
  const changes = changesOf(given, where, country);
  return inTurn(async () => {
    const current = await task.call('getContact', { params });
    return task.call('updateContact', { params, body: merged(current, changes) });
  });
};

/** For operations that need nothing but the id. */
const byId = (tools: Tools, operate: (task: Task, id: Id) => Promise<unknown>): Run => {
  const contactId = tools.source('contactId');
  return async (task) => {
    const given = oneOrList(await contactId.read(task.msg), contactId.where);
    await task.each({
      ...given,
      shared: sharedBy(contactId),
      carries: (item) => (given.list ? { contactId: item } : {}),
      async work(item, _index, known) {
        const id = idFrom(item, contactId.where);
        known.contactId = id;
        return operate(task, id);
      },
    });
  };
};

const getting = (tools: Tools): Run =>
  byId(tools, (task, contactId) => task.call('getContact', { params: { contactId } }));

const deleting = (tools: Tools): Run =>
  byId(tools, (task, contactId) =>
    oneAtATime(contactKey(task.caller, contactId), async () => {
      await task.call('deleteContact', { params: { contactId } });
      return { id: contactId };
    }),
  );

type Sorting = Pick<NonNullable<RequestOf<'searchContacts'>['query']>, 'sortBy' | 'sortDirection'>;

/** Empty leaves the order to the service; a value it does not know is refused before anything is sent. */
const sortingOf = (tools: Tools): Sorting => {
  const sortBy = tools.plain.text('sortBy');
  const sortDirection = tools.plain.text('sortDirection');
  return { ...(sortBy !== '' && { sortBy }), ...(sortDirection !== '' && { sortDirection }) } as Sorting;
};

const searching = (tools: Tools): Run => {
  const settings = searchSettings(tools);
  const sorting = sortingOf(tools);
  return (task) =>
    runSearch(
      task,
      {
        fetch: (page, signal) =>
          task.caller.call(
            'searchContacts',
            { query: { page, pageSize: settings.pageSize, ...sorting } },
            signal,
          ),
        idOf: ({ contactId }) => contactId ?? undefined,
        set: ({ contactId }) => (contactId == null ? {} : { contactId }),
      },
      settings,
    );
};

export const operations: Readonly<Record<string, (tools: Tools, config: Config) => Run>> = {
  create: creating,
  update: updating,
  get: getting,
  delete: deleting,
  search: searching,
};
