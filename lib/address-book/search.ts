import { checkOnePage, pageCountOf, pagesOf, totalOf, type PageOfAll } from './paging';
import type { ResultPage } from '../service/endpoints';
import { invalidInput } from '../runtime/errors';
import type { Tools } from '../runtime/flow-node';
import type { Outcome } from '../outbox/outcome';
import { folded } from '../kinds';
import { largestPage } from '../contract-values';
import type { Portion, Stream } from '../runtime/searches';
import { searchAtService, type Caller, type SearchOperation } from './operation';
import type { Message } from '../runtime/red';

type SearchSettings = ReturnType<typeof searchSettings>;

export interface Search<T> {
  readonly fetch: (page: number, pageSize: number, signal?: AbortSignal) => Promise<ResultPage<T>>;
  /** Reads a list of our own, whose pages need no check. */
  readonly all?: () => AsyncIterable<T> | Promise<readonly T[]>;
  /** The id of a record; undefined when it has none. */
  readonly idOf?: (item: T) => number | string | undefined;
  /** Message fields for an item: its id, for the nodes after this one. */
  readonly set?: (item: T) => Readonly<Record<string, unknown>>;
  /** A filter that the service lacks: all pages are read and filtered here. */
  readonly matches?: ((item: T) => boolean) | undefined;
}

export const searchSettings = ({ plain }: Tools) => ({
  page: plain.number('page'),
  pageSize: plain.number('pageSize'),
  all: plain.flag('all'),
  /** Each record is an outcome, and not each page. */
  isByItem: plain.text('emit') === 'item',
});

/** Whether each word of a text occurs in one of the fields of a record; undefined for an empty text. */
export const matcherOf = (
  text: string,
  fields: readonly string[],
): ((record: object) => boolean) | undefined => {
  const words = folded(text).split(/\s+/).filter(Boolean);
  if (words.length === 0) return undefined;
  return (record) => {
    const values = fields.flatMap((field) => {
      const value = (record as Readonly<Record<string, unknown>>)[field];
      return typeof value === 'string' || typeof value === 'number' ? [folded(String(value))] : [];
    });
    return words.every((word) => values.some((value) => value.includes(word)));
  };
};

/** Reads the setting `filter` for each message. Throws `invalid_input` if it is not text. */
export const filterOf = (tools: Tools, fields: readonly string[]) => {
  const { read, where } = tools.source('filter');
  return async (msg: Message): Promise<ReturnType<typeof matcherOf>> => {
    const value = (await read(msg)) ?? '';
    if (typeof value !== 'string' && typeof value !== 'number') throw invalidInput('filter_kind', { where });
    return matcherOf(String(value), fields);
  };
};

/** The settings of these names that are filled in: an empty one leaves the order to the service. */
export const sortingOf = ({ plain }: Tools, ...names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    names.map((name) => [name, plain.text(name)] as const).filter(([, value]) => value !== ''),
  );

/**
 * Pages of one read from start to end: records of our own come and go meanwhile, so reading by page number would skip
 * some of them.
 */
async function* pagesOfOwn<T>(
  { fetch }: Search<T>,
  items: AsyncIterable<T> | readonly T[],
  pageSize: number,
): AsyncGenerator<PageOfAll<T>> {
  const total = (await fetch(1, 1)).pageInfo?.totalRecord;
  let [number, data]: [number, T[]] = [1, []];
  const pageWith = (totalRecord: number | null | undefined, isLast: boolean): PageOfAll<T> => {
    const pageInfo = { page: number, pageSize, totalRecord: number === 1 ? totalRecord : null };
    return { page: { data, pageInfo }, fresh: data, isLast };
  };
  for await (const item of items) {
    if (data.length === pageSize) {
      yield pageWith(total, false);
      [number, data] = [number + 1, []];
    }
    data.push(item);
  }
  yield pageWith(data.length, true);
}

const itemOutcome = <T>(item: T, { set }: Search<T>): Outcome => ({
  port: 0,
  payload: item,
  set: set?.(item) ?? {},
});

async function* pagesBy<T>(search: Search<T>, pageSize: number, stop: AbortSignal) {
  const { fetch, all, idOf } = search;
  if (all) yield* pagesOfOwn(search, await all(), pageSize);
  else yield* pagesOf((page, signal) => fetch(page, pageSize, signal), { pageSize, stop, idOf });
}

const onePage = async <T>(stream: Stream, search: Search<T>, settings: SearchSettings): Promise<void> => {
  const { job } = stream;
  const page = await (search.matches
    ? matchedPage(stream, search, settings)
    : search.fetch(settings.page, settings.pageSize, stream.givenUp));
  if (!search.matches && !search.all)
    await checkOnePage(page, settings.page, (number) =>
      search.fetch(number, settings.pageSize, stream.givenUp),
    );
  const { length: count } = page.data;
  if (settings.isByItem) {
    const outcomes = page.data.map((item) => itemOutcome(item, search));
    await stream.emitAll([{ outcomes, count, read: count, total: count, found: count }]);
    return;
  }
  job.emit(0, { port: 0, payload: page });
  stream.show('found', count);
};

/** One page of the matches: reads until it is full, or to the end. */
const matchedPage = async <T>(
  { stopped }: Stream,
  search: Search<T>,
  { page: number, pageSize }: SearchSettings,
): Promise<ResultPage<T>> => {
  const first = (number - 1) * pageSize;
  const data: T[] = [];
  let count = 0;
  let isEnd = false;
  let pageInfo: ResultPage<T>['pageInfo'];
  for await (const { page, fresh, isLast } of pagesBy(search, largestPage, stopped)) {
    ({ pageInfo } = page);
    for (const item of fresh) {
      if (!search.matches?.(item)) continue;
      if (count >= first && data.length < pageSize) data.push(item);
      count += 1;
    }
    isEnd = isLast;
    if (data.length === pageSize) break;
  }
  return { data, pageInfo: { ...pageInfo, page: number, pageSize, totalRecord: isEnd ? count : null } };
};

/** All that a search finds. With a filter, its own pages are made of the matches, whose number is known at the end. */
async function* portionsOf<T>(
  search: Search<T>,
  { isByItem, pageSize }: SearchSettings,
  stop: AbortSignal,
): AsyncGenerator<Portion> {
  const { matches } = search;
  let [pages, read, found, given] = [0, 0, 0, 0];
  let count: number | undefined;
  const unfilled: T[] = [];
  for await (const { page, fresh, isLast } of pagesBy(search, matches ? largestPage : pageSize, stop)) {
    const data = matches ? fresh.filter(matches) : fresh;
    pages += 1;
    read += fresh.length;
    found += data.length;
    const total = totalOf(page);
    if (pages === 1 && !matches) count = isByItem ? total : pageCountOf(page, pageSize);
    const outcomes: Outcome[] = [];
    const addPage = (totalRecord: number | null): void => {
      const pageInfo = { ...page.pageInfo, page: given + outcomes.length + 1, pageSize, totalRecord };
      outcomes.push({ port: 0, payload: { data: unfilled.splice(0, pageSize), pageInfo } });
    };
    const isAfterTheEnd = pages > 1 && page.data.length === 0 && (count === undefined || given >= count);
    if (isByItem) outcomes.push(...data.map((item) => itemOutcome(item, search)));
    else if (matches) {
      unfilled.push(...data);
      while (unfilled.length > pageSize) addPage(null);
      if (isLast) addPage(found);
    } else if (!isAfterTheEnd)
      outcomes.push({ port: 0, payload: fresh === page.data ? page : { ...page, data: fresh } });
    given += outcomes.length;
    yield { outcomes, count, read, total, found };
  }
}

/** A search, one page of it or all: the same in all three searching nodes. */
export const runSearch = <T>(stream: Stream, search: Search<T>, settings: SearchSettings): Promise<void> =>
  settings.all
    ? stream.emitAll(portionsOf(search, settings, stream.stopped))
    : onePage(stream, search, settings);

export const searching = <T>(
  tools: Tools,
  searchFor: (msg: Message, caller: Caller) => Search<T> | Promise<Search<T>>,
): SearchOperation => {
  const settings = searchSettings(tools);
  return searchAtService(tools, async (stream, caller) =>
    runSearch(stream, await searchFor(stream.job.msg, caller), settings),
  );
};
