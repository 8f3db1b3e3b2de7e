import type { ResultPage } from '../service/endpoints';
import type { MessageValues, Problem, ReasonWord } from '../service/errors';
import { orMake } from '../process-memory';
import { wireName, type Names } from '../service/wire';
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

interface Subject {
  /** Adds what the search requires in any case. */
  readonly read: NameSource['read'];
  /** The answer without the names to be checked. */
  readonly whole: ResultPage | undefined;
  /** The query for one record a page, once it is known. */
  readonly one?: Query;
}

/** Checks names together, sent with one value: a service that ignores unknown names uses the right one. */
type Check = (subject: Subject, names: readonly string[]) => Promise<NameVerdict>;

const all = (names: readonly string[], value: string | number): Query =>
  Object.fromEntries(names.map((name) => [name, value]));

export const isRefused = ({ status }: ReadAnswer): boolean => status === 400 || status === 422;
/** A search without a query may be refused; and nobody has the number of the consent lookup, so a 404 is right. */
const isUsable = ({ plain }: NameSource): boolean =>
  plain.kind === 'fine' || isRefused(plain) || (plain.kind === 'problem' && plain.status === 404);

/** The page of an answer, or what its absence says about the names. */
const pageOr = (reply: ReadAnswer): ResultPage | 'refused' | 'untried' =>
  isRefused(reply) ? 'refused' : (pageIn(reply) ?? 'untried');

const recordsIn = (whole: ResultPage | undefined): number =>
  whole?.pageInfo?.totalRecord ?? whole?.data.length ?? 0;

const sizeVerdict: Check = async ({ read, whole }, names) => {
  const page = pageOr(await read(all(names, 1)));
  if (typeof page === 'string') return page;
  const said = page.pageInfo?.pageSize;
  if (page.data.length > 1) return 'wrong';
  if (said === 1 && whole?.pageInfo?.pageSize !== 1) return 'right';
  if (recordsIn(whole) <= 1) return 'unclear';
  return typeof said === 'number' ? 'wrong' : 'right';
};

const pageVerdict: Check = async ({ read, whole, one }, names) => {
  const page = pageOr(await read({ ...one, ...all(names, 2) }));
  if (typeof page === 'string') return page;
  const [first, second, third] = whole?.data ?? [];
  const [got] = page.data;
  const isSingle = one !== undefined;
  // If pages are counted from zero, page 2 is the third.
  if (isSingle && third !== undefined && same(got, third) && !same(second, third)) return 'wrong';
  const said = page.pageInfo?.page;
  if (said === 2) return 'right';
  const size = isSingle ? 1 : (whole?.pageInfo?.pageSize ?? whole?.data.length ?? 1);
  if (recordsIn(whole) <= size) return 'unclear';
  if (typeof said === 'number') return 'wrong';
  return (isSingle ? same(got, second) : !same(got, first)) ? 'right' : 'wrong';
};

/** With one record a page, a name that counts from zero gives the second record for 1. */
const zeroVerdict: Check = async ({ read, whole, one }, names) => {
  const [first, second] = whole?.data ?? [];
  if (second === undefined || same(first, second)) return 'unclear';
  const page = pageOr(await read({ ...one, ...all(names, 1) }));
  if (typeof page === 'string') return page;
  return same(page.data[0], second) ? 'right' : 'wrong';
};

/** Whether a search that gives nothing without a page gives its first. */
const startVerdict: Check = async ({ read }, names) => {
  const page = pageOr(await read(all(names, 1)));
  return typeof page === 'string' ? page : 'right';
};

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

const textVerdict: Check = async ({ whole, read }, names) => {
  const found = pageOr(await read(all(names, nowhere)));
  if (typeof found === 'string') return found;
  if (whole && whole.data.length > 0) return same(found.data, whole.data) ? 'wrong' : 'right';
  // A longer text is refused (contract, *Limits*).
  return isRefused(await read(all(names, 'x'.repeat(longestSearch + 1)))) ? 'right' : 'unclear';
};

/** At least one content type must give another result than the whole library. */
const kindVerdict: Check = async ({ whole, read }, names) => {
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

const sourceNames = ['contacts', 'groups', 'content', 'consents'] as const;
type SourceName = (typeof sourceNames)[number];
type Sources = Readonly<Record<SourceName, NameSource>>;

/** A name to be checked, and names in other interfaces, the more usual first: each costs the service a read or two. */
interface Parameter {
  readonly name: string;
  readonly likely: readonly string[];
  readonly check: Check;
}

const sortDirection: Parameter = {
  name: 'sortDirection',
  likely: [
    ...['sortDirection', 'order', 'direction', 'sortOrder', 'sortDir', 'dir'],
    ...['sort_direction', 'sort_order', 'sort_dir', 'orderDirection', 'order_direction', 'orderDir'],
  ],
  check: sortVerdict('sortDirection', ['asc', 'desc']),
};

/** The names of each source besides those for paging. */
const parameters: Readonly<Record<SourceName, readonly Parameter[]>> = {
  contacts: [
    {
      name: 'sortBy',
      likely: [
        ...['sortBy', 'orderBy', 'sort', 'sortField', 'sort_by', 'order_by', 'sort_field', 'order'],
        ...['sortKey', 'sort_key', 'sortColumn', 'sortby', 'orderby', '$orderby'],
      ],
      check: sortVerdict('sortBy', ['fullName', 'email']),
    },
    sortDirection,
  ],
  groups: [sortDirection],
  content: [
    {
      name: 'searchText',
      likely: [
        ...['searchText', 'q', 'query', 'search', 'searchTerm', 'text', 'keyword', 'keywords', 'term'],
        ...['search_text', 'search_term', 'searchQuery', 'searchString', 'filter', 'phrase', 'freeText', 's'],
      ],
      check: textVerdict,
    },
    {
      name: 'contentType',
      likely: [
        ...['contentType', 'type', 'kind', 'category', 'content_type', 'contentTypes', 'types'],
        ...['contentKind', 'contentCategory', 'mediaType', 'format'],
      ],
      check: kindVerdict,
    },
  ],
  consents: [
    {
      name: 'memberId',
      likely: ['memberId', 'member', 'member_id', 'id', 'memberID', 'contactId', 'contact_id'],
      check: memberVerdict,
    },
  ],
};

const pageNumber: Parameter = {
  name: 'page',
  likely: [
    ...['page', 'pageNumber', 'pageNo', 'p', 'page_number', 'pageIndex', 'pageNum', 'page_no', 'page_num'],
    ...['page_index', 'currentPage', 'current_page', 'pageno', 'pg', 'page[number]', '$page'],
  ],
  check: pageVerdict,
};
const pageSize: Parameter = {
  name: 'pageSize',
  likely: [
    ...['pageSize', 'page_size', 'perPage', 'limit', 'size', 'per_page', 'pageLimit', 'page_limit', 'count'],
    ...['maxResults', 'max_results', 'itemsPerPage', 'rows', 'take', 'top', '$top', 'max', 'page[size]'],
  ],
  check: sizeVerdict,
};
/** Parameters that count records, or pages from zero. */
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

/** The most reads to find names, for all searches together. */
const mostGuesses = 120;

/** Reads each query only once, and none after one that was not answered, or when the service was asked enough. */
class Questions {
  /** Why nothing is asked any more; empty until then. */
  reason: ReasonWord = '';
  private readonly answers = new Map<string, Promise<ReadAnswer>>();

  async ask(name: SourceName, read: NameSource['read'], query: Query): Promise<ReadAnswer> {
    const key = JSON.stringify([name, query]);
    if (!this.answers.has(key) && this.answers.size >= mostGuesses) this.reason = { reason: 'limit' };
    if (this.reason !== '') return { kind: 'silent', status: 0, detail: '', reason: this.reason };
    const reply = await orMake(this.answers, key, () => read(query));
    if (isUnanswered(reply)) this.reason = reply.reason;
    return reply;
  }
}

/** The first that works. One read with all names tells if any does; where unknown ones are refused, each is tried. */
const findName = async (
  subject: Subject,
  check: Check,
  names: readonly string[],
): Promise<string | undefined> => {
  const verdict = await check(subject, names);
  const [only, another] = names;
  if (another === undefined) return verdict === 'right' ? only : undefined;
  if (verdict === 'wrong' || verdict === 'unclear') return undefined;
  const half = Math.ceil(names.length / 2);
  const parts = verdict === 'right' ? [names.slice(0, half), names.slice(half)] : names.map((name) => [name]);
  for (const part of parts) {
    const found = await findName(subject, check, part);
    if (found !== undefined) return found;
  }
  return undefined;
};

const checkName = async (
  subject: Subject,
  check: Check,
  [configured = '', ...others]: readonly string[],
  questions: Questions,
): Promise<Pick<CheckedName, 'verdict' | 'found'>> => {
  const verdict = await check(subject, [configured]);
  if (questions.reason !== '') return { verdict: 'unanswered' };
  if (verdict === 'right') return { verdict, found: configured };
  if (verdict !== 'wrong' && verdict !== 'refused' && verdict !== 'doubtful') return { verdict };
  const found = await findName(subject, check, others);
  return { verdict: verdict === 'doubtful' && found === undefined ? 'unclear' : 'wrong', found };
};

/** Checks the names of one source. `before` are those of other sources: a service often uses a name for all. */
const checkSource = async (
  source: SourceName,
  { plain, read }: NameSource,
  names: Names,
  before: readonly CheckedName[],
  questions: Questions,
): Promise<CheckedName[]> => {
  const isSearch = source !== 'consents';
  const paging = isSearch ? [pageNumber, pageSize] : [];
  if (!isUsable({ plain, read })) {
    const verdict = isUnanswered(plain) ? 'unanswered' : 'untried';
    return [...paging, ...parameters[source]].map(({ name }) => ({ source, name, verdict }));
  }
  const candidates = ({ name, likely }: Parameter): string[] => {
    const known = before.flatMap((each) =>
      each.name === name && each.found !== undefined ? [each.found] : [],
    );
    return [...new Set([wireName(names, source, name), ...known, ...likely])];
  };
  let subject: Subject = { read, whole: pageIn(plain) };
  const pages = candidates(pageNumber);
  if (isSearch && isRefused(plain)) {
    const start = await findName(subject, startVerdict, pages);
    const first: Query = start === undefined ? {} : { [start]: 1 };
    const whole = pageIn(await read(first));
    subject = { read: (query) => read({ ...first, ...query }), whole };
  }
  const checked: CheckedName[] = [];
  // With one record a page, the second page is recognized by its record.
  for (const parameter of [...paging.reverse(), ...parameters[source]]) {
    const result = await checkName(subject, parameter.check, candidates(parameter), questions);
    const { verdict, found } = result;
    if (parameter === pageSize && found !== undefined) subject = { ...subject, one: { [found]: 1 } };
    const isUnfound = verdict === 'wrong' && found === undefined;
    const mayBeZero = parameter === pageNumber && isUnfound && subject.one !== undefined;
    const fromZero = mayBeZero
      ? await findName(subject, zeroVerdict, [...pages, ...likelyOffsets])
      : undefined;
    const one = { source, name: parameter.name, ...result, fromZero };
    if (parameter === pageNumber) checked.unshift(one);
    else checked.push(one);
  }
  return checked;
};

/** The whole setting `names`, with the names that were found in place of those that do not work. */
const namesToSet = (configured: Names, checked: readonly CheckedName[]): Record<string, string> => {
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

/** Checks whether the service accepts the query names that are set, and finds those to set instead. It only reads. */
export const checkQueryNames = async (names: Names, sources: Sources): Promise<Conclusion> => {
  const checked: CheckedName[] = [];
  const questions = new Questions();
  for (const name of sourceNames) {
    const { plain, read } = sources[name];
    const source = { plain, read: (query: Query) => questions.ask(name, read, query) };
    checked.push(...(await checkSource(name, source, names, checked, questions)));
  }
  const of = (verdict: NameVerdict): CheckedName[] => checked.filter((each) => each.verdict === verdict);
  const [right, wrong, unclear, unanswered] = [of('right'), of('wrong'), of('unclear'), of('unanswered')];
  const silent = Object.values(sources).find(({ plain }) => isUnanswered(plain));
  const reason = questions.reason || (silent?.plain.reason ?? '');
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
