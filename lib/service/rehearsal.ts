import { headerSafe } from './call';
import { endpoints, type EndpointName, type Id } from './endpoints';
import { serviceError, ServiceError } from './errors';
import { assess } from './answers';
import { planEndpoint, type Request } from './requests';
import type { Prefixes } from './prefixes';
import {
  judgeQueryNames,
  pageIn,
  type Answer,
  type AnswerKind,
  type Judgement,
  type Page,
  type Query,
} from './query-names';
import { createTransport, trustedUrl, type Transport } from './transport';

/** What can be right or wrong about a connection. */
export const checkNames = ['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'] as const;
/** What the contract leaves open and no setting changes. */
export const factNames = ['dates', 'groupIds'] as const;
/** How tokens come about: only the command tries it, since an editor has a button for it. */
export type SignInName = 'client' | 'authorization';
export type CheckName = (typeof checkNames)[number] | (typeof factNames)[number] | SignInName;

/** One line of the report. */
export interface Finding<Name extends string = CheckName> extends Judgement {
  readonly check: Name;
}

export interface Rehearsal {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly prefixes: Prefixes;
  readonly names: Readonly<Record<string, string>>;
  readonly proxy: string;
  /** In the contract's words, less those that grant no operation. */
  readonly wanted: readonly string[];
  /** In the contract's words; undefined when nobody said. Asked once there is a token. */
  readonly granted: () => readonly string[] | undefined;
  /** `rejected` is a token the service has just answered 401 to. */
  readonly token: (rejected?: string) => string | Promise<string>;
  /** Why a token must not go to this address, as a key; asked once there is one. */
  readonly withheld?: () => string | undefined;
  /** What to say of a token that could not be had. */
  readonly tokenless?: (fault: unknown) => Judgement | undefined;
}

/** Milliseconds for one request. */
const patience = 10_000;

/** Nobody has this number: it is set aside for fiction. */
const nobody = '+12025550100';
const wrongKey = 'advisor-texting-check-of-a-wrong-key';

const isOfService = ({ kind }: Answer): boolean => kind === 'fine' || kind === 'problem';
const isRefusal = ({ status }: Answer): boolean => status === 401 || status === 403;
const alike = (one: Answer, other: Answer): boolean =>
  one.kind === other.kind && one.status === other.status && one.detail === other.detail;

interface Credentials {
  readonly token?: string;
  readonly apiKey?: string;
}

/** Makes single reads, and repeats none. */
class Reader {
  private readonly rehearsal: Rehearsal;
  private readonly transport: Transport;
  private readonly basePath: string;

  constructor(rehearsal: Rehearsal) {
    const { origin, pathname } = trustedUrl(rehearsal.baseUrl, 'baseUrl');
    if (!headerSafe.test(rehearsal.apiKey)) throw serviceError('not_configured', 'key_missing');
    this.rehearsal = rehearsal;
    this.basePath = pathname.replace(/\/+$/, '');
    this.transport = createTransport({
      origin,
      timeout: patience,
      connections: 4,
      proxy: rehearsal.proxy,
    });
  }

  /** Without `token`, neither a token nor the key is handed over. Names in `query` are those of the wire. */
  async read(
    name: EndpointName,
    { token, apiKey = this.rehearsal.apiKey }: Credentials,
    query: Query = {},
    request: Request = {},
  ): Promise<Answer> {
    const { prefixes } = this.rehearsal;
    const plan = planEndpoint(name, this.basePath, { names: new Map(), prefixes });
    if (plan.method !== 'GET') throw new Error('a rehearsal only reads');
    const { path, id } = plan.wire(request);
    const written = new URLSearchParams(
      Object.entries(query).map(([key, value]) => [key, String(value)]),
    ).toString();
    const result = await this.transport.send({
      method: 'GET',
      path: written === '' ? path : `${path}?${written}`,
      headers: token === undefined ? [] : ['authorization', `Bearer ${token}`, 'x-api-key', apiKey],
      body: null,
    });
    const secrets = token === undefined ? [] : [token, this.rehearsal.apiKey];
    const assessed = assess(plan, id, result, Date.now(), secrets);
    const status = result.state === 'answered' ? result.status : 0;
    const { data, told, reason } = assessed;
    const seen = { status, detail: told?.more.detail ?? '', reason: reason || `HTTP ${String(status)}` };
    if (assessed.happened.what === 'done') return { ...seen, kind: 'fine', data };
    if (status === 0) return { ...seen, kind: 'silent' };
    // A search finds nothing with 200: a 404, whoever says it, is about the path.
    if ([404, 405, 410].includes(status) && (told?.hasProblemBody !== true || name.startsWith('search')))
      return { ...seen, kind: 'nothing' };
    if (status === 429 || status >= 500) return { ...seen, kind: 'trouble' };
    if (told?.hasProblemBody === true) return { ...seen, kind: 'problem' };
    return { ...seen, kind: status >= 400 ? 'refused' : 'other' };
  }

  /**
   * Asks for the consent of nobody. The 404 that nobody owns the number looks like one for a path that does not exist,
   * but a number that is none gets 400 from the service (contract, *Limits*).
   */
  async readConsent(credentials: Credentials): Promise<Answer> {
    const seen = await this.read('getConsent', credentials, { phone: nobody });
    if (seen.kind !== 'problem' || seen.status !== 404) return seen;
    const malformed = await this.read('getConsent', credentials, { phone: '0' });
    return malformed.status === 404 ? { ...seen, kind: 'nothing' } : seen;
  }

  close(): Promise<void> {
    return this.transport.destroy();
  }
}

/** An address without what its query may hold. */
export const shown = (address: string): string => {
  const { origin, pathname } = new URL(address);
  return origin + pathname.replace(/\/+$/, '');
};

const reachability = (seen: readonly Answer[], address: string): Finding => {
  const say = (ok: boolean, key: string, { reason }: { reason: string }): Finding => ({
    check: 'reachability',
    ok,
    key,
    values: { address, reason: { reason } },
  });
  const of = (...kinds: AnswerKind[]): Answer | undefined => seen.find(({ kind }) => kinds.includes(kind));
  const answered = of('fine', 'problem') ?? of('refused');
  if (answered) return say(true, 'check.reached', answered);
  const trouble = of('trouble');
  if (trouble) return say(false, 'check.serviceFails', trouble);
  const other = of('other');
  if (other) return say(false, 'check.notTheService', other);
  const nothing = of('nothing');
  if (nothing) return say(false, 'check.nothingThere', nothing);
  return say(false, 'check.notReached', of('silent') ?? { reason: '' });
};

const searches = { contacts: 'searchContacts', groups: 'searchGroups', content: 'searchContent' } as const;
type SearchName = keyof typeof searches;
const searchNames = Object.keys(searches) as SearchName[];

/** What came of reading each half of the service. */
interface Reads {
  readonly text: Answer;
  readonly core: Readonly<Partial<Record<SearchName, Answer>>>;
}

const apiKey = (reads: Reads, wrong: Answer): Finding => {
  const all = [reads.text, ...Object.values(reads.core)];
  const say = (ok: boolean | null, key: string, status: number): Finding => ({
    check: 'apiKey',
    ok,
    key,
    values: { status },
  });
  // With the right key at least one read is answered otherwise than with a wrong one.
  const accepted =
    all.find((seen) => isOfService(seen) && !isRefusal(seen)) ??
    all.find((seen) => isOfService(seen) && !alike(seen, wrong));
  if (accepted) {
    if (!isRefusal(wrong)) return say(true, 'check.apiKeyUnchecked', wrong.status);
    return say(true, wrong.kind === 'problem' ? 'check.apiKey' : 'check.apiKeyBare', wrong.status);
  }
  const refused = all.find(isRefusal);
  if (refused) return say(false, 'check.apiKeyRefused', refused.status);
  return { check: 'apiKey', ok: null, key: 'check.untriedAbove' };
};

const scopesOf = ({ wanted, granted }: Rehearsal, reads: Reads, isKeyAccepted: boolean): Finding => {
  const byRead: readonly (readonly [string, Answer])[] = [
    [endpoints.getConsent.scope, reads.text],
    ...searchNames.flatMap((name) => {
      const seen = reads.core[name];
      return seen ? [[endpoints[searches[name]].scope, seen] as const] : [];
    }),
  ];
  const given = granted();
  const refused = isKeyAccepted
    ? byRead.flatMap(([scope, { kind, status }]) => (kind === 'problem' && status === 403 ? [scope] : []))
    : [];
  const lacking = wanted.filter(
    (scope) => refused.includes(scope) || (given !== undefined && !given.includes(scope)),
  );
  if (lacking.length > 0)
    return { check: 'scopes', ok: false, key: 'check.scopesMissing', values: { scopes: lacking.join(', ') } };
  if (given !== undefined) return { check: 'scopes', ok: true, key: 'check.scopes' };
  const allowed = [...new Set(byRead.flatMap(([scope, { kind }]) => (kind === 'fine' ? [scope] : [])))];
  return allowed.length > 0
    ? { check: 'scopes', ok: null, key: 'check.scopesUnknown', values: { scopes: allowed.join(', ') } }
    : { check: 'scopes', ok: null, key: 'check.untriedAbove' };
};

const prefixesOf = ({ prefixes }: Rehearsal, { text, core }: Reads): Finding => {
  const kinds = [text, ...Object.values(core)].map(({ kind }) => kind);
  // A web page answers under every path: the address is wrong, and nothing is known of the prefixes.
  if (kinds.includes('other') && kinds.every((kind) => ['other', 'nothing', 'silent'].includes(kind)))
    return { check: 'prefixes', ok: null, key: 'check.untriedAbove' };
  const halves = [
    { setting: 'corePrefix', path: `/${prefixes.core}`, seen: Object.values(core) },
    { setting: 'textPrefix', path: `/${prefixes.text}`, seen: [text] },
  ];
  // A 401 comes before anything that a path leads to.
  const right = halves.filter(({ seen }) => seen.some((one) => isOfService(one) && one.status !== 401));
  const wrong = halves.filter(
    ({ seen }) => !seen.some(isOfService) && seen.some(({ kind }) => kind === 'nothing' || kind === 'other'),
  );
  const paths = (some: typeof halves): string => some.map(({ path }) => path).join(', ');
  if (wrong.length > 0) {
    const settings = wrong.map(({ setting }) => ({ setting }));
    return {
      check: 'prefixes',
      ok: false,
      key: 'check.prefixWrong',
      values: { paths: paths(wrong), settings },
    };
  }
  return right.length > 0
    ? { check: 'prefixes', ok: true, key: 'check.prefixes', values: { paths: paths(right) } }
    : { check: 'prefixes', ok: null, key: 'check.untriedAbove' };
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

const dateFields = ['birthDate', 'clientAnniversary', 'dateTimeCreated', 'dateTimeModified'] as const;
const iso = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/;
/** Contacts read in search of a date. */
const mostContacts = 5;

/** The format of a date, without the date: birthdays are nobody's business here. */
const formatOf = (date: string): string => date.slice(0, 40).replaceAll(/\d/g, '0');

const factsOf = async (whole: Page | undefined, read: (id: Id) => Promise<Answer>): Promise<Finding[]> => {
  const unknown = factNames.map((check): Finding => ({ check, ok: null, key: 'check.noContact' }));
  const ids = (whole?.data ?? []).flatMap((item) => {
    const id = isRecord(item) ? item['contactId'] : undefined;
    return typeof id === 'number' || typeof id === 'string' ? [id] : [];
  });
  const formats = new Map<string, string>();
  let groups: Finding | undefined;
  for (const id of ids.slice(0, mostContacts)) {
    const { kind, data } = await read(id);
    if (kind !== 'fine' || !isRecord(data)) break;
    groups ??= Array.isArray(data['groupIds'])
      ? { check: 'groupIds', ok: true, key: 'check.groupIds' }
      : { check: 'groupIds', ok: null, key: 'check.groupIdsMissing' };
    for (const field of dateFields) {
      const date = data[field];
      if (typeof date === 'string' && date !== '' && !formats.has(field)) formats.set(field, date);
    }
    if (formats.has('birthDate')) break;
  }
  if (!groups) return unknown;
  if (formats.size === 0) return [{ check: 'dates', ok: null, key: 'check.datesNone' }, groups];
  const isIso = [...formats.values()].every((date) => iso.test(date));
  const written = [...formats].map(([field, date]) => `${field} ${formatOf(date)}`).join(', ');
  const key = isIso ? 'check.dates' : 'check.datesOther';
  return [{ check: 'dates', ok: isIso ? true : null, key, values: { formats: written } }, groups];
};

const tokenFinding = (reads: Reads, isKeyAccepted: boolean): Finding => {
  const all = [reads.text, ...Object.values(reads.core)];
  const isRefused = isKeyAccepted && all.some(({ status }) => status === 401);
  const isShown = all.some((seen) => isOfService(seen) && seen.status !== 401);
  if (isRefused && !isShown) return { check: 'token', ok: false, key: 'check.tokenRefused' };
  return { check: 'token', ok: true, key: isShown ? 'check.token' : 'check.tokenUnproven' };
};

/** With a token: everything else. */
const withToken = async (rehearsal: Rehearsal, reader: Reader, firstToken: string): Promise<Finding[]> => {
  const { names } = rehearsal;
  let token = firstToken;
  let text = await reader.readConsent({ token });
  if (text.status === 401) {
    // As any request: the token may have ended before its time.
    const newer = await Promise.resolve(rehearsal.token(token)).catch(() => token);
    if (newer !== token) {
      token = newer;
      text = await reader.readConsent({ token });
    }
  }
  const search = (name: SearchName, query?: Query): Promise<Answer> =>
    reader.read(searches[name], { token }, query);
  const [contacts, groups, content] = await Promise.all([
    search('contacts'),
    search('groups'),
    search('content'),
  ]);
  const core = { contacts, groups, content };
  const reads = { text, core };
  const wrong = isOfService(text)
    ? await reader.read('getConsent', { token, apiKey: wrongKey }, { phone: nobody })
    : await reader.read('searchContacts', { token, apiKey: wrongKey });
  const key = apiKey(reads, wrong);

  const judged = await judgeQueryNames(names, {
    contacts: { plain: contacts, read: (query) => search('contacts', query) },
    groups: { plain: groups, read: (query) => search('groups', query) },
    content: { plain: content, read: (query) => search('content', query) },
    consents: { plain: text, read: (query) => reader.read('getConsent', { token }, query) },
  });
  const facts = await factsOf(pageIn(contacts), (contactId) =>
    reader.read('getContact', { token }, {}, { params: { contactId } }),
  );
  return [
    reachability([text, contacts, groups, content], shown(rehearsal.baseUrl)),
    tokenFinding(reads, key.ok === true),
    key,
    scopesOf(rehearsal, reads, key.ok === true),
    prefixesOf(rehearsal, reads),
    { check: 'names', ...judged },
    ...facts,
  ];
};

const tokenFault = ({ tokenless }: Rehearsal, fault: unknown): Finding => {
  const own = tokenless?.(fault);
  if (own) return { check: 'token', ...own };
  if (!(fault instanceof ServiceError)) throw fault;
  return { check: 'token', ok: false, key: '', problem: fault.problem };
};

/**
 * Tries a connection by reads alone: nothing is written, nobody is texted. Gives a finding for each check, then for each
 * fact. Throws ServiceError `not_configured`.
 */
export const rehearse = async (rehearsal: Rehearsal): Promise<Finding[]> => {
  const address = shown(trustedUrl(rehearsal.baseUrl, 'baseUrl').href);
  const reader = new Reader(rehearsal);
  try {
    const asking = Promise.resolve()
      .then(() => rehearsal.token())
      .then(
        (token) => ({ token }),
        (fault: unknown) => ({ fault }),
      );
    // Without a token or a key: whether anything is there, before either goes there.
    const probes = await Promise.all([reader.readConsent({}), reader.read('searchContacts', {})]);
    const had = await asking;
    const reach = reachability(probes, address);
    const token: Finding =
      'fault' in had
        ? tokenFault(rehearsal, had.fault)
        : { check: 'token', ok: true, key: 'check.tokenUnproven' };
    // What is not there without a token will not be there with one.
    const prefixes = prefixesOf(rehearsal, { text: probes[0], core: { contacts: probes[1] } });
    const known = [reach, token, ...(prefixes.ok === false ? [prefixes] : [])];
    const rest = (key: string): Finding[] =>
      [...checkNames, ...factNames].map(
        (check) => known.find((finding) => finding.check === check) ?? { check, ok: null, key },
      );
    if ('fault' in had) return rest('check.untried');
    const withheld = rehearsal.withheld?.();
    if (withheld !== undefined) return rest(withheld);
    if (probes.every(({ kind }) => kind === 'silent')) return rest('check.untriedAbove');
    return await withToken(rehearsal, reader, had.token);
  } finally {
    await reader.close();
  }
};
