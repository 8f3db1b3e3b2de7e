import type { MessageValues, Problem } from './errors';
import { contentTypes, searchTextLimit } from './schemas';

/** A sentence by its key and values, or the error that says it. */
export interface Judgement {
  /** Null: not tried, or nothing that could be right or wrong. */
  readonly ok: boolean | null;
  readonly key: string;
  readonly values?: MessageValues;
  readonly problem?: Problem;
}

/**
 * `fine`: what was asked for. `problem`: the service's own refusal. `refused`: a 4xx of a gateway. `nothing`: a 404 of a
 * gateway. `other`: a web page, a redirect, another interface. `trouble`: 429 or 5xx. `silent`: no whole answer.
 */
export type AnswerKind = 'fine' | 'problem' | 'refused' | 'nothing' | 'other' | 'trouble' | 'silent';

/** What came of one read. */
export interface Answer {
  readonly kind: AnswerKind;
  readonly status: number;
  readonly data?: unknown;
  readonly detail: string;
  readonly reason: string;
}

export type Query = Readonly<Record<string, string | number>>;

export interface Page {
  readonly data: readonly unknown[];
  readonly pageInfo?: {
    readonly page?: number | null;
    readonly pageSize?: number | null;
    readonly totalRecord?: number | null;
    readonly sortBy?: string | null;
    readonly sortDirection?: string | null;
  } | null;
}

export const pageIn = ({ kind, data }: Answer): Page | undefined =>
  kind === 'fine' ? (data as Page) : undefined;
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** What a read without any query gives, and how to make one with a query. Names are those of the wire. */
interface Source {
  readonly plain: Answer;
  readonly read: (query: Query) => Promise<Answer>;
}

/**
 * `untold`: no read can tell. `untried`: no read was allowed or answered. `doubtful`: wrong if another name works, else
 * untold.
 */
type Verdict = 'right' | 'wrong' | 'untold' | 'untried' | 'doubtful';

const isRefused = ({ status }: Answer): boolean => status === 400 || status === 422;
/** A search without any query may be refused for the want of one, and nobody has the number that is asked about. */
const isUsable = ({ plain }: Source): boolean =>
  plain.kind === 'fine' || isRefused(plain) || (plain.kind === 'problem' && plain.status === 404);

/** Whether a search was told how many to give: one. `whole` is what it gives untold. */
const isOne = ({ data, pageInfo }: Page, whole: Page | undefined): boolean =>
  data.length <= 1 &&
  (typeof pageInfo?.pageSize === 'number' ? pageInfo.pageSize === 1 : (whole?.data.length ?? 0) > 1);

/** Whether a search was told which page: the second. Undefined when there are too few records to tell. */
const isSecond = (page: Page, whole: Page | undefined, size: number): boolean | undefined => {
  const [, second, third] = whole?.data ?? [];
  // Counted from zero, page 2 is the third.
  if (size === 1 && third !== undefined && same(page.data[0], third) && !same(second, third)) return false;
  if (page.pageInfo?.page === 2) return true;
  const known = whole?.pageInfo?.totalRecord ?? whole?.data.length ?? 0;
  if (known <= size) return undefined;
  if (typeof page.pageInfo?.page === 'number') return false;
  return size === 1 ? same(page.data[0], whole?.data[1]) : !same(page.data[0], whole?.data[0]);
};

/** A value that a search is asked for twice must come back in `pageInfo`, change the result, or be refused if it is none. */
const sortVerdict =
  (field: 'sortBy' | 'sortDirection', values: readonly [string, string]) =>
  async ({ read }: Source, name: string): Promise<Verdict> => {
    const pages: Page[] = [];
    for (const value of values) {
      const seen = await read({ [name]: value });
      if (isRefused(seen)) return 'wrong';
      const page = pageIn(seen);
      if (!page) return 'untried';
      pages.push(page);
    }
    const [one, other] = pages;
    const told = pages.map(({ pageInfo }) => pageInfo?.[field]);
    if (same(told, values) || !same(one?.data, other?.data)) return 'right';
    const isEnough = pages.every(({ data }) => data.length > 1);
    if (isEnough && typeof told[0] === 'string' && told[0] === told[1]) return 'wrong';
    return isRefused(await read({ [name]: 'no-such-value' })) ? 'right' : 'untold';
  };

/** A text that nobody has written finds nothing. */
const nowhere = 'qzxjvkwqzxjv';

const textVerdict = async ({ plain, read }: Source, name: string): Promise<Verdict> => {
  const seen = await read({ [name]: nowhere });
  if (isRefused(seen)) return 'wrong';
  const found = pageIn(seen);
  const whole = pageIn(plain);
  if (!found) return 'untried';
  if (whole && whole.data.length > 0) return same(found.data, whole.data) ? 'wrong' : 'right';
  // Contract, constraints of the searches: a longer text is refused.
  return isRefused(await read({ [name]: 'x'.repeat(searchTextLimit + 1) })) ? 'right' : 'untold';
};

/** The kinds cannot all have what the whole library has. */
const kindVerdict = async ({ plain, read }: Source, name: string): Promise<Verdict> => {
  const whole = pageIn(plain);
  for (const kind of contentTypes.filter((each) => each !== 'All')) {
    const seen = await read({ [name]: kind });
    if (isRefused(seen)) return 'wrong';
    const page = pageIn(seen);
    if (!page) return 'untried';
    if (whole && !same(page.data, whole.data)) return 'right';
  }
  if (whole && whole.data.length > 0) return 'wrong';
  return isRefused(await read({ [name]: 'NoSuchKind' })) ? 'right' : 'untold';
};

/**
 * Whoever is asked about by a name that is not known is asked about nobody. A service that always wants `phone` refuses
 * the right name as well (contract, gaps of the consents lookup).
 */
const memberVerdict = async ({ read }: Source, name: string): Promise<Verdict> => {
  const aboutNobody = await read({});
  if (!isRefused(aboutNobody)) return 'untold';
  const seen = await read({ [name]: 1 });
  if (seen.kind === 'fine' || (seen.kind === 'problem' && seen.status === 404)) return 'right';
  if (!isRefused(seen)) return 'untried';
  return seen.detail === aboutNobody.detail || seen.detail.includes(name) ? 'doubtful' : 'untold';
};

type SourceName = 'contacts' | 'groups' | 'content' | 'consents';
type Sources = Readonly<Record<SourceName, Source>>;

interface Parameter {
  readonly source: SourceName;
  readonly name: string;
  readonly likely: readonly string[];
  readonly judge: (source: Source, name: string) => Promise<Verdict>;
}

/** Names that other interfaces have, the more usual ones first: each costs the service a read or two. */
const likelyDirections = [
  ...['sortDirection', 'order', 'direction', 'sortOrder', 'sortDir', 'dir'],
  ...['sort_direction', 'sort_order', 'sort_dir', 'orderDirection', 'order_direction', 'orderDir'],
];

const parameters: readonly Parameter[] = [
  {
    source: 'contacts',
    name: 'sortBy',
    likely: [
      ...['sortBy', 'orderBy', 'sort', 'sortField', 'sort_by', 'order_by', 'sort_field', 'order'],
      ...['sortKey', 'sort_key', 'sortColumn', 'sortby', 'orderby', '$orderby'],
    ],
    judge: sortVerdict('sortBy', ['fullName', 'email']),
  },
  ...(['contacts', 'groups'] as const).map((source) => ({
    source,
    name: 'sortDirection',
    likely: likelyDirections,
    judge: sortVerdict('sortDirection', ['asc', 'desc']),
  })),
  {
    source: 'content',
    name: 'searchText',
    likely: [
      ...['searchText', 'q', 'query', 'search', 'searchTerm', 'text', 'keyword', 'keywords', 'term'],
      ...['search_text', 'search_term', 'searchQuery', 'searchString', 'filter', 'phrase', 'freeText', 's'],
    ],
    judge: textVerdict,
  },
  {
    source: 'content',
    name: 'contentType',
    likely: [
      ...['contentType', 'type', 'kind', 'category', 'content_type', 'contentTypes', 'types'],
      ...['contentKind', 'contentCategory', 'mediaType', 'format'],
    ],
    judge: kindVerdict,
  },
  {
    source: 'consents',
    name: 'memberId',
    likely: ['memberId', 'member', 'member_id', 'id', 'memberID', 'contactId', 'contact_id'],
    judge: memberVerdict,
  },
];

const likelyPages = [
  ...['page', 'pageNumber', 'pageNo', 'p', 'page_number', 'pageIndex', 'pageNum', 'page_no', 'page_num'],
  ...['page_index', 'currentPage', 'current_page', 'pageno', 'pg', 'page[number]', '$page'],
];
const likelySizes = [
  ...['pageSize', 'page_size', 'perPage', 'limit', 'size', 'per_page', 'pageLimit', 'page_limit', 'count'],
  ...['maxResults', 'max_results', 'itemsPerPage', 'rows', 'take', 'top', '$top', 'max', 'page[size]'],
];
/** What counts records, or pages from zero: `1` gives the second record, where one is given at a time. */
const likelyOffsets = ['offset', 'skip', 'start', 'from', 'startIndex', 'start_index', '$skip'];

/** What became of one name; `found` is what works on the wire. */
interface Judged {
  readonly source: SourceName;
  readonly name: string;
  readonly verdict: Verdict;
  readonly found?: string | undefined;
  /** One that is heeded, but counts from zero: no name makes that right. */
  readonly fromZero?: string | undefined;
}

/** Milliseconds for looking for names that work. */
const guessing = 30_000;

/** Stops a search for names when the service is in trouble or time is up. */
class Guesses {
  private readonly until = Date.now() + guessing;
  private isOver = false;

  source({ plain, read }: Source): Source {
    return {
      plain,
      read: async (query) => {
        if (this.isOver || Date.now() > this.until) return { ...plain, kind: 'silent', status: 0 };
        const seen = await read(query);
        this.isOver ||= seen.kind === 'trouble' || seen.kind === 'silent';
        return seen;
      },
    };
  }
}

/** The first name with which a service does as asked. */
const findName = async (
  candidates: readonly string[],
  works: (name: string) => Promise<boolean>,
): Promise<string | undefined> => {
  for (const name of new Set(candidates)) if (await works(name)) return name;
  return undefined;
};

/** As it is set, for one source or for all. */
const wireName = (names: Readonly<Record<string, string>>, source: SourceName, name: string): string =>
  names[`${source}.${name}`] ?? names[name] ?? name;

const judgeParameter = async (
  { source: sourceName, name, likely, judge }: Parameter,
  source: Source,
  configured: string,
): Promise<Judged> => {
  const judged = { source: sourceName, name };
  if (!isUsable(source)) return { ...judged, verdict: 'untried' };
  const verdict = await judge(source, configured);
  if (verdict === 'right') return { ...judged, verdict, found: configured };
  if (verdict !== 'wrong' && verdict !== 'doubtful') return { ...judged, verdict };
  const guesses = new Guesses().source(source);
  const found = await findName(likely, async (each) => (await judge(guesses, each)) === 'right');
  const isUntold = verdict === 'doubtful' && found === undefined;
  return { ...judged, verdict: isUntold ? 'untold' : 'wrong', found };
};

/** The page and its size are judged together: neither shows without the other. */
const judgePaging = async (
  sourceName: SourceName,
  source: Source,
  configured: { readonly page: string; readonly pageSize: string },
  before: readonly Judged[],
): Promise<Judged[]> => {
  const { page, pageSize } = configured;
  const both = (verdict: Verdict, found: Partial<typeof configured> = {}, fromZero?: string): Judged[] =>
    (['page', 'pageSize'] as const).map((name) => ({
      source: sourceName,
      name,
      verdict: verdict === 'wrong' && found[name] === configured[name] ? 'right' : verdict,
      found: found[name],
      fromZero: name === 'page' ? fromZero : undefined,
    }));
  if (!isUsable(source)) return both('untried');
  const whole = pageIn(source.plain);
  const seen = await source.read({ [page]: 2, [pageSize]: 1 });
  const second = pageIn(seen);
  if (second === undefined && !isRefused(seen)) return both('untried');
  const isRight = second && isSecond(second, whole, 1);
  if (second && isRight === true && isOne(second, whole)) return both('right', configured);
  if (second && isRight === undefined) return both('untold');

  const { read } = new Guesses().source(source);
  const works = async (query: Query, isSo: (page: Page) => boolean): Promise<boolean> => {
    const found = pageIn(await read(query));
    return found !== undefined && isSo(found);
  };
  const known = (name: string): string[] =>
    before.flatMap((each) => (each.name === name && each.found !== undefined ? [each.found] : []));
  const size = await findName([pageSize, ...known('pageSize'), ...likelySizes], (name) =>
    works({ [name]: 1 }, (found) => isOne(found, whole)),
  );
  const length = size === undefined ? (whole?.pageInfo?.pageSize ?? whole?.data.length ?? 1) : 1;
  const number = await findName([page, ...known('page'), ...likelyPages], (name) =>
    works(
      { ...(size === undefined ? {} : { [size]: 1 }), [name]: 2 },
      (found) => isSecond(found, whole, length) === true,
    ),
  );
  const [first, next] = whole?.data ?? [];
  const canTell = size !== undefined && next !== undefined && !same(first, next);
  const isNext = (found: Page): boolean => same(found.data[0], next);
  const fromZero =
    number === undefined && canTell
      ? await findName([page, ...likelyPages, ...likelyOffsets], (name) =>
          works({ [size]: 1, [name]: 1 }, isNext),
        )
      : undefined;
  const found = {
    ...(number === undefined ? {} : { page: number }),
    ...(size === undefined ? {} : { pageSize: size }),
  };
  return both('wrong', found, fromZero);
};

/** The whole of the setting `names`, with what was found in place of what does not work. */
const namesToSet = (
  configured: Readonly<Record<string, string>>,
  judged: readonly Judged[],
): Record<string, string> => {
  const names = { ...configured };
  for (const name of new Set(judged.map((each) => each.name))) {
    const ofName = judged.filter((each) => each.name === name);
    if (!ofName.some(({ verdict }) => verdict === 'wrong')) continue;
    for (const key of [name, ...ofName.map(({ source }) => `${source}.${name}`)])
      Reflect.deleteProperty(names, key);
    const working = ofName.map(({ source, found }) => ({
      source,
      found: found ?? wireName(configured, source, name),
    }));
    const common = working[0]?.found ?? name;
    if (common !== name) names[name] = common;
    for (const { source, found } of working) if (found !== common) names[`${source}.${name}`] = found;
  }
  return names;
};

/** `contacts: page, pageSize; groups: page` */
const listed = (judged: readonly Judged[]): string =>
  [...new Set(judged.map(({ source }) => source))]
    .map((source) => {
      const names = judged.filter((each) => each.source === source).map(({ name }) => name);
      return `${source}: ${names.join(', ')}`;
    })
    .join('; ');

/** Whether the service heeds the query names that are set, and which to set if it does not. Reads only. */
export const judgeQueryNames = async (
  names: Readonly<Record<string, string>>,
  sources: Sources,
): Promise<Judgement> => {
  const judged: Judged[] = [];
  for (const source of ['contacts', 'groups', 'content'] as const) {
    const configured = {
      page: wireName(names, source, 'page'),
      pageSize: wireName(names, source, 'pageSize'),
    };
    judged.push(...(await judgePaging(source, sources[source], configured, judged)));
  }
  judged.push(
    ...(await Promise.all(
      parameters.map((parameter) => {
        const { source, name } = parameter;
        return judgeParameter(parameter, sources[source], wireName(names, source, name));
      }),
    )),
  );
  const of = (verdict: Verdict): Judged[] => judged.filter((each) => each.verdict === verdict);
  const [right, wrong, untold] = [of('right'), of('wrong'), of('untold')];
  const say = (ok: boolean | null, key: string, values: Record<string, string> = {}) => ({ ok, key, values });
  if (wrong.length > 0) {
    const unfound = wrong.filter(({ found }) => found === undefined);
    const zero = unfound.find(({ fromZero }) => fromZero !== undefined);
    const hasFound = wrong.length > unfound.length;
    const told = {
      wrong: listed(wrong),
      unfound: listed(unfound),
      names: JSON.stringify(namesToSet(names, judged)),
      zero: zero?.fromZero ?? '',
    };
    if (zero) return say(false, hasFound ? 'check.namesFromZeroFound' : 'check.namesFromZero', told);
    if (unfound.length === 0) return say(false, 'check.namesWrong', told);
    return say(false, hasFound ? 'check.namesSomeFound' : 'check.namesNotFound', told);
  }
  const values = { right: listed(right), untold: listed(untold) };
  if (right.length > 0) return say(true, untold.length > 0 ? 'check.namesPartly' : 'check.names', values);
  return untold.length > 0 ? say(null, 'check.namesUntold', values) : say(null, 'check.namesUntried');
};
