import type { MessageValue } from '../../lib/service/errors';
import { operationNode, type BookOperation } from '../../lib/address-book/operation';
import { searching } from '../../lib/address-book/search';
import type { Tools } from '../../lib/runtime/flow-node';
import { invalidInput } from '../../lib/runtime/errors';
import { isWellFormed } from '../../lib/kinds';
import type { RequestOf } from '../../lib/service/endpoints';
import { longestSearch } from '../../lib/contract-values';
import { spec } from './spec';

type ContentType = NonNullable<RequestOf<'searchContent'>['query']>['contentType'];

/** An empty text finds everything. A number is refused: it is more likely the timestamp of an inject node than a search. */
const searchTextOf = (value: unknown, where: MessageValue): string => {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalidInput('search_kind', { where });
  const text = value.trim();
  // A query is encoded as UTF-8, which has no lone surrogates (RFC 3629, section 3): the service would search for
  // another text.
  if (!isWellFormed(text)) throw invalidInput('search_broken', { where });
  if (text.length > longestSearch) {
    throw invalidInput('search_long', { length: text.length, longest: longestSearch });
  }
  return text;
};

const searchingContent = (tools: Tools): BookOperation => {
  const search = tools.source('search');
  const contentType = tools.plain.text('contentType') as ContentType;
  return searching(tools, async (msg, caller) => {
    const searchText = searchTextOf(await search.read(msg), search.where);
    const query = { contentType, ...(searchText !== '' && { searchText }) };
    return {
      fetch: (page, pageSize, signal) =>
        caller.call('searchContent', { query: { ...query, page, pageSize } }, signal),
      // The library may list one address under several titles.
      idOf: ({ url, title }) => (typeof url === 'string' ? `${url} ${title ?? ''}` : undefined),
    };
  });
};

export const create = operationNode(spec, (tools) => ({ search: searchingContent(tools) }));
