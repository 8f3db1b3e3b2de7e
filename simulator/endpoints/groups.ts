import { z } from 'zod';
import { defaultPageSize, paging, sorting } from '../contract/rules';
import { Refusal } from '../problem';
import { sourceOf } from '../state/seed';
import { endpoint } from './endpoint';

export const createGroup = endpoint({
  method: 'POST',
  path: '/core/contact/groups',
  scope: 'core.contacts.write',
  body: z.object({ name: z.string().optional(), externalGroupId: z.string().optional() }),
  handle: ({ body }, { groups }, { clock }) => ({
    body: { id: groups.add(body.name ?? null, body.externalGroupId ?? null, clock.now()).groupId },
    outcome: 'created',
  }),
});

export const searchGroups = endpoint({
  method: 'GET',
  path: '/core/contact/groups',
  scope: 'core.contacts.read',
  query: z.object({ ...paging, ...sorting }),
  search: 'groups',
  handle({ query }, { groups }) {
    const { page = 1, pageSize = defaultPageSize, sortDirection = 'asc' } = query;
    const data = groups.page(sortDirection, page, pageSize).map((group) => {
      const created = new Date(group.created).toISOString();
      return {
        groupId: group.groupId,
        externalId: group.externalId ?? undefined,
        name: group.name ?? undefined,
        dateTimeCreated: created,
        dateTimeModified: created,
        contactCount: group.contactCount,
        source: sourceOf.api,
      };
    });
    const pageInfo = { page, pageSize, totalRecord: groups.count, sortDirection, sortBy: 'name' };
    return { body: { data, pageInfo }, outcome: 'ok' };
  },
});

export const deleteGroup = endpoint({
  method: 'DELETE',
  path: '/core/contact/groups/{groupId}',
  scope: 'core.contacts.write',
  handle({ params: { groupId } }, account) {
    if (!account.groups.remove(groupId)) throw new Refusal('not_found', 'There is no such group.');
    account.contacts.groupsChanged();
    return { outcome: 'deleted' };
  },
});
