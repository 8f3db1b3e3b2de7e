import { declarations, endpoints, type EndpointName, type Id, type SearchName } from '../service/endpoints';
import { type MessageValues, ServiceError } from '../service/errors';
import { e164 } from '../contract-values';
import { isRecord } from '../kinds';
import { wirePath, wireScope, type Prefixes } from '../service/prefixes';
import {
  isRefused as isForWantOfQuery,
  isUnanswered,
  checkQueryNames,
  pageIn,
  type ReadAnswer,
  type Conclusion,
  type Query,
} from './query-names';
import { alike, nobodysPhone, ServiceReader, type ReadSettings } from './service-reader';
import { trustedBase } from '../service/transport';
import { wireName, type Names } from '../service/wire';

/** The parts of a connection that can be right or wrong. */
export const checkNames = ['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'];
/** What contacts show of what the contract leaves open. */
export const factNames = ['dates', 'groupIds', 'phones'];

export type Verdict = Conclusion['ok'];

export interface Finding extends Conclusion {
  readonly check: string;
}

export const finding =
  (check: string) =>
  (ok: Verdict, key: string, values: MessageValues = {}): Finding => ({ check, ok, key, values });

export interface Need {
  readonly endpoint: EndpointName;
  readonly node: string;
}

export interface Rehearsal extends ReadSettings {
  readonly names: Names;
  /** The wanted scopes in the contract's words, without those that allow no operation. */
  readonly wanted: readonly string[];
  /** The granted scopes in the contract's words; undefined when they are not known. Called when there is a token. */
  readonly granted: () => readonly string[] | undefined;
  /** `rejected` is a token that the service has just answered with a 401. */
  readonly token: (rejected?: string) => string | Promise<string>;
  /** The reason, as a key, why a token must not be sent to this address; called when there is a token. */
  readonly withheld?: () => string | undefined;
  /** The finding when no token could be obtained. */
  readonly tokenless?: (fault: unknown) => Conclusion | undefined;
  readonly needs?: readonly Need[];
  /** Whether a number that is not in E.164 can be read with the country of the environment. */
  readonly canRead?: (number: string) => boolean;
}

const wrongKey = 'advisor-texting-check-of-a-wrong-key';

const isOfService = ({ kind }: ReadAnswer): boolean => kind === 'fine' || kind === 'problem';
const isRefusal = ({ status }: ReadAnswer): boolean => status === 401 || status === 403;

/** What answers say about an address. The first line that is true of any of them counts. */
const reaches: readonly (readonly [isSo: (reply: ReadAnswer) => boolean, ok: Verdict, key: string])[] = [
  [isOfService, true, 'check.reached'],
  // A 401 asks for a token (RFC 9110, section 15.5.2), as the service does and a web site does not.
  [({ kind, status }) => kind === 'refused' && status === 401, true, 'check.reached'],
  [({ status }) => status === 429, 'untried', 'check.limited'],
  [({ kind }) => kind === 'trouble', false, 'check.serviceFails'],
  [({ kind }) => kind === 'refused', 'untried', 'check.gatewayOnly'],
  [({ kind }) => kind === 'other', false, 'check.notTheService'],
  [({ hasProblemBody }) => hasProblemBody === true, false, 'check.nothingOfService'],
  [({ kind }) => kind === 'nothing', false, 'check.nothingThere'],
];

const reachability = (replies: readonly ReadAnswer[], address: string): Finding => {
  const found = finding('reachability');
  for (const [isSo, ok, key] of reaches) {
    const reply = replies.find(isSo);
    if (reply) return found(ok, key, { address, reason: reply.reason });
  }
  return found(false, 'check.notReached', { address, reason: replies[0]?.reason ?? '' });
};

const searches = Object.fromEntries(
  Object.entries(declarations).flatMap(([name, { search }]) =>
    search === undefined ? [] : [[search, name]],
  ),
) as Readonly<Record<SearchName, EndpointName>>;
const searchNames = Object.keys(searches) as SearchName[];

interface Reads {
  readonly text: ReadAnswer;
  readonly core: Readonly<Partial<Record<SearchName, ReadAnswer>>>;
}

const elsewhere = 'check.untriedAbove';

const apiKey = (reads: Reads, wrong: ReadAnswer): Finding => {
  const all = [reads.text, ...Object.values(reads.core)];
  const found = (ok: Verdict, key: string, { status, reason }: ReadAnswer): Finding =>
    finding('apiKey')(ok, key, { status, reason });
  const accepted = all.find((reply) => isOfService(reply) && !isRefusal(reply));
  if (isUnanswered(wrong))
    return accepted
      ? found('untried', 'check.apiKeyUntried', wrong)
      : { check: 'apiKey', ok: 'untried', key: elsewhere };
  // With the right key, at least one read has another answer than with a wrong key.
  if (accepted ?? all.find((reply) => isOfService(reply) && !alike(reply, wrong))) {
    if (!isRefusal(wrong)) return found(true, 'check.apiKeyUnchecked', wrong);
    return found(true, wrong.kind === 'problem' ? 'check.apiKey' : 'check.apiKeyBare', wrong);
  }
  const refused = all.find(isRefusal);
  if (refused) return found(false, 'check.apiKeyRefused', refused);
  return { check: 'apiKey', ok: 'untried', key: elsewhere };
};

const scopesOf = (
  { wanted, granted, needs = [], prefixes }: Rehearsal,
  reads: Reads,
  isKeyAccepted: boolean,
): Finding => {
  const found = finding('scopes');
  /** Scopes in the service's words, each with the nodes that need it. */
  const named = (scopes: readonly string[]): string[] =>
    scopes.map((scope) => {
      const ofScope = needs.filter(({ endpoint }) => endpoints[endpoint].scope === scope);
      const nodes = [...new Set(ofScope.map(({ node }) => node))];
      const shown = [...nodes.slice(0, 3), ...(nodes.length > 3 ? ['…'] : [])].join(', ');
      return wireScope(scope, prefixes) + (shown === '' ? '' : ` (${shown})`);
    });
  const byRead: readonly (readonly [string, ReadAnswer])[] = [
    [endpoints.getConsent.scope, reads.text],
    ...searchNames.flatMap((name) => {
      const reply = reads.core[name];
      return reply ? [[endpoints[searches[name]].scope, reply] as const] : [];
    }),
  ];
  const needed = new Set(needs.map(({ endpoint }) => endpoints[endpoint].scope));
  const unticked = [...needed].filter((scope) => !wanted.includes(scope));
  if (unticked.length > 0) return found(false, 'check.scopesUnticked', { scopes: named(unticked) });
  const given = granted();
  const refused = isKeyAccepted
    ? byRead.flatMap(([scope, { kind, status }]) => (kind === 'problem' && status === 403 ? [scope] : []))
    : [];
  const lacking = wanted.filter(
    (scope) => refused.includes(scope) || (given !== undefined && !given.includes(scope)),
  );
  if (lacking.length > 0) return found(false, 'check.scopesMissing', { scopes: named(lacking) });
  if (given !== undefined) return found(true, 'check.scopes');
  const allowed = [...new Set(byRead.flatMap(([scope, { kind }]) => (kind === 'fine' ? [scope] : [])))];
  const unknown = wanted.filter((scope) => !allowed.includes(scope));
  if (allowed.length === 0) return found('untried', elsewhere);
  if (unknown.length === 0) return found(true, 'check.scopes');
  return found('untried', 'check.scopesUnknown', { scopes: named(allowed), unknown: named(unknown) });
};

interface Half {
  readonly part: keyof Prefixes;
  readonly replies: readonly ReadAnswer[];
}

const prefixesOf = async (
  { prefixes, wanted }: Rehearsal,
  { text, core }: Reads,
  readNowhere: (part: keyof Prefixes) => Promise<ReadAnswer>,
): Promise<Finding> => {
  const found = finding('prefixes');
  const both: Half[] = [
    { part: 'core', replies: Object.values(core) },
    { part: 'text', replies: [text] },
  ];
  const isWanted = ({ part }: Half): boolean => wanted.some((scope) => scope.startsWith(`${part}.`));
  const halves = both.some(isWanted) ? both.filter(isWanted) : both;
  const kinds = both.flatMap(({ replies }) => replies).map(({ kind }) => kind);
  // A web page answers at every path: the address is wrong, and nothing is known about the prefixes.
  if (kinds.includes('other') && kinds.every((kind) => ['other', 'nothing', 'silent'].includes(kind)))
    return found('untried', elsewhere);
  const isThere = ({ replies }: Half): boolean => replies.some((one) => isOfService(one) && !isRefusal(one));
  const isNotThere = ({ replies }: Half): boolean =>
    !replies.some(isOfService) && replies.some(({ kind }) => kind === 'nothing' || kind === 'other');
  const isKeyGood = both.some(isThere);
  const check = async (half: Half): Promise<Verdict> => {
    if (isThere(half)) return true;
    if (isNotThere(half)) return false;
    // Some gateways answer every unknown path with a 403.
    const refused = half.replies.find(({ kind, status }) => kind === 'refused' || status === 403);
    if (!refused || !isKeyGood) return 'untried';
    const control = await readNowhere(half.part);
    if (isUnanswered(control)) return 'untried';
    if (alike(refused, control)) return false;
    return refused.kind === 'problem' ? true : 'untried';
  };
  const checked: { half: Half; verdict: Verdict }[] = [];
  for (const half of halves) checked.push({ half, verdict: await check(half) });
  const of = (verdict: Verdict): MessageValues | undefined => {
    const some = checked.filter((each) => each.verdict === verdict).map(({ half }) => half);
    if (some.length === 0) return undefined;
    const reason = some.flatMap(({ replies }) => replies).find((one) => !isOfService(one))?.reason ?? '';
    return {
      paths: some.map(({ part }) => `/${prefixes[part]}`).join(', '),
      settings: some.map(({ part }) => ({ setting: `${part}Prefix` })),
      reason,
    };
  };
  const [wrong, untried, right] = [of(false), of('untried'), of(true)];
  if (wrong) return found(false, 'check.prefixWrong', wrong);
  if (untried)
    return isKeyGood ? found('untried', 'check.prefixUnclear', untried) : found('untried', elsewhere);
  return found(true, 'check.prefixes', right);
};

const dateFields = ['birthDate', 'clientAnniversary', 'dateTimeCreated', 'dateTimeModified'] as const;
const iso = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/;
const mostContacts = 5;

/** The format of a date, without the date, which is personal. The names of months are replaced too. */
const formatOf = (date: string): string => {
  const begin = date.slice(0, 40);
  const isDate = /^[\p{L}\d\s,./:+-]+$/u.test(begin);
  const wordless = isDate
    ? begin.replaceAll(/\p{L}{3,}/gu, (word) => (word === 'GMT' || word === 'UTC' ? word : 'xxx'))
    : begin;
  return wordless.replaceAll(/\d/g, '#');
};

const phoneFormatOf = (phone: string): string =>
  phone
    .slice(0, 40)
    .replaceAll(/\p{L}+/gu, 'xxx')
    .replaceAll(/\d/g, '#');

/** The forms of stored numbers. The contract takes E.164 alone (*Limits*), also when a contact is written back. */
const phonesOf = ({ canRead = () => false }: Rehearsal, phones: readonly string[]): Finding => {
  const found = (ok: Verdict, key: string, some: readonly string[]): Finding => {
    const formats = [...new Set(some.map(phoneFormatOf))].join(', ');
    return { check: 'phones', ok, key, values: { formats, setting: { setting: 'country' } } };
  };
  if (phones.length === 0) return found(null, 'check.phonesNone', []);
  const others = phones.filter((phone) => !e164.test(phone));
  const unread = others.filter((phone) => !canRead(phone));
  if (unread.length > 0) return found(null, 'check.phonesOther', unread);
  return others.length > 0 ? found(true, 'check.phonesRead', others) : found(true, 'check.phones', []);
};

const datesIn = (formats: ReadonlyMap<string, string>): Finding => {
  if (formats.size === 0) return { check: 'dates', ok: null, key: 'check.datesNone' };
  const isIso = [...formats.values()].every((date) => iso.test(date));
  const written = [...formats].map(([field, date]) => `${field} ${formatOf(date)}`).join(', ');
  const key = isIso ? 'check.dates' : 'check.datesOther';
  return { check: 'dates', ok: isIso ? true : null, key, values: { formats: written } };
};

const pathOf = (name: EndpointName, prefixes: Prefixes): string => wirePath(endpoints[name].path, prefixes);

/**
 * Paths that do not exist, or give something else, although their half of the service exists. `contact` is the answer
 * to reading a contact that the search has just named, where none could be read.
 */
const missingOf = (
  { prefixes, wanted, granted }: Rehearsal,
  core: Reads['core'],
  contact: ReadAnswer | undefined,
): MessageValues | undefined => {
  // A refusal with a problem body is reported by another check.
  const isMissing = (reply: ReadAnswer): boolean =>
    ['nothing', 'other', 'refused'].includes(reply.kind) && !isForWantOfQuery(reply);
  const missing: { name: EndpointName; reply: ReadAnswer }[] = searchNames.flatMap((name) => {
    const reply = core[name];
    return reply && isMissing(reply) ? [{ name: searches[name], reply }] : [];
  });
  if (contact) missing.push({ name: 'getContact', reply: contact });
  const allowed = granted() ?? wanted;
  const asked = missing.filter(({ name }) =>
    [wanted, allowed].every((some) => some.includes(endpoints[name].scope)),
  );
  const [first] = asked;
  return (
    first && {
      missing: asked.map(({ name }) => pathOf(name, prefixes)),
      reason: first.reply.reason,
    }
  );
};

/** The facts that contacts show, and the answer to reading one where none could be read. */
interface Facts {
  readonly findings: readonly Finding[];
  readonly unread?: ReadAnswer | undefined;
}

const learnedFacts = async (
  rehearsal: Rehearsal,
  contacts: ReadAnswer,
  read: (id: Id) => Promise<ReadAnswer>,
): Promise<Facts> => {
  const { wanted, prefixes } = rehearsal;
  const all = (ok: Verdict, key: string, values: MessageValues = {}): Finding[] =>
    factNames.map((check) => ({ check, ok, key, values }));
  if (contacts.kind !== 'fine')
    return {
      findings: wanted.includes(endpoints.getContact.scope)
        ? all('untried', elsewhere)
        : all(null, 'check.contactsUnasked'),
    };
  const ids = (pageIn(contacts)?.data ?? []).flatMap((item) => {
    const id = isRecord(item) ? item['contactId'] : undefined;
    return typeof id === 'number' || typeof id === 'string' ? [id] : [];
  });
  const formats = new Map<string, string>();
  const phones: string[] = [];
  let groups: Finding | undefined;
  let unread: ReadAnswer | undefined;
  for (const id of ids.slice(0, mostContacts)) {
    const reply = await read(id);
    const { kind, data } = reply;
    if (kind !== 'fine' || !isRecord(data)) {
      unread = reply;
      if (isUnanswered(reply)) break;
      // The contact may have been deleted since the search.
      continue;
    }
    groups ??= Array.isArray(data['groupIds'])
      ? { check: 'groupIds', ok: true, key: 'check.groupIds' }
      : { check: 'groupIds', ok: null, key: 'check.groupIdsMissing' };
    for (const field of dateFields) {
      const date = data[field];
      if (typeof date === 'string' && date !== '' && !formats.has(field)) formats.set(field, date);
    }
    const { phone } = data;
    if (typeof phone === 'string' && phone.trim() !== '') phones.push(phone.trim());
  }
  if (!groups && unread) {
    const values = { reason: unread.reason, names: pathOf('getContact', prefixes) };
    return isUnanswered(unread)
      ? { findings: all('untried', 'check.namesUnanswered', values) }
      : { findings: all('untried', elsewhere), unread };
  }
  if (!groups) return { findings: all(null, 'check.noContact') };
  return { findings: [datesIn(formats), groups, phonesOf(rehearsal, phones)] };
};

const unproven: Finding = { check: 'token', ok: 'untried', key: 'check.tokenUnproven' };

const tokenFinding = (reads: Reads, isKeyAccepted: boolean): Finding => {
  const all = [reads.text, ...Object.values(reads.core)];
  const isRefused = isKeyAccepted && all.some(({ status }) => status === 401);
  const isShown = all.some((reply) => isOfService(reply) && reply.status !== 401);
  if (isRefused && !isShown) return { check: 'token', ok: false, key: 'check.tokenRefused' };
  return isShown ? { check: 'token', ok: true, key: 'check.token' } : unproven;
};

const withToken = async (
  rehearsal: Rehearsal,
  reader: ServiceReader,
  firstToken: string,
): Promise<Finding[]> => {
  const { names } = rehearsal;
  let token = firstToken;
  let text = await reader.readConsent({ token });
  if (text.status === 401) {
    // As for any request, the token may have ended before its time.
    const newer = await Promise.resolve(rehearsal.token(token)).catch(() => token);
    if (newer !== token) {
      token = newer;
      text = await reader.readConsent({ token });
    }
  }
  const search = (name: SearchName, query?: Query): Promise<ReadAnswer> =>
    reader.read(searches[name], { token }, query);
  const core = Object.fromEntries(
    await Promise.all(searchNames.map(async (name) => [name, await search(name)] as const)),
  ) as Record<SearchName, ReadAnswer>;
  const { contacts, groups, content } = core;
  const reads = { text, core };
  const wrong = isOfService(text)
    ? await reader.read('getConsent', { token, apiKey: wrongKey }, { phone: nobodysPhone })
    : await reader.read('searchContacts', { token, apiKey: wrongKey });
  const key = apiKey(reads, wrong);

  const checked = await checkQueryNames(names, {
    contacts: { plain: contacts, read: (query) => search('contacts', query) },
    groups: { plain: groups, read: (query) => search('groups', query) },
    content: { plain: content, read: (query) => search('content', query) },
    consents: { plain: text, read: (query) => reader.read('getConsent', { token }, query) },
  });
  const listed = isForWantOfQuery(contacts)
    ? await search('contacts', {
        [wireName(names, 'contacts', 'page')]: 1,
        [wireName(names, 'contacts', 'pageSize')]: mostContacts,
      })
    : contacts;
  const facts = await learnedFacts(rehearsal, listed, (contactId) =>
    reader.read('getContact', { token }, {}, { params: { contactId } }),
  );
  const prefixes = await prefixesOf(rehearsal, reads, (part) => reader.readNowhere(part, { token }));
  const missing = prefixes.ok === true ? missingOf(rehearsal, core, facts.unread) : undefined;
  return [
    reachability([text, ...Object.values(core)], trustedBase(rehearsal.baseUrl, 'baseUrl')),
    tokenFinding(reads, key.ok === true),
    key,
    scopesOf(rehearsal, reads, key.ok === true),
    missing ? { ...prefixes, ok: false, key: 'check.pathsMissing', values: missing } : prefixes,
    { check: 'names', ...checked },
    ...facts.findings,
  ];
};

const tokenFault = ({ tokenless }: Rehearsal, fault: unknown): Finding => {
  const own = tokenless?.(fault);
  if (own) return { check: 'token', ...own };
  if (!(fault instanceof ServiceError)) throw fault;
  return { check: 'token', ok: false, key: '', problem: fault.problem };
};

/** Tries a connection by reads alone. Gives a finding for each check, then for each fact. Throws `not_configured`. */
export const rehearse = async (rehearsal: Rehearsal): Promise<Finding[]> => {
  const address = trustedBase(rehearsal.baseUrl, 'baseUrl');
  const reader = new ServiceReader(rehearsal);
  try {
    const asking = Promise.resolve()
      .then(() => rehearsal.token())
      .then(
        (token) => ({ token }),
        (fault: unknown) => ({ fault }),
      );
    // Reads without a token or a key show whether anything is there, before either is sent.
    const probes = await Promise.all([reader.readConsent({}), reader.read('searchContacts', {})]);
    const had = await asking;
    const reach = reachability(probes, address);
    const token = 'fault' in had ? tokenFault(rehearsal, had.fault) : unproven;
    // A path that does not exist without a token does not exist with one.
    const prefixes = await prefixesOf(rehearsal, { text: probes[0], core: { contacts: probes[1] } }, (part) =>
      reader.readNowhere(part, {}),
    );
    const known = [reach, token, ...(prefixes.ok === false ? [prefixes] : [])];
    const rest = (key: string): Finding[] =>
      [...checkNames, ...factNames].map(
        (check) => known.find((finding) => finding.check === check) ?? { check, ok: 'untried', key },
      );
    if ('fault' in had) return rest('check.untried');
    const withheld = rehearsal.withheld?.();
    if (withheld !== undefined) return rest(withheld);
    if (probes.every(({ kind }) => kind === 'silent')) return rest(elsewhere);
    return await withToken(rehearsal, reader, had.token);
  } finally {
    await reader.close();
  }
};
