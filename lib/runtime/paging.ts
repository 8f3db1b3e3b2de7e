/** One page of a search, as far as paging is concerned. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly pageInfo?:
    | {
        readonly page?: number | null | undefined;
        readonly pageSize?: number | null | undefined;
        readonly totalRecord?: number | null | undefined;
      }
    | null
    | undefined;
}

export type Fetch<P> = (page: number, signal?: AbortSignal) => Promise<P>;

/** Pages asked for while an earlier one is handled. */
const ahead = 3;

const positive = (value: number | null | undefined): number | undefined =>
  typeof value === 'number' && value > 0 ? value : undefined;

export const totalOf = (page: Page<unknown>): number | undefined => {
  const total = page.pageInfo?.totalRecord;
  return typeof total === 'number' && total >= 0 ? total : undefined;
};

/** How many pages a search has; the service may hand out other sizes than it was asked for. */
export const pageCountOf = (first: Page<unknown>, pageSize: number): number | undefined => {
  const total = totalOf(first);
  if (total === undefined) return undefined;
  return Math.max(1, Math.ceil(total / (positive(first.pageInfo?.pageSize) ?? pageSize)));
};

/** The last page that is known to exist, once `read` records have come with the pages up to `page`. */
const lastPage = (answer: Page<unknown>, page: number, read: number, pageSize: number): number => {
  if (answer.data.length === 0) return page;
  const total = totalOf(answer);
  if (total !== undefined) {
    return read >= total ? page : Math.max(page + 1, pageCountOf(answer, pageSize) ?? 0);
  }
  const size = positive(answer.pageInfo?.pageSize) ?? pageSize;
  return answer.data.length < size ? page : page + 1;
};

/**
 * All pages in order. The next few are fetched while one is handled, and no more than that: memory stays constant
 * however long the search is.
 */
export async function* pagesOf<P extends Page<unknown>>(
  fetch: Fetch<P>,
  pageSize: number,
  stop?: AbortSignal,
): AsyncGenerator<P, void, undefined> {
  const abandon = new AbortController();
  const { signal } = abandon;
  const onStop = (): void => {
    abandon.abort();
  };
  if (stop?.aborted) onStop();
  stop?.addEventListener('abort', onStop, { once: true });
  const underWay: Promise<P>[] = [];
  let asked = 0;
  const askUpTo = (last: number): void => {
    while (asked < last && underWay.length < ahead) {
      asked += 1;
      const answer = fetch(asked, signal);
      // A page may fail before its turn comes to be looked at.
      answer.catch(() => undefined);
      underWay.push(answer);
    }
  };
  try {
    let read = 0;
    let page = 0;
    askUpTo(1);
    for (let next = underWay.shift(); next; next = underWay.shift()) {
      const answer = await next;
      page += 1;
      read += answer.data.length;
      const last = lastPage(answer, page, read, pageSize);
      askUpTo(last);
      yield answer;
      if (last === page) return;
    }
  } finally {
    stop?.removeEventListener('abort', onStop);
    abandon.abort();
  }
}

/**
 * Which records have been seen. Two generations of ids bound the memory: at least the last `generation` records are
 * remembered, and an address book of that size whole.
 */
export class Seen {
  private recent = new Set<number | string>();
  private older = new Set<number | string>();

  constructor(private readonly generation = 100_000) {}

  has(id: number | string): boolean {
    return this.recent.has(id) || (this.older.size > 0 && this.older.has(id));
  }

  add(id: number | string): void {
    if (this.recent.size >= this.generation) {
      this.older = this.recent;
      this.recent = new Set();
    }
    this.recent.add(id);
  }
}
