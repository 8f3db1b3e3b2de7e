import type { ResultPage } from '../service/endpoints';
import type { MessageValues, Problem, ReasonWord } from '../service/errors';
import { contentTypes, longestSearch } from '../contract-values';

/** A sentence by its key and values, or an error that has it. */
export interface Conclusion {
  /** Null: it cannot be known, or no setting changes it. `untried`: it could be known, but not this time. */
  readonly ok: boolean | null | 'untried';
  readonly key: string;
  readonly values?: MessageValues;
  readonly problem?: Problem;
}

/**
 * `fine`: the expected answer. `problem`: the service's own refusal. `refused`: a 4xx of a gateway. `nothing`: a 404 of
 * a gateway. `other`: a web page, a redirect, another interface. `trouble`: a 429 or 5xx. `silent`: no complete answer.
 */
export type ReadKind = 'fine' | 'problem' | 'refused' | 'nothing' | 'other' | 'trouble' | 'silent';

export interface ReadAnswer {
  readonly kind: ReadKind;
  readonly status: number;
  readonly data?: unknown;
  readonly detail: string;
  readonly reason: ReasonWord;
  /** The answer has a problem body: it is the service's own word. */
  readonly hasProblemBody?: boolean;
  /** A refusal without the parts that differ between requests. */
  readonly page?: string;
}

export type Query = Readonly<Record<string, string | number>>;

/** Whether there was no real answer: another attempt may get one. */
export const isUnanswered = ({ kind }: ReadAnswer): boolean => kind === 'trouble' || kind === 'silent';

export const pageIn = ({ kind, data }: ReadAnswer): ResultPage | undefined =>
  kind === 'fine' ? (data as ResultPage) : undefined;
const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The answer to a read without a query, and how to read with one. Names are those on the wire. */
interface NameSource {
  readonly plain: ReadAnswer;
  readonly read: (query: Query) => Promise<ReadAnswer>;
}

/**
 * `refused`: wrong, because the service refuses it. `unclear`: no read can tell. `untried`: no read was allowed.
 * `doubtful`: wrong if another name works, else `unclear`. `unanswered`: the service did not answer now.
 */
type NameVerdict = 'right' | 'wrong' | 'refused' | 'unclear' | 'untried' | 'doubtful' | 'unanswered';

/**
 * Checks names that are all sent with the same value: a service that ignores unknown names uses one of them, if any is
 * right.
 */
type Check = (source: NameSource, names: readonly string[]) => Promise<NameVerdict>;

const all = (names: readonly string[], value: string | number): Query =>
  Object.fromEntries(names.map((name) => [name, value]));

export const isRefused = ({ status }: ReadAnswer): boolean => status === 400 || status === 422;
/**
 * A search without a query may be refused for that reason; and nobody has the number of the consent lookup, so a 404 is
 * right.
 */
const isUsable = ({ plain }: NameSource): boolean =>
  plain.kind === 'fine' || isRefused(plain) || (plain.kind === 'problem' && plain.status === 404);

/** Whether a search has used the page size 1. `whole` is its answer without a page size. */
const isOne = ({ data, pageInfo }: ResultPage, whole: ResultPage | undefined): boolean =>
  data.length <= 1 &&
  (typeof pageInfo?.pageSize === 'number' ? pageInfo.pageSize === 1 : (whole?.data.length ?? 0) > 1);

/** Whether a search has given the second page. Undefined when there are too few records to tell. */
const isSecond = (page: ResultPage, whole: ResultPage | undefined, size: number): boolean | undefined => {
  const [, second, third] = whole?.data ?? [];
  // If pages are counted from zero, page 2 is the third.
  if (size === 1 && third !== undefined && same(page.data[0], third) && !same(second, third)) return false;
  if (page.pageInfo?.page === 2) return true;
  const known = whole?.pageInfo?.totalRecord ?? whole?.data.length ?? 0;
  if (known <= size) return undefined;
  if (typeof page.pageInfo?.page === 'number') return false;
  return size === 1 ? same(page.data[0], whole?.data[1]) : !same(page.data[0], whole?.data[0]);
};

/** The page of an answer, or what its absence says about the names. */
const pageOr = (reply: ReadAnswer): ResultPage | 'refused' | 'untried' =>
  isRefused(reply) ? 'refused' : (pageIn(reply) ?? 'untried');

/** Of two values, each must come back in `pageInfo`, or change the result; else an invalid value must be refused. */
const sortVerdict =
  (field: 'sortBy' | 'sortDirection', values: readonly [string, string]): Check =>
  async ({ read }, names) => {
    const pages: ResultPage[] = [];
    for (const value of values) {
      const page = pageOr(await read(all(names, value)));
      if (typeof page === 'string') return page;
      pages.push(page);
    }
    const [one, other] = pages;
    const reported = pages.map(({ pageInfo }) => pageInfo?.[field]);
    if (same(reported, values) || !same(one?.data, other?.data)) return 'right';
    const isEnough = pages.every(({ data }) => data.length > 1);
    if (isEnough && typeof reported[0] === 'string' && reported[0] === reported[1]) return 'wrong';
    return isRefused(await read(all(names, 'no-such-value'))) ? 'right' : 'unclear';
  };

/** A text that nobody has written, and that finds nothing. */
const nowhere = 'qzxjvkwqzxjv';

const textVerdict: Check = async ({ plain, read }, names) => {
  const found = pageOr(await read(all(names, nowhere)));
  if (typeof found === 'string') return found;
  const whole = pageIn(plain);
  if (whole && whole.data.length > 0) return same(found.data, whole.data) ? 'wrong' : 'right';
  // A longer text is refused (contract, *Limits*).
  return isRefused(await read(all(names, 'x'.repeat(longestSearch + 1)))) ? 'right' : 'unclear';
};

/** At least one content type must give another result than the whole library. */
const kindVerdict: Check = async ({ plain, read }, names) => {
  const whole = pageIn(plain);
  for (const kind of contentTypes.filter((each) => each !== 'All')) {
    const page = pageOr(await read(all(names, kind)));
    if (typeof page === 'string') return page;
    if (whole && !same(page.data, whole.data)) return 'right';
  }
  if (whole && whole.data.length > 0) return 'wrong';
  return isRefused(await read(all(names, 'NoSuchKind'))) ? 'right' : 'unclear';
};

/**
 * A lookup by an unknown name names nobody, and is refused like one without a query. A service that always requires
 * `phone` refuses the right name as well (contract, *Endpoints*, Gaps).
 */
const memberVerdict: Check = async ({ read }, names) => {
  const aboutNobody = await read({});
  if (!isRefused(aboutNobody)) return 'unclear';
  const reply = await read(all(names, 1));
  if (reply.kind === 'fine' || (reply.kind === 'problem' && reply.status === 404)) return 'right';
  if (!isRefused(reply)) return 'untried';
  const isSame = reply.detail === aboutNobody.detail || names.some((name) => reply.detail.includes(name));
  return isSame ? 'doubtful' : 'unclear';
};

type SourceName = 'contacts' | 'groups' | 'content' | 'consents';
type Sources = Readonly<Record<SourceName, NameSource>>;

interface Parameter {
  readonly source: SourceName;
  readonly name: string;
  readonly likely: readonly string[];
  readonly check: Check;
}

/** Names in other interfaces, the more usual ones first: each costs the service a read or two. */
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
    check: sortVerdict('sortBy', ['fullName', 'email']),
  },
  ...(['contacts', 'groups'] as const).map((source) => ({
    source,
    name: 'sortDirection',
    likely: likelyDirections,
    check: sortVerdict('sortDirection', ['asc', 'desc']),
  })),
  {
    source: 'content',
    name: 'searchText',
    likely: [
      ...['searchText', 'q', 'query', 'search', 'searchTerm', 'text', 'keyword', 'keywords', 'term'],
      ...['search_text', 'search_term', 'searchQuery', 'searchString', 'filter', 'phrase', 'freeText', 's'],
    ],
    check: textVerdict,
  },
  {
    source: 'content',
    name: 'contentType',
    likely: [
      ...['contentType', 'type', 'kind', 'category', 'content_type', 'contentTypes', 'types'],
      ...['contentKind', 'contentCategory', 'mediaType', 'format'],
    ],
    check: kindVerdict,
  },
  {
    source: 'consents',
    name: 'memberId',
    likely: ['memberId', 'member', 'member_id', 'id', 'memberID', 'contactId', 'contact_id'],
    check: memberVerdict,
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
/** Parameters that count records, or pages from zero: with one record a page, `1` gives the second. */
const likelyOffsets = ['offset', 'skip', 'start', 'from', 'startIndex', 'start_index', '$skip'];

/** The verdict on one name; `found` is the name that works on the wire. */
interface CheckedName {
  readonly source: SourceName;
  readonly name: string;
  readonly verdict: NameVerdict;
  readonly found?: string | undefined;
  /** A name that works, but counts from zero: no name makes that right. */
  readonly fromZero?: string | undefined;
}

const usualSize = 50;

/** The most reads to find names, for all searches together. */
const mostGuesses = 120;

/** Thrown when the service does not answer now, or has been asked enough. */
class Unanswered extends Error {
  constructor(readonly reason: ReasonWord) {
    super('the service was not asked further');
  }
}

/** Reads each query only once, and none after one that was not answered. */
class Questions {
  reason: ReasonWord = '';
  private count = 0;
  private readonly answers = new Map<string, Promise<ReadAnswer>>();

  source(name: SourceName, { plain, read }: NameSource): NameSource {
    return {
      plain,
      read: async (query) => {
        if (this.reason !== '') throw new Unanswered(this.reason);
        const key = JSON.stringify([name, query]);
        let answer = this.answers.get(key);
        if (!answer) {
          if (this.count++ >= mostGuesses) throw new Unanswered((this.reason = { reason: 'limit' }));
          this.answers.set(key, (answer = read(query)));
        }
        const reply = await answer;
        if (isUnanswered(reply)) throw new Unanswered((this.reason = reply.reason));
        return reply;
      },
    };
  }
}

type NamesAttempt = (names: readonly string[]) => Promise<'works' | 'refused' | 'not'>;

/** The first name that works, found by halving; one of them must work. */
const narrow = async (names: readonly string[], attempt: NamesAttempt): Promise<string | undefined> => {
  const [only, another] = names;
  if (only === undefined || another === undefined)
    return only !== undefined && (await attempt([only])) === 'works' ? only : undefined;
  const first = names.slice(0, Math.ceil(names.length / 2));
  const works = (await attempt(first)) === 'works';
  return narrow(works ? first : names.slice(first.length), attempt);
};

/** The first name that works. Where unknown names are ignored, one read with all names tells whether any does. */
const findName = async (
  candidates: readonly string[],
  attempt: NamesAttempt,
): Promise<string | undefined> => {
  const names = [...new Set(candidates)];
  const together = await attempt(names);
  if (together === 'works') return narrow(names, attempt);
  if (together === 'not') return undefined;
  for (const name of names) if ((await attempt([name])) === 'works') return name;
  return undefined;
};

/** The name that is set, for one source or for all. */
export const wireName = (names: Readonly<Record<string, string>>, source: SourceName, name: string): string =>
  names[`${source}.${name}`] ?? names[name] ?? name;

const checkParameter = async (
  { source: sourceName, name, likely, check }: Parameter,
  source: NameSource,
  configured: string,
): Promise<CheckedName> => {
  const checked = { source: sourceName, name };
  if (!isUsable(source))
    return { ...checked, verdict: isUnanswered(source.plain) ? 'unanswered' : 'untried' };
  const verdict = await orUnanswered<NameVerdict>(check(source, [configured]), 'unanswered');
  if (verdict === 'right') return { ...checked, verdict, found: configured };
  if (verdict !== 'wrong' && verdict !== 'refused' && verdict !== 'doubtful') return { ...checked, verdict };
  const attempt: NamesAttempt = async (names) => {
    const tried = await check(source, names);
    if (tried === 'right') return 'works';
    return tried === 'wrong' || tried === 'unclear' ? 'not' : 'refused';
  };
  const found = await orUnanswered(findName(likely, attempt), undefined);
  const isUnclear = verdict === 'doubtful' && found === undefined;
  return { ...checked, verdict: isUnclear ? 'unclear' : 'wrong', found };
};

/** What was found out before the service stopped answering is kept. */
const orUnanswered = async <T>(work: Promise<T>, otherwise: T): Promise<T> => {
  try {
    return await work;
  } catch (fault) {
    if (fault instanceof Unanswered) return otherwise;
    throw fault;
  }
};

/** The page and its size are checked together: neither has an effect without the other. */
const checkPaging = async (
  sourceName: SourceName,
  source: NameSource,
  configured: { readonly page: string; readonly pageSize: string },
  before: readonly CheckedName[],
): Promise<CheckedName[]> => {
  const { page, pageSize } = configured;
  const both = (
    verdict: NameVerdict,
    found: Partial<typeof configured> = {},
    fromZero?: string,
  ): CheckedName[] =>
    (['page', 'pageSize'] as const).map((name) => ({
      source: sourceName,
      name,
      verdict: verdict === 'wrong' && found[name] === configured[name] ? 'right' : verdict,
      found: found[name],
      fromZero: name === 'page' ? fromZero : undefined,
    }));
  if (!isUsable(source)) return both(isUnanswered(source.plain) ? 'unanswered' : 'untried');
  const whole = pageIn(source.plain);
  const reply = await orUnanswered(source.read({ [page]: 2, [pageSize]: 1 }), undefined);
  if (!reply) return both('unanswered');
  const second = pageIn(reply);
  if (second === undefined && !isRefused(reply)) return both('untried');
  const isRight = second && isSecond(second, whole, 1);
  if (second && isRight === true && isOne(second, whole)) return both('right', configured);
  if (second && isRight === undefined) return both('unclear');

  const find = (
    names: readonly string[],
    queryOf: (some: readonly string[]) => Query,
    isSo: (page: ResultPage) => boolean,
  ): Promise<string | undefined> =>
    findName(names, async (some) => {
      const tried = pageIn(await source.read(queryOf(some)));
      if (!tried) return 'refused';
      return isSo(tried) ? 'works' : 'not';
    });
  const known = (name: string): string[] =>
    before.flatMap((each) => (each.name === name && each.found !== undefined ? [each.found] : []));
  const found: { page?: string; pageSize?: string } = {};
  let fromZero: string | undefined;
  const search = async (): Promise<void> => {
    const pages = [page, ...known('page'), ...likelyPages];
    // A search that gives nothing without a page is asked for its first page.
    const start = whole
      ? undefined
      : await find(
          pages,
          (some) => all(some, 1),
          () => true,
        );
    const started: Query = start === undefined ? {} : { [start]: 1 };
    const size = await find(
      [pageSize, ...known('pageSize'), ...likelySizes],
      (some) => ({ ...started, ...all(some, 1) }),
      (each) => isOne(each, whole),
    );
    if (size !== undefined) found.pageSize = size;
    const sized: Query = size === undefined ? {} : { [size]: 1 };
    const length = size === undefined ? (whole?.pageInfo?.pageSize ?? whole?.data.length ?? 1) : 1;
    const number = await find(
      pages,
      (some) => ({ ...sized, ...all(some, 2) }),
      (each) => isSecond(each, whole, length) === true,
    );
    if (number !== undefined) found.page = number;
    const [first, next] = whole?.data ?? [];
    if (number !== undefined || size === undefined || next === undefined || same(first, next)) return;
    fromZero = await find(
      [page, ...likelyPages, ...likelyOffsets],
      (some) => ({ ...sized, ...all(some, 1) }),
      (each) => same(each.data[0], next),
    );
  };
  await orUnanswered(search(), undefined);
  return both('wrong', found, fromZero);
};

/** The whole setting `names`, with the names that were found in place of those that do not work. */
const namesToSet = (
  configured: Readonly<Record<string, string>>,
  checked: readonly CheckedName[],
): Record<string, string> => {
  const names = { ...configured };
  for (const name of new Set(checked.map((each) => each.name))) {
    const ofName = checked.filter((each) => each.name === name);
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
const sourceList = (checked: readonly CheckedName[]): string =>
  [...new Set(checked.map(({ source }) => source))]
    .map((source) => {
      const names = checked.filter((each) => each.source === source).map(({ name }) => name);
      return `${source}: ${names.join(', ')}`;
    })
    .join('; ');

const plainReason = (sources: Sources): ReasonWord | undefined =>
  Object.values(sources).find(({ plain }) => isUnanswered(plain))?.plain.reason;

/** Checks whether the service accepts the query names that are set, and finds those to set instead. It only reads. */
export const checkQueryNames = async (
  names: Readonly<Record<string, string>>,
  sources: Sources,
): Promise<Conclusion> => {
  const checked: CheckedName[] = [];
  const questions = new Questions();
  const asked = (name: SourceName): NameSource => questions.source(name, sources[name]);
  for (const source of ['contacts', 'groups', 'content'] as const) {
    const configured = {
      page: wireName(names, source, 'page'),
      pageSize: wireName(names, source, 'pageSize'),
    };
    checked.push(...(await checkPaging(source, asked(source), configured, checked)));
  }
  /** A search that gives nothing without a page is asked for its first page. */
  const paged = async (name: SourceName): Promise<NameSource> => {
    const source = asked(name);
    const first = Object.fromEntries(
      checked.flatMap((each) =>
        each.source === name && each.found !== undefined
          ? [[each.found, each.name === 'page' ? 1 : usualSize] as const]
          : [],
      ),
    );
    if (!isRefused(source.plain) || Object.keys(first).length === 0) return source;
    const plain = await orUnanswered(source.read(first), source.plain);
    return { plain, read: (query) => source.read({ ...first, ...query }) };
  };
  const searches = {
    contacts: await paged('contacts'),
    groups: await paged('groups'),
    content: await paged('content'),
    consents: asked('consents'),
  };
  for (const parameter of parameters) {
    const { source, name } = parameter;
    checked.push(await checkParameter(parameter, searches[source], wireName(names, source, name)));
  }
  const of = (verdict: NameVerdict): CheckedName[] => checked.filter((each) => each.verdict === verdict);
  const [right, wrong, unclear, unanswered] = [of('right'), of('wrong'), of('unclear'), of('unanswered')];
  const reason = questions.reason || (plainReason(sources) ?? '');
  const conclusion = (ok: Conclusion['ok'], key: string, values: MessageValues = {}) => ({ ok, key, values });
  if (wrong.length > 0) {
    const unfound = wrong.filter(({ found }) => found === undefined);
    const zero = unfound.find(({ fromZero }) => fromZero !== undefined);
    const hasFound = wrong.length > unfound.length;
    const details = {
      wrong: sourceList(wrong),
      unfound: sourceList(unfound),
      names: JSON.stringify(namesToSet(names, checked)),
      zero: zero?.fromZero ?? '',
      reason,
    };
    if (zero)
      return conclusion(false, hasFound ? 'check.namesFromZeroFound' : 'check.namesFromZero', details);
    if (unfound.length === 0) return conclusion(false, 'check.namesWrong', details);
    if (questions.reason !== '') return conclusion(false, 'check.namesInterrupted', details);
    return conclusion(false, hasFound ? 'check.namesSomeFound' : 'check.namesNotFound', details);
  }
  if (unanswered.length > 0)
    return conclusion('untried', 'check.namesUnanswered', { names: sourceList(unanswered), reason });
  const values = { right: sourceList(right), unclear: sourceList(unclear) };
  if (right.length > 0)
    return conclusion(true, unclear.length > 0 ? 'check.namesPartly' : 'check.names', values);
  return unclear.length > 0
    ? conclusion(null, 'check.namesUnclear', values)
    : conclusion('untried', 'check.namesUntried');
};
