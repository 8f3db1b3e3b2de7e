import { reasons } from './exchange';
import type { Result } from './exchange';
import { failure } from './messages';
import type { MessageKey, MessageValues } from './messages';
import type { Plan } from './plan';
import { serviceCodes } from './problems';
import type { Code, Problem, ServiceCode, ServiceError } from './problems';
import { readRetryAfter } from './retry';
import type { Decision, Happened } from './retry';
import { goesDeeper } from './shape';

/** The service's word, ready to become an error. */
interface Told {
  readonly code: Code;
  readonly key: MessageKey;
  readonly values?: MessageValues;
  readonly more: Partial<Problem>;
  readonly hasProblemBody?: boolean;
}

/** An attempt, judged: what happened, and what to say should it end there. */
export interface Assessment {
  readonly happened: Happened;
  readonly data?: unknown;
  readonly told?: Told;
  /** A word or two for the sentence of an unclear failure. */
  readonly reason: string;
  readonly status?: number;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (body: unknown): body is Fields => typeof body === 'object' && body !== null;

const done: Happened = { what: 'done' };
/** Deeper answers are hostile: what clones or prints them later goes down level by level, on the stack. */
const deepest = 64;
/** Up to here even the deepest text is parsed in no time, and what came of it is quicker to look through. */
const quickToParse = 256 * 1024;

const isTooDeep = (text: string): boolean => {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (quoted) {
      if (char === 0x5c) at++;
      else if (char === 0x22) quoted = false;
    } else if (char === 0x22) quoted = true;
    else if (char === 0x7b || char === 0x5b) {
      if (++depth > deepest) return true;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return false;
};

/** The value of a JSON text; undefined, which JSON cannot say, when it is not one. */
const parse = (text: string): unknown => {
  if (text.length > quickToParse && isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** What was parsed from a text, unless it is too deep. */
const shallow = (value: unknown, text: string): unknown =>
  isFields(value) && text.length > 2 * deepest && goesDeeper(value, deepest) ? undefined : value;

const parseShallow = (text: string): unknown => shallow(parse(text), text);

const isServiceCode = (code: string): code is ServiceCode => Object.hasOwn(serviceCodes, code);

/** version_mismatch is a 400 too, but a 400 that does not say so is an invalid request. */
const codeOfStatus = (status: number): ServiceCode => {
  const found = (Object.keys(serviceCodes) as ServiceCode[]).find(
    (code) => serviceCodes[code].status === status,
  );
  return found ?? 'invalid_request';
};

const scopeName = /\b(?:core|text)(?:\.[a-z]+)+\b|\boffline_access\b|\bopenid\b/;

const sentence = (plan: Plan, code: Code, detail: string): Pick<Told, 'key' | 'values'> => {
  if (!isServiceCode(code)) return { key: 'other_code', values: { code } };
  switch (code) {
    case 'invalid_request':
      return detail === '' ? { key: 'invalid_request_plain' } : { key: code, values: { detail } };
    case 'forbidden':
      return { key: code, values: { scope: scopeName.exec(detail)?.[0] ?? plan.scope } };
    case 'not_found':
      return { key: plan.name === 'getConsent' ? 'not_found_phone' : code };
    case 'conflict':
      return { key: plan.name === 'requestConsent' ? code : 'conflict_other' };
    default:
      return { key: code };
  }
};

/** A gateway knows neither scopes nor contacts: the API key and the address come before anything else. */
const bareSentence = (plan: Plan, code: ServiceCode, status: number): Pick<Told, 'key' | 'values'> => {
  switch (code) {
    case 'forbidden':
      return { key: 'forbidden_bare', values: { scope: plan.scope } };
    case 'unauthorized':
      return { key: 'unauthorized_bare' };
    case 'not_found':
      return { key: 'not_found_bare' };
    case 'rate_limited':
      return { key: 'rate_limited_bare' };
    case 'payload_too_large':
      return { key: 'payload_too_large_bare' };
    default:
      return { key: 'refused_bare', values: { status } };
  }
};

const tell = (plan: Plan, code: Code, status: number, more: Partial<Problem>): Told => ({
  code,
  ...sentence(plan, code, more.detail ?? ''),
  more: { status, ...more },
  hasProblemBody: true,
});

/** What a gateway or a firewall said in place of the service. */
const tellBare = (plan: Plan, status: number): Told => {
  const code = codeOfStatus(status);
  return { code, ...bareSentence(plan, code, status), more: { status } };
};

const texts = ['title', 'detail', 'traceId', 'instance', 'type'] as const;

/**
 * A problem body says at least its code and whether to retry. A gateway's own JSON does not, and must not pass for the
 * service's word on whether a text was sent.
 */
const isProblemBody = (body: unknown): body is Fields & { code: string; retryable: boolean } =>
  isFields(body) &&
  typeof body['code'] === 'string' &&
  body['code'] !== '' &&
  body['code'].length <= 100 &&
  typeof body['retryable'] === 'boolean';

/** Short of its word on retrying, but in the service's own vocabulary: for a 4xx, which settles it, that will do. */
const isPartOfProblem = (body: unknown): body is Fields & { code: ServiceCode } =>
  isFields(body) && typeof body['code'] === 'string' && isServiceCode(body['code']);

const problemFields = (body: Fields): Partial<Problem> => {
  const fields: Partial<Problem> = {};
  if (typeof body['retryable'] === 'boolean') fields.retryable = body['retryable'];
  for (const name of texts) {
    const value = body[name];
    if (typeof value === 'string') fields[name] = value;
  }
  if (body['details'] !== undefined) fields.details = body['details'];
  return fields;
};

const unfit = (status: number, key: MessageKey, reason: string): Assessment => ({
  happened: { what: 'refused', status },
  told: { code: 'invalid_response', key, values: { reason }, more: { status } },
  reason,
});

/** Any 2xx is a success for a write; an update says nothing we did not know, so it may be empty. */
const assessSuccess = (
  plan: Plan,
  id: number | undefined,
  status: number,
  text: string | undefined,
): Assessment => {
  if (plan.kind === 'delete') return { happened: done, data: parseShallow(text ?? ''), reason: '' };
  // Whoever reads "check the address" of a text that went out sends it again.
  const unread = (reason: string, key: MessageKey = 'invalid_response'): Assessment =>
    unfit(status, plan.kind === 'once' ? 'unreadable_success' : key, reason);
  if (text === undefined) return unread(reasons.tooLarge, 'answer_too_large');
  if (text === '' && plan.kind === 'replace') return { happened: done, data: { id }, reason: '' };
  const value = parse(text);
  if (plan.looksRight(value)) return { happened: done, data: value, reason: '' };
  const body = shallow(value, text);
  if (body === undefined) return unread(text === '' ? 'empty' : 'not JSON');
  const checked = plan.response.safeParse(body);
  if (checked.success) return { happened: done, data: checked.data, reason: '' };
  const field = checked.error.issues[0]?.path.map(String).join('.') ?? '';
  return unread(field === '' ? 'another shape' : `in ${field}`);
};

const happenedAt = (status: number, body: unknown, retryAfter: number | undefined): Happened => {
  if (status === 401) return { what: 'unauthorized' };
  if (status === 429) return { what: 'limited', retryAfter };
  if (isProblemBody(body)) return { what: 'problem', status, retryable: body.retryable };
  return status >= 500 ? { what: 'gateway' } : { what: 'refused', status };
};

/** Shorter ones may be words of an honest answer, a plain word also of an honest error: `token`, `key`. */
const secretLength = 16;
const isTelling = (secret: string): boolean =>
  secret.length >= 8 || (secret.length >= 4 && /[^a-z]/i.test(secret));

/** A careless service says back what it was sent; some write every slash with a backslash before it. */
const withoutSecrets = (text: string, secrets: readonly string[]): string => {
  let said = text;
  for (const secret of secrets) {
    said = said.replaceAll(secret, '…');
    if (secret.includes('/')) said = said.replaceAll(secret.replaceAll('/', '\\/'), '…');
  }
  return said;
};

/** From what came back to what it means. `secrets` are taken out of it, should the service echo them. */
export const assess = (
  plan: Plan,
  id: number | undefined,
  result: Result,
  now: number,
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

  const body = parseShallow(withoutSecrets(result.text ?? '', secrets.filter(isTelling)));
  const happened = happenedAt(status, body, readRetryAfter(result.retryAfter, now));
  const reason = `HTTP ${String(status)}`;
  if (isProblemBody(body)) {
    return { happened, told: tell(plan, body.code, status, problemFields(body)), reason, status };
  }
  if (status >= 500) return { happened, reason, status };
  if (isPartOfProblem(body)) {
    return { happened, told: tell(plan, body.code, status, problemFields(body)), reason, status };
  }
  return { happened, told: tellBare(plan, status), reason, status };
};

/** The error a call ends with. */
export const endAs = (
  as: Extract<Decision, { do: 'fail' }>['as'],
  { happened, told, reason, status }: Assessment,
  attempts: number,
): ServiceError => {
  if (as === 'answered' && told)
    return failure(
      told.code,
      told.key,
      told.values,
      { ...told.more, attempts },
      {
        hasProblemBody: told.hasProblemBody === true,
      },
    );
  const more = { attempts, ...(status !== undefined && { status }) };
  const isGateway = happened.what === 'gateway';
  if (as === 'outcome_unknown') return failure(as, isGateway ? 'outcome_unknown_bare' : as, { reason }, more);
  const failed = isGateway ? 'read_failed_bare' : 'read_failed';
  return failure('network_error', happened.what === 'unreached' ? 'unreached' : failed, { reason }, more);
};
