import type { Request } from 'express';
import { checkOnePage, pagesOf } from '../../lib/address-book/paging';
import { matcherOf } from '../../lib/address-book/search';
import { largestPage, longestSearch } from '../../lib/contract-values';
import type { ResultPage } from '../../lib/service/endpoints';
import { pageIn } from '../../lib/runtime/activity';
import type { RunningEnvironment } from './environment';
import { advisorKey, numberIn, Refused, soon, textIn } from './reply';

const pageSize = 20;
/** The most pages that are fetched for a filter: 10,000 records. To find the others, the filter must be longer. */
const fetchLimit = 50;

interface LookupKind {
  readonly endpoint: 'searchContacts' | 'searchGroups' | 'searchContent';
  /** What a filter searches; content is searched by the service. */
  readonly fields: readonly string[];
  /** What the picker shows. Anything else in a record, such as a number, does not leave the server. */
  readonly shown: readonly string[];
}

const contactFields = ['fullName', 'firstName', 'lastName', 'email', 'identifier', 'contactId'];

const kinds: Readonly<Record<string, LookupKind>> = {
  contacts: { endpoint: 'searchContacts', fields: contactFields, shown: contactFields },
  groups: {
    endpoint: 'searchGroups',
    fields: ['name', 'externalId', 'groupId'],
    shown: ['name', 'groupId', 'contactCount'],
  },
  content: { endpoint: 'searchContent', fields: [], shown: ['title', 'url'] },
};

/** The contract shows no text filter for contacts and groups (*Endpoints*, Gaps), so fetched pages are filtered here. */
const filtered = async (
  fetch: (page: number) => Promise<ResultPage>,
  matches: (record: object) => boolean,
  page: number,
): Promise<ResultPage> => {
  const found: unknown[] = [];
  let fetched = 0;
  for await (const { fresh } of pagesOf(fetch, { pageSize: largestPage })) {
    found.push(...fresh.filter((record) => matches(record as object)));
    fetched += 1;
    if (found.length > page * pageSize || fetched === fetchLimit)
      return pageIn(found, { page, pageSize }, null);
  }
  return pageIn(found, { page, pageSize });
};

const shown = ({ shown: fields }: LookupKind, { data, pageInfo }: ResultPage): object => ({
  data: data.map((record) =>
    Object.fromEntries(Object.entries(record as object).filter(([name]) => fields.includes(name))),
  ),
  pageInfo,
});

/** Serves the pickers of the editor. */
export const lookUp = async (environment: RunningEnvironment, request: Request): Promise<object> => {
  const what = request.params['what'] ?? '';
  const kind = Object.hasOwn(kinds, what) ? kinds[what] : undefined;
  if (!kind) throw new Refused(404, 'refused.noSuchLookup');
  const known = environment.advisors();
  const given = textIn(request, 'advisor').trim();
  const advisor = given === '' && known.length === 1 ? (known[0] ?? '') : advisorKey(given);
  const filter = textIn(request, 'filter').trim();
  const contentType = textIn(request, 'contentType').trim();
  const page = numberIn(request, 'page', 1, Infinity);
  const client = await soon(environment.client());
  const ofContent = {
    ...(filter !== '' && { searchText: filter.slice(0, longestSearch) }),
    ...(contentType !== '' && { contentType }),
  };
  const fetchOf = (size: number) => async (number: number) => {
    const query = { page: number, pageSize: size, ...(what === 'content' && ofContent) };
    return (await client.call(kind.endpoint, { query }, { advisor, lane: 'editor' })).data;
  };
  const matches = what === 'content' ? undefined : matcherOf(filter, kind.fields);
  if (matches) return shown(kind, await filtered(fetchOf(largestPage), matches, page));
  const fetch = fetchOf(pageSize);
  const found = await fetch(page);
  await checkOnePage(found, page, fetch);
  return shown(kind, { ...found, pageInfo: found.pageInfo ?? { page, pageSize, totalRecord: null } });
};
