import { setImmediate as nextTurn } from 'node:timers/promises';
import { checkOnePage, pageCountOf, pagesOf, totalOf } from './paging';
import type { ResultPage } from '../service/endpoints';
import { invalidInput } from '../runtime/errors';
import type { Tools } from '../runtime/flow-node';
import type { Outcome } from '../outbox/outcome';
import type { Job } from '../runtime/delivery';
import { folded } from '../runtime/kinds';
import { largestPage } from '../contract-values';
import type { SearchOperation, Stream } from './operation';
import type { Message } from '../runtime/red';

/** The paging and the output of a search, as set in the node. */
type SearchSettings = ReturnType<typeof searchSettings>;

export interface Search<T> {
  readonly fetch: (page: number, pageSize: number, signal?: AbortSignal) => Promise<ResultPage<T>>;
  /** The id of a record; undefined when it has none. */
  readonly idOf: (item: T) => number | string | undefined;
  /** Message fields for an item: its id, for the nodes after this one. */
  readonly set?: (item: T) => Readonly<Record<string, unknown>>;
  /** The records are not from the service: every page is the requested one. */
  readonly isOwn?: true;
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

/** Holds one outcome back, so that the last of a sequence can carry the count. */
export class Sequence {
  private held: Outcome | undefined;
  private count = 0;

  constructor(private readonly job: Job) {
    job.asList(undefined, { shared: 'payload' });
  }

  add(outcome: Outcome): void {
    this.release();
    this.held = outcome;
    this.count += 1;
  }

  /** Emits the outcome that is held back, though it may not be the last: what follows has failed or was stopped. */
  release(): void {
    if (this.held) this.job.emit(this.count - 1, this.held);
    this.held = undefined;
  }

  /**
   * Runs `fill`, which adds all outcomes; false when it was stopped. The outcome that is held back then leaves, unless
   * the node closes.
   */
  async filledBy(stream: Stream<unknown>, fill: () => Promise<void>): Promise<boolean> {
    try {
      await fill();
    } catch (thrown) {
      this.release();
      throw thrown;
    }
    if (!stream.stopped.aborted) return true;
    if (!stream.closing) this.release();
    return false;
  }

  /** Called when nothing more follows. */
  end(summary?: Readonly<Record<string, unknown>>): void {
    this.job.setCount(this.count);
    if (this.held) this.job.emit(this.count - 1, this.held, { summary });
    else if (summary) this.job.conclude(summary);
    this.held = undefined;
  }
}

const itemOutcome = <T>(item: T, { set }: Search<T>): Outcome => ({
  port: 0,
  payload: item,
  set: set?.(item) ?? {},
});

const allOf = <T>({ fetch, idOf, isOwn }: Search<T>, pageSize: number, stop: AbortSignal) =>
  pagesOf((page, signal) => fetch(page, pageSize, signal), { pageSize, stop, areOwn: isOwn, idOf });

const onePage = async <T>(
  stream: Stream<unknown>,
  search: Search<T>,
  settings: SearchSettings,
): Promise<void> => {
  const { job } = stream;
  const page = await (search.matches
    ? matchedPage(stream, search, settings)
    : search.fetch(settings.page, settings.pageSize, stream.givenUp));
  if (!search.matches && !search.isOwn)
    await checkOnePage(page, settings.page, (number) =>
      search.fetch(number, settings.pageSize, stream.givenUp),
    );
  if (settings.isByItem) {
    job.asList(page.data.length, { shared: 'payload' });
    page.data.forEach((item, index) => job.emit(index, itemOutcome(item, search)));
    if (page.data.length === 0) job.end();
  } else job.emit(0, { port: 0, payload: page });
  stream.show('found', page.data.length);
};

/** One page of the matches: reads until it is full, or to the end. */
const matchedPage = async <T>(
  { stopped }: Stream<unknown>,
  search: Search<T>,
  { page: number, pageSize }: SearchSettings,
): Promise<ResultPage<T>> => {
  const first = (number - 1) * pageSize;
  const data: T[] = [];
  let count = 0;
  let isEnd = false;
  let pageInfo: ResultPage<T>['pageInfo'];
  for await (const { page, fresh, isLast } of allOf(search, largestPage, stopped)) {
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

/** All matches. Their number is known at the end: only the last message has the count. */
const allMatches = async <T>(
  stream: Stream<unknown>,
  search: Search<T>,
  { isByItem, pageSize }: SearchSettings,
): Promise<void> => {
  const { job, stopped } = stream;
  const sequence = new Sequence(job);
  let [records, found, pages] = [0, 0, 0];
  let data: T[] = [];
  let pageInfo: ResultPage<T>['pageInfo'];
  const addPage = (totalRecord: number | null): void => {
    pages += 1;
    const ofMatches = { ...pageInfo, page: pages, pageSize, totalRecord };
    sequence.add({ port: 0, payload: { data, pageInfo: ofMatches } });
    data = [];
  };
  const isComplete = await sequence.filledBy(stream, async () => {
    for await (const { page, fresh } of allOf(search, largestPage, stopped)) {
      if (stopped.aborted) break;
      records += fresh.length;
      ({ pageInfo } = page);
      for (const item of fresh) {
        if (!search.matches?.(item)) continue;
        found += 1;
        if (isByItem) sequence.add(itemOutcome(item, search));
        else {
          if (data.length === pageSize) addPage(null);
          data.push(item);
        }
      }
      stream.progress(records, totalOf(page));
      await nextTurn();
    }
  });
  if (!isComplete) return;
  if (!isByItem) addPage(found);
  sequence.end();
  stream.show('found', found);
};

const allPages = async <T>(
  stream: Stream<unknown>,
  search: Search<T>,
  { isByItem, pageSize }: SearchSettings,
): Promise<void> => {
  const { job, stopped } = stream;
  let pages = 0;
  let records = 0;
  let emitted = 0;
  let count: number | undefined;
  job.asList(undefined, { shared: 'payload' });
  for await (const { page, fresh } of allOf(search, pageSize, stopped)) {
    if (stopped.aborted) break;
    pages += 1;
    if (pages === 1) {
      count = isByItem ? totalOf(page) : pageCountOf(page, pageSize);
      if (count !== undefined) job.setCount(count);
    }
    records += fresh.length;
    const isAfterTheEnd = pages > 1 && page.data.length === 0 && (count === undefined || emitted >= count);
    const outcomes: Outcome[] = isByItem
      ? fresh.map((item) => itemOutcome(item, search))
      : [{ port: 0, payload: fresh === page.data ? page : { ...page, data: fresh } }];
    if (!isAfterTheEnd) for (const outcome of outcomes) job.emit(emitted++, outcome);
    stream.progress(records, totalOf(page));
    // Lets the next nodes work before the next page.
    await nextTurn();
  }
  if (!stopped.aborted) stream.show('found', records);
};

/** A search, one page of it or all: the same in all three searching nodes. */
export const runSearch = async <T>(
  stream: Stream<unknown>,
  search: Search<T>,
  settings: SearchSettings,
): Promise<void> => {
  if (!settings.all) await onePage(stream, search, settings);
  else await streamed(stream, () => (search.matches ? allMatches : allPages)(stream, search, settings));
};

/** An operation that searches for what each message asks for. */
export const searching = <T>(
  tools: Tools,
  searchFor: (stream: Stream) => Search<T> | Promise<Search<T>>,
): SearchOperation => {
  const settings = searchSettings(tools);
  return { kind: 'search', run: async (stream) => runSearch(stream, await searchFor(stream), settings) };
};

/** Runs a stream to its end, unless it is stopped. */
export const streamed = async (stream: Stream<unknown>, run: () => Promise<void>): Promise<void> => {
  try {
    await run();
  } catch (thrown) {
    if (!stream.stopped.aborted) throw thrown;
  }
  if (stream.closing) return;
  if (stream.stopped.aborted) stream.show('stopped');
  stream.job.end();
};
