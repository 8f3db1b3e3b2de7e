import { Refusal } from '../problem';
import { sourceOf } from '../state/seed';
import { defaultPageSize, type EndpointHandler } from './handler';

export const createGroup: EndpointHandler<'createGroup'> = ({ body }, account, { clock }) => ({
  body: { id: account.groups.add(body.name ?? null, body.externalGroupId ?? null, clock.now()).groupId },
  outcome: 'created',
});

export const searchGroups: EndpointHandler<'searchGroups'> = ({ query }, { groups }) => {
  const { page = 1, pageSize = defaultPageSize, sortDirection = 'asc' } = query;
  const data = groups.page(sortDirection, page, pageSize).map((group) => {
    const created = new Date(group.created).toISOString();
    return {
      groupId: group.groupId,
      externalId: group.externalId,
      name: group.name,
      dateTimeCreated: created,
      dateTimeModified: created,
      contactCount: group.contactCount,
      source: sourceOf.api,
    };
  });
  const pageInfo = { page, pageSize, totalRecord: groups.count, sortDirection, sortBy: 'name' };
  return { body: { data, pageInfo }, outcome: 'ok' };
};

export const deleteGroup: EndpointHandler<'deleteGroup'> = ({ id }, account) => {
  if (!account.groups.remove(id)) throw new Refusal('not_found', 'There is no such group.');
  account.contacts.groupsChanged();
  return { outcome: 'deleted' };
};
