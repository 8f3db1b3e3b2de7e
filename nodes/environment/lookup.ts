import type { Request } from 'express';
import { checkOnePage, pagesOf } from '../../lib/address-book/paging';
import { matcherOf } from '../../lib/address-book/search';
import { largestPage, longestSearch } from '../../lib/contract-values';
import type { RequestOf, ResultPage } from '../../lib/service/endpoints';
import type { CallOptions, Client } from '../../lib/service/client';
import type { RunningEnvironment } from './environment';
import { advisorKey, numberIn, Refused, textIn } from './reply';

const pageSize = 20;
/** The most pages that are fetched for a filter: 10,000 records. To find the others, the filter must be longer. */
const fetchLimit = 50;

type ContentType = NonNullable<RequestOf<'searchContent'>['query']>['contentType'];

type LookupSearch = (
  client: Client,
  page: number,
  size: number,
  filter: string,
  options: CallOptions,
  /** The content type, for content alone. */
  kind: string,
) => Promise<ResultPage>;

interface LookupKind {
  readonly search: LookupSearch;
  /** What a filter searches. */
  readonly fields: readonly string[];
  /** What the picker shows. Anything else in a record, such as a number, does not leave the server. */
  readonly shown: readonly string[];
}

const contactFields = ['fullName', 'firstName', 'lastName', 'email', 'identifier', 'contactId'];

const searches: Readonly<Record<string, LookupKind>> = {
  contacts: {
    search: async (client, page, size, _filter, options) =>
      (await client.call('searchContacts', { query: { page, pageSize: size } }, options)).data,
    fields: contactFields,
    shown: contactFields,
  },
  groups: {
    search: async (client, page, size, _filter, options) =>
      (await client.call('searchGroups', { query: { page, pageSize: size } }, options)).data,
    fields: ['name', 'externalId', 'groupId'],
    shown: ['name', 'groupId', 'contactCount'],
  },
  content: {
    search: async (client, page, size, filter, options, kind) => {
      const searchText = filter === '' ? {} : { searchText: filter.slice(0, longestSearch) };
      const contentType = kind === '' ? {} : { contentType: kind as ContentType };
      const query = { page, pageSize: size, ...searchText, ...contentType };
      return (await client.call('searchContent', { query }, options)).data;
    },
    fields: [],
    shown: ['title', 'url'],
  },
};

/** The contract shows no text filter for contacts and groups (*Endpoints*, Gaps), so fetched pages are filtered here. */
const filtered = async (
  fetch: (page: number) => Promise<ResultPage>,
  matches: (record: object) => boolean,
  page: number,
): Promise<ResultPage> => {
  const found: unknown[] = [];
  let fetched = 0;
  let isComplete = true;
  for await (const { fresh } of pagesOf(fetch, { pageSize: largestPage })) {
    found.push(...fresh.filter((record) => matches(record as object)));
    fetched += 1;
    if (found.length > page * pageSize || fetched === fetchLimit) {
      isComplete = false;
      break;
    }
  }
  const data = found.slice((page - 1) * pageSize, page * pageSize);
  return { data, pageInfo: { page, pageSize, totalRecord: isComplete ? found.length : null } };
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
  const kind = Object.hasOwn(searches, what) ? searches[what] : undefined;
  if (!kind) throw new Refused(404, 'refused.noSuchLookup');
  const known = environment.advisors();
  const given = textIn(request, 'advisor').trim();
  const advisor = given === '' && known.length === 1 ? (known[0] ?? '') : advisorKey(given);
  const filter = textIn(request, 'filter').trim();
  const page = numberIn(request, 'page', 1, Infinity);
  const client = await environment.client();
  const options: CallOptions = { advisor, lane: 'editor' };
  const matches = what === 'content' ? undefined : matcherOf(filter, kind.fields);
  if (!matches) {
    const contentType = textIn(request, 'contentType').trim();
    const fetch = (number: number) => kind.search(client, number, pageSize, filter, options, contentType);
    const found = await fetch(page);
    await checkOnePage(found, page, fetch);
    const pageInfo = found.pageInfo ?? { page, pageSize, totalRecord: null };
    return shown(kind, { data: found.data, pageInfo });
  }
  const fetch = (number: number) => kind.search(client, number, largestPage, filter, options, '');
  return shown(kind, await filtered(fetch, matches, page));
};
