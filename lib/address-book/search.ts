import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkPage, pageCountOf, pagesOf, totalOf, type Fetch, type Page } from './paging';
import { Seen } from './seen';
import type { Tools } from '../runtime/flow-node';
import type { Stream } from './operation';

/** How a search pages and what it emits, as the user set it. */
export interface SearchSettings {
  readonly page: number;
  readonly pageSize: number;
  readonly all: boolean;
  readonly emit: 'page' | 'item';
}

export interface Search<T> {
  readonly fetch: Fetch<Page<T>>;
  /** What tells one record from another; undefined when it has nothing of the kind. */
  readonly idOf: (item: T) => number | string | undefined;
  /** Message fields that go with an item: its id, for the nodes after this one. */
  set?(item: T): Readonly<Record<string, unknown>>;
}

export const searchSettings = ({ plain }: Tools): SearchSettings => ({
  page: plain.number('page'),
  pageSize: plain.number('pageSize'),
  all: plain.flag('all'),
  emit: plain.text('emit') === 'item' ? 'item' : 'page',
});

/** Takes out what an earlier page had: a record moved there while we were reading. */
const newIn = <T>({ data }: Page<T>, seen: Seen, { idOf }: Search<T>): readonly T[] => {
  const isOld = (item: T): boolean => {
    const id = idOf(item);
    return id !== undefined && seen.has(id);
  };
  const fresh = data.some(isOld) ? data.filter((item) => !isOld(item)) : data;
  for (const item of data) {
    const id = idOf(item);
    if (id !== undefined) seen.add(id);
  }
  return fresh;
};

const onePage = async <T>(stream: Stream, search: Search<T>, settings: SearchSettings): Promise<void> => {
  const { job } = stream;
  const page = await search.fetch(settings.page, stream.givenUp);
  checkPage(page, settings.page);
  if (settings.emit === 'page') {
    job.leave(0, { port: 0, payload: page });
  } else {
    job.asList(page.data.length, 'payload');
    page.data.forEach((item, index) => {
      job.leave(index, { port: 0, payload: item, set: search.set?.(item) ?? {} });
    });
    if (page.data.length === 0) job.end();
  }
  stream.show('green', 'dot', 'found', page.data.length);
};

/** Emits what a page brought; gives how many messages that made. */
const emitPage = <T>(
  stream: Stream,
  search: Search<T>,
  emit: SearchSettings['emit'],
  page: Page<T>,
  fresh: readonly T[],
  from: number,
): number => {
  if (emit === 'page') {
    const payload = fresh === page.data ? page : { ...page, data: fresh };
    stream.job.leave(from, { port: 0, payload });
    return 1;
  }
  let index = from;
  for (const item of fresh) {
    stream.job.leave(index++, { port: 0, payload: item, set: search.set?.(item) ?? {} });
  }
  return fresh.length;
};

const allPages = async <T>(stream: Stream, search: Search<T>, settings: SearchSettings): Promise<void> => {
  const { job, stopped } = stream;
  const { emit, pageSize } = settings;
  const seen = new Seen();
  let pages = 0;
  let records = 0;
  let emitted = 0;
  let count: number | undefined;
  job.asList(undefined, 'payload');
  for await (const page of pagesOf(search.fetch, pageSize, stopped)) {
    if (stopped.aborted) break;
    pages += 1;
    const fresh = newIn(page, seen, search);
    if (pages === 1) {
      count = emit === 'item' ? totalOf(page) : pageCountOf(page, pageSize);
      if (count !== undefined) job.setCount(count);
    }
    records += fresh.length;
    const isAfterTheEnd = pages > 1 && page.data.length === 0 && (count === undefined || emitted >= count);
    if (!isAfterTheEnd) emitted += emitPage(stream, search, emit, page, fresh, emitted);
    stream.progress(records, totalOf(page));
    // Gives the nodes behind this one their turn before the next page.
    await nextTurn();
  }
  if (!stopped.aborted) stream.show('green', 'dot', 'found', records);
};

/** A search, one page of it or all: the same in all three searching nodes. */
export const runSearch = async <T>(
  stream: Stream,
  search: Search<T>,
  settings: SearchSettings,
): Promise<void> => {
  if (!settings.all) {
    await onePage(stream, search, settings);
    return;
  }
  try {
    await allPages(stream, search, settings);
  } catch (thrown) {
    if (!stream.stopped.aborted) throw thrown;
  }
  if (stream.closing) return;
  if (stream.stopped.aborted) stream.show('grey', 'ring', 'stopped');
  stream.job.end();
};
