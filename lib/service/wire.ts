import { isRecord, tried } from '../kinds';
import type { Clock } from './clock';
import { declarations, type EndpointName, type Id, repeatKinds } from './endpoints';
import {
  type Code,
  serviceError,
  type ErrorKey,
  type MessageValues,
  ownCodes,
  type Problem,
  type ReasonWord,
  type ServiceCode,
  serviceCodes,
  type ServiceError,
} from './errors';
import { type Prefixes, scopeNames, usualPrefixes, wirePath, wireScope } from './prefixes';
import { isOfProxy } from './proxy';
import { type Decision, type Happened, readRetryAfter } from './retry';
import { idResult, problemBody } from './schemas';
import type { Result } from './transport';

/** An endpoint, prepared once for each client, so that a call only fills it in. */
export type Plan = ReturnType<typeof planEndpoint>;

/** A request for the wire, without its credentials. */
export type Wire = ReturnType<Plan['wire']>;

/** The common shape of all `RequestOf` types. */
export interface EndpointRequest {
  readonly params?: Readonly<Record<string, Id>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
}

/** `.` and `..` are dot segments (RFC 3986, section 3.3), and a lone surrogate cannot be encoded. */
const isPathText = (id: string): boolean => !/^\.{0,2}$/.test(id) && !/\p{Cc}|\p{Cs}/u.test(id);

const pathId = (params: EndpointRequest['params'], name: string): Id => {
  const id = params?.[name];
  const isUsable = typeof id === 'string' ? isPathText(id) : Number.isSafeInteger(id) && Number(id) >= 0;
  if (id === undefined || !isUsable) {
    throw serviceError('invalid_input', 'invalid_input', {
      field: name,
      issue: 'must be a whole number, 0 or more, or an id as the service gave it',
    });
  }
  return id;
};

export const fillPath = (path: string, params: EndpointRequest['params']): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(pathId(params, name)));

/** The setting `names`: query parameters whose names differ from ours. `contacts.page` is for one search alone. */
export type Names = Readonly<Record<string, string>>;

export const wireName = (names: Names, search: string | undefined, name: string): string =>
  names[`${search ?? ''}.${name}`] ?? names[name] ?? name;

/** JSON in which ids that are strings only because of their length are integers, as in the contract. */
const withLongIds = (written: string): string =>
  written.replace(/"(\d{16,})"/g, (quoted, digits: string) =>
    Number.isSafeInteger(Number(digits)) ? quoted : digits,
  );

export const planEndpoint = (
  name: EndpointName,
  { names = {}, prefixes = usualPrefixes }: { readonly names?: Names; readonly prefixes?: Prefixes } = {},
) => {
  const { method, response, sentences, search, hasIdsInBody, ...parts } = declarations[name];
  const path = wirePath(parts.path, prefixes);
  const hasParams = path.includes('{');
  return {
    name,
    method,
    kind: repeatKinds[method],
    scope: wireScope(parts.scope, prefixes),
    scopeNames: scopeNames(prefixes),
    response,
    sentences,
    isOfRecord: hasParams,
    /** Throws `invalid_input` for an id that no path can have. Whoever makes a call has checked the rest. */
    wire({ params: ids, query = {}, body }: EndpointRequest) {
      const params: Record<string, string | number> = {};
      for (const [own, value] of Object.entries(query))
        if (value !== undefined) params[wireName(names, search, own)] = value;
      const url = hasParams ? fillPath(path, ids) : path;
      const written = body === undefined ? undefined : JSON.stringify(body);
      const data = hasIdsInBody && written ? withLongIds(written) : written;
      return { id: ids && Object.values(ids)[0], outgoing: { method, url, params, data } };
    },
  };
};

/** A deeper answer is hostile: code that clones or prints it later recurses on the stack. */
const deepestAnswer = 64;
/** Of more values, even small ones, the event loop would be blocked for seconds; the largest page has a few thousand. */
const mostValues = 200_000;

/** Whether an answer has more levels or values than an honest one. */
const isTooMuch = (text: string): boolean => {
  let depth = 0;
  let values = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (quoted) {
      if (char === 0x5c) at++;
      else if (char === 0x22) quoted = false;
    } else if (char === 0x22) quoted = true;
    else if (char === 0x7b || char === 0x5b) {
      if (++depth > deepestAnswer) return true;
    } else if (char === 0x7d || char === 0x5d) depth--;
    else if (char === 0x2c && ++values > mostValues) return true;
  }
  return false;
};

/** The strings and numbers of a JSON text (RFC 8259, sections 6 and 7). */
const literals = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;
const longInteger = /^-?\d{16,}$/;

/** The JSON text in which every integer that a number would round is a string. */
const quoteLongIntegers = (text: string): string =>
  text.replaceAll(literals, (literal) =>
    longInteger.test(literal) && !Number.isSafeInteger(Number(literal)) ? `"${literal}"` : literal,
  );

/** Sixteen digits in a row: without them, nothing was rounded. */
const mayBeRounded = /\d{16}/;

/** The value of a JSON text, with exact integers; undefined when the text is not valid or has too much in it. */
const parse = (text: string): unknown => {
  if (text.length > 2 * deepestAnswer && isTooMuch(text)) return undefined;
  const value = tried(() => JSON.parse(text) as unknown);
  return value !== undefined && mayBeRounded.test(text) ? JSON.parse(quoteLongIntegers(text)) : value;
};

/** The result of an attempt: what happened, and the error to end with. */
export interface Assessment {
  readonly happened: Happened;
  readonly data?: unknown;
  /** What the answer says, where it says something. */
  readonly failure?: ServiceError;
  /** A word or two for the sentence of an unclear failure. */
  readonly reason: ReasonWord;
  readonly status?: number;
}

const done: Happened = { what: 'done' };
const isServiceCode = (code: string): code is ServiceCode => Object.hasOwn(serviceCodes, code);

/** `version_mismatch` is a 400 too, but a 400 without that code is `invalid_request` (contract, *Errors*). */
const codeOfStatus = (status: number): ServiceCode => {
  const found = (Object.keys(serviceCodes) as ServiceCode[]).find(
    (code) => serviceCodes[code].status === status,
  );
  return found ?? (status >= 500 ? 'internal_error' : 'invalid_request');
};

/** A code of ours says what we did, such as `cancelled`: the service cannot say it for us. */
const isOwnCode = (code: string): boolean => (ownCodes as readonly string[]).includes(code);

const sentenceFor = (plan: Plan, code: Code, detail: string): [ErrorKey, MessageValues?] => {
  if (!isServiceCode(code)) return ['other_code', { code }];
  switch (code) {
    case 'invalid_request':
      return detail === '' ? ['invalid_request_plain'] : [code, { detail }];
    case 'forbidden':
      return [code, { scope: plan.scopeNames.exec(detail)?.[0] ?? plan.scope }];
    case 'not_found':
      return [plan.sentences?.not_found ?? (plan.isOfRecord ? code : 'not_found_path')];
    case 'conflict':
      return [plan.sentences?.conflict ?? 'conflict_other'];
    default:
      return [code];
  }
};

/** A gateway knows neither scopes nor contacts, so the sentence names the API key and the address first. */
const bareSentences: Partial<Record<ServiceCode, ErrorKey>> = {
  forbidden: 'forbidden_bare',
  unauthorized: 'unauthorized_bare',
  not_found: 'not_found_bare',
  rate_limited: 'rate_limited_bare',
  payload_too_large: 'payload_too_large_bare',
};

const failureOf = (plan: Plan, said: Code, status: number, more: Partial<Problem>): ServiceError => {
  const code = isOwnCode(said) ? codeOfStatus(status) : said;
  const [key, values] = sentenceFor(plan, code, more.detail ?? '');
  return serviceError(code, key, values, { status, ...more }, { hasProblemBody: true });
};

const bareFailure = ({ scope }: Plan, status: number): ServiceError => {
  const code = codeOfStatus(status);
  return serviceError(code, bareSentences[code] ?? 'refused_bare', { scope, status }, { status });
};

const texts = ['title', 'detail', 'traceId', 'instance', 'type'] as const;

/** A body without `retryable` but with a code of the contract: enough for a 4xx, which is final. */
const isPartOfProblem = (body: unknown): body is Record<string, unknown> & { code: ServiceCode } =>
  isRecord(body) && typeof body['code'] === 'string' && isServiceCode(body['code']);

const problemFields = (body: Record<string, unknown>): Partial<Problem> => {
  const fields: Partial<Problem> = {};
  if (typeof body['retryable'] === 'boolean') fields.retryable = body['retryable'];
  for (const name of texts) {
    const value = body[name];
    if (typeof value === 'string') fields[name] = value;
  }
  if (body['details'] !== undefined) fields.details = body['details'];
  return fields;
};

const unfit = (status: number, key: ErrorKey, reason: ReasonWord): Assessment => ({
  happened: { what: 'refused', status },
  failure: serviceError('invalid_response', key, { reason }, { status }),
  reason,
});

const saysNothing = (text: string): boolean => ['', 'null'].includes(text.trim());

/** Where only an id is expected, the answer may be empty: after an update, that id is known. */
const withoutBody = ({ kind, response }: Plan, id: Id | undefined): unknown => {
  if (response !== idResult) return undefined;
  return kind === 'replace' ? { id } : {};
};

/** For a write, any 2xx is a success. */
const assessSuccess = (
  plan: Plan,
  id: Id | undefined,
  status: number,
  text: string | undefined,
): Assessment => {
  // A user who reads "check the address" about a text that was sent would send it again.
  const unread = (reason: ReasonWord, key: ErrorKey = 'invalid_response'): Assessment =>
    unfit(status, plan.kind === 'read' ? key : 'unreadable_success', reason);
  const body = parse(text ?? '');
  // A problem is no result, even in a 200, which the contract rules out. Few answers have the field, so few pay for the schema.
  if (isRecord(body) && 'retryable' in body && problemBody.safeParse(body).success)
    return unread({ reason: 'another_shape' });
  if (plan.kind === 'delete') return { happened: done, data: body, reason: '' };
  if (text === undefined) return unread({ reason: 'too_large' }, 'answer_too_large');
  const known = saysNothing(text) ? withoutBody(plan, id) : undefined;
  if (known !== undefined) return { happened: done, data: known, reason: '' };
  if (body === undefined) return unread({ reason: text === '' ? 'empty' : 'not_json' });
  const checked = plan.response.safeParse(body);
  if (checked.success) return { happened: done, data: checked.data, reason: '' };
  const field = checked.error.issues[0]?.path.map(String).join('.') ?? '';
  return unread(field === '' ? { reason: 'another_shape' } : `in ${field}`);
};

const happenedAt = (
  status: number,
  problem: { readonly retryable: boolean } | undefined,
  retryAfter: number | undefined,
): Happened => {
  if (status === 401) return { what: 'unauthorized' };
  if (status === 429) return { what: 'limited', retryAfter };
  if (problem) return { what: 'problem', status, retryable: problem.retryable };
  return status >= 500 ? { what: 'gateway' } : { what: 'refused', status };
};

/** Shorter secrets, and plain words such as `token` or `key`, may stand in an honest answer. */
const secretLength = 16;
const isTelling = (secret: string): boolean =>
  secret.length >= 8 || (secret.length >= 4 && /[^a-z]/i.test(secret));

/** A careless service may echo what it was sent; some escape every slash. */
const withoutSecrets = (text: string, secrets: readonly string[]): string => {
  let said = text;
  for (const secret of secrets) {
    said = said.replaceAll(secret, '…');
    if (secret.includes('/')) said = said.replaceAll(secret.replaceAll('/', '\\/'), '…');
  }
  return said;
};

/** Decides what an answer means. `secrets` are removed from it, in case the service echoes them. */
export const assess = (
  plan: Plan,
  id: Id | undefined,
  result: Result,
  clock: Pick<Clock, 'now'>,
  secrets: readonly string[],
): Assessment => {
  if (result.state !== 'answered') return { happened: { what: result.state }, reason: result.reason };
  const { status } = result;
  if (status >= 200 && status < 300) {
    const long = secrets.filter(({ length }) => length >= secretLength);
    return assessSuccess(plan, id, status, result.text && withoutSecrets(result.text, long));
  }
  if (status < 400) return unfit(status, 'redirect', `HTTP ${String(status)}`);
  if (status >= 600) return unfit(status, 'invalid_response', `HTTP ${String(status)}`);

  const body = parse(withoutSecrets(result.text ?? '', secrets.filter(isTelling)));
  const problem = problemBody.safeParse(body).data;
  const reason = `HTTP ${String(status)}`;
  const said = problem ?? (status < 500 && isPartOfProblem(body) ? body : undefined);
  const retryAfter = readRetryAfter(result.retryAfter, clock.now(), result.date);
  const happened = happenedAt(status, said && { retryable: problem?.retryable === true }, retryAfter);
  if (said)
    return { happened, failure: failureOf(plan, said.code, status, problemFields(said)), reason, status };
  return { happened, ...(status < 500 && { failure: bareFailure(plan, status) }), reason, status };
};

export const endAs = (
  as: Extract<Decision, { do: 'fail' }>['as'],
  { happened, failure, reason, status }: Assessment,
  attempts: number,
): ServiceError => {
  if (as === 'answered' && failure) return failure.after(attempts);
  const more = { attempts, ...(status !== undefined && { status }) };
  const isGateway = happened.what === 'gateway' || happened.what === 'refused';
  if (as === 'outcome_unknown')
    return serviceError(as, isGateway ? 'outcome_unknown_bare' : as, { reason }, more);
  if (happened.what !== 'unreached')
    return serviceError('network_error', isGateway ? 'read_failed_bare' : 'read_failed', { reason }, more);
  return isOfProxy(reason)
    ? serviceError('network_error', 'unreached_proxy', { reason, setting: { setting: 'proxy' } }, more)
    : serviceError('network_error', 'unreached', { reason }, more);
};
