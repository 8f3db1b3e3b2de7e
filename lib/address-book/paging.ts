import { hash } from 'node:crypto';
import { serviceError } from '../service/errors';
import type { ResultPage } from '../service/endpoints';

const pageNumberOf = ({ pageInfo }: ResultPage): number | undefined => pageInfo?.page ?? undefined;

/**
 * Whether a page repeats the previous one. If the service numbers its pages, a single record may have moved to this page;
 * if it does not, the same records in another order are the same page.
 */
const repeats = (before: ResultPage, page: ResultPage): boolean => {
  const { length } = page.data;
  if (length === 0 || length !== before.data.length) return false;
  if (pageNumberOf(page) !== undefined) {
    const isSame = (record: unknown, at: number): boolean =>
      JSON.stringify(record) === JSON.stringify(before.data[at]);
    return length > 1 && page.data.every(isSame);
  }
  const known = new Set(before.data.map((record) => JSON.stringify(record)));
  return page.data.every((record) => known.has(JSON.stringify(record)));
};

/** Throws for another page: a service that has another name for the page number returns the first one forever. */
const checkPage = (page: ResultPage, asked: number, before?: ResultPage): void => {
  const given = pageNumberOf(page);
  // If there is nothing at all, there is no page to number.
  const isNothing = page.data.length === 0 && totalOf(page) === 0;
  if (given !== undefined && given !== asked && !isNothing) {
    throw serviceError('invalid_response', 'page_other', { page: asked, given });
  }
  if (before && repeats(before, page))
    throw serviceError('invalid_response', 'page_repeated', { page: asked });
};

export type Fetch<P> = (page: number, signal?: AbortSignal) => Promise<P>;

/** The same for one page. Without page numbers, only the previous page shows that it is not the first one again. */
export const checkOnePage = async <T>(
  page: ResultPage<T>,
  asked: number,
  fetch: Fetch<ResultPage<T>>,
): Promise<void> => {
  const isUnclear = asked > 1 && page.data.length > 0 && pageNumberOf(page) === undefined;
  checkPage(page, asked, isUnclear ? await fetch(asked - 1) : undefined);
};

/** The most pages that are requested while an earlier one is handled. */
const mostAhead = 3;

const positive = (value: number | null | undefined): number | undefined =>
  typeof value === 'number' && value > 0 ? value : undefined;

/** Undefined where the service names none, or fewer than the page has. */
export const totalOf = ({ pageInfo, data }: ResultPage): number | undefined => {
  const total = pageInfo?.totalRecord;
  return typeof total === 'number' && total >= data.length ? total : undefined;
};

/** The number of pages of a search; the service may return pages of another size than requested. */
export const pageCountOf = (first: ResultPage, pageSize: number): number | undefined => {
  const total = totalOf(first);
  if (total === undefined) return undefined;
  return Math.max(1, Math.ceil(total / (positive(first.pageInfo?.pageSize) ?? pageSize)));
};

/**
 * The last page that is known to exist, once the pages up to `page` had `read` records. An empty page whose total promises
 * more may be a gap; two in a row are the end.
 */
const lastPage = (
  answer: ResultPage,
  page: number,
  read: number,
  pageSize: number,
  before?: ResultPage,
): number => {
  const total = totalOf(answer);
  if (answer.data.length === 0)
    return before?.data.length === 0 ? page : Math.max(page, pageCountOf(answer, pageSize) ?? 0);
  if (total !== undefined && read < total) return Math.max(page + 1, pageCountOf(answer, pageSize) ?? 0);
  const isFull = answer.data.length >= (positive(answer.pageInfo?.pageSize) ?? pageSize);
  // The contract does not say what the total counts: it may be the records of this page alone.
  const mayCountPage = total === undefined || total < read || page === 1;
  return isFull && mayCountPage ? page + 1 : page;
};

/** Characters: of a longer id, only a digest is kept. */
const longestId = 64;

const briefly = (id: number | string): number | string =>
  typeof id === 'string' && id.length > longestId ? hash('sha256', id, 'base64') : id;

/** The ids that were added last: two generations bound the memory, and at least the last `generation` are known. */
export class RecentIds {
  private recent = new Set<number | string>();
  private older = new Set<number | string>();

  constructor(private readonly generation = 100_000) {}

  has(given: number | string): boolean {
    const id = briefly(given);
    return this.recent.has(id) || this.older.has(id);
  }

  add(given: number | string): void {
    if (this.recent.size >= this.generation) {
      this.older = this.recent;
      this.recent = new Set();
    }
    this.recent.add(briefly(given));
  }
}

/** An address book may grow while it is read, but not to this many times its first total. */
const mostGrowth = 10;
/** The most pages of a search without a total. */
const mostPages = 10_000;

export interface PageOfAll<T> {
  readonly page: ResultPage<T>;
  /** Those that were not given before: some move to a later page while the pages are read, or are listed twice. */
  readonly fresh: readonly T[];
  readonly isLast: boolean;
}

export interface PagesOptions<T> {
  readonly pageSize: number;
  readonly stop?: AbortSignal | undefined;
  /** The id of a record; undefined when it has none. */
  readonly idOf?: ((record: T) => number | string | null | undefined) | undefined;
}

/**
 * All pages in order: the only way through the pages of a search. The next few are fetched while one is handled, and no
 * more than that: memory stays constant however long the search is. Throws `invalid_response` for pages that were not
 * requested, and for endless pages.
 */
export async function* pagesOf<T>(
  fetch: Fetch<ResultPage<T>>,
  { pageSize, stop, idOf = () => undefined }: PagesOptions<T>,
): AsyncGenerator<PageOfAll<T>, void, undefined> {
  const abandon = new AbortController();
  const signal = stop ? AbortSignal.any([stop, abandon.signal]) : abandon.signal;
  const underWay: Promise<ResultPage<T>>[] = [];
  let asked = 0;
  const askUpTo = (last: number): void => {
    while (asked < last && underWay.length < mostAhead) {
      asked += 1;
      const answer = fetch(asked, signal);
      // A page may fail before it is its turn to be handled.
      answer.catch(() => undefined);
      underWay.push(answer);
    }
  };
  const recent = new RecentIds();
  const freshIn = (data: readonly T[]): readonly T[] => {
    const fresh = data.filter((record) => {
      const id = idOf(record);
      if (id == null) return true;
      const isNew = !recent.has(id);
      recent.add(id);
      return isNew;
    });
    return fresh.length === data.length ? data : fresh;
  };
  try {
    let read = 0;
    let page = 0;
    let total: number | undefined;
    let before: ResultPage<T> | undefined;
    askUpTo(1);
    for (let next = underWay.shift(); next; next = underWay.shift()) {
      const answer = await next;
      page += 1;
      checkPage(answer, page, before);
      read += answer.data.length;
      total ??= positive(totalOf(answer));
      const last = lastPage(answer, page, read, pageSize, before);
      before = answer;
      const isEndless = total === undefined ? page >= mostPages : read >= mostGrowth * total;
      if (!isEndless) askUpTo(last);
      yield { page: answer, fresh: freshIn(answer.data), isLast: last === page };
      if (last === page) return;
      if (isEndless)
        throw serviceError('invalid_response', 'pages_endless', {
          pages: page,
          records: read,
          address: { setting: 'baseUrl' },
          names: { setting: 'names' },
        });
    }
  } finally {
    abandon.abort();
  }
}
