import type { z } from 'zod';
import type { Id } from './endpoints';
import type { Result } from './transport';
import { isRecord } from '../is-record';
import {
  type Code,
  serviceError,
  type ServiceErrorKey,
  type MessageValues,
  type Problem,
  type ReasonWord,
  type ServiceCode,
  serviceCodes,
  type ServiceError,
} from './errors';
import type { Plan } from './requests';
import { type Decision, type Happened, readRetryAfter } from './retry';
import { idResult } from './schemas';

/** Whether a value of JSON is an object or an array. */
const hasParts = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** A deeper answer is hostile: code that clones or prints it later recurses on the stack. */
const deepestAnswer = 64;
/** Characters: shorter texts are parsed quickly at any depth, and the value is then quicker to check than the text. */
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
      if (++depth > deepestAnswer) return true;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return false;
};

/** The value of a JSON text; undefined, which no JSON text gives, when it is not valid. */
const parse = (text: string): unknown => {
  if (text.length > quickToParse && isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

const isDigit = (char: number): boolean => char >= 0x30 && char <= 0x39;
const longInteger = /^-?\d{16,}$/;
/** All characters of a JSON number (RFC 8259, section 6). */
const inNumber = new Set(Array.from('0123456789+-.eE', (char) => char.charCodeAt(0)));

/** The JSON text in which every integer that a number would round is a string. */
const quoteLongIntegers = (text: string): string => {
  let written = '';
  let kept = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++)
        if (text.charCodeAt(at) === 0x5c) at++;
    } else if (char === 0x2d || isDigit(char)) {
      const from = at;
      while (inNumber.has(text.charCodeAt(at + 1))) at++;
      const number = text.slice(from, at + 1);
      if (!longInteger.test(number) || Number.isSafeInteger(Number(number))) continue;
      written += `${text.slice(kept, from)}"${number}"`;
      kept = at + 1;
    }
  }
  return written + text.slice(kept);
};

/** Sixteen digits in a row: without them, nothing was rounded. */
const mayBeRounded = /\d{16}/;

/** The value of a text, in which long integers are exact. */
const exact = (value: unknown, text: string): unknown =>
  hasParts(value) && mayBeRounded.test(text) ? parse(quoteLongIntegers(text)) : value;

const goesDeeper = (value: object, than: number): boolean => {
  if (than === 0) return true;
  for (const key in value) {
    const inner = (value as Readonly<Record<string, unknown>>)[key];
    if (hasParts(inner) && goesDeeper(inner, than - 1)) return true;
  }
  return false;
};

/** The value of a text, or undefined when it is nested too deeply. */
const shallow = (value: unknown, text: string): unknown =>
  hasParts(value) && text.length > 2 * deepestAnswer && goesDeeper(value, deepestAnswer) ? undefined : value;

const parseShallow = (text: string): unknown => shallow(exact(parse(text), text), text);

/** Whether a schema would certainly give the value back unchanged; false when in doubt. */
type Fit = (value: unknown) => boolean;

/** The parts of a schema's definition that are read here. */
interface Definition {
  readonly type: string;
  readonly format?: string;
  readonly checks?: readonly unknown[];
  readonly innerType?: Defined;
  readonly element?: Defined;
  readonly options?: readonly Defined[];
  readonly shape?: Readonly<Record<string, Defined>>;
  readonly out?: Defined;
  readonly catchall?: Defined;
}

interface Defined {
  readonly def: Definition;
}

/** What a field may hold. Plain values, which are nearly all of an answer, are checked inline. */
interface Rule {
  readonly text: boolean;
  readonly flag: boolean;
  readonly number: boolean;
  readonly whole: boolean;
  readonly null: boolean;
  readonly missing: boolean;
  readonly inside: Fit | undefined;
}

const nothing: Rule = {
  text: false,
  flag: false,
  number: false,
  whole: false,
  null: false,
  missing: false,
  inside: undefined,
};

const allows = (rule: Rule, value: unknown): boolean => {
  if (typeof value === 'string') return rule.text;
  if (typeof value === 'number')
    return (rule.number && Number.isFinite(value)) || (rule.whole && Number.isSafeInteger(value));
  if (typeof value === 'boolean') return rule.flag;
  if (value === null) return rule.null;
  if (value === undefined) return rule.missing;
  return rule.inside?.(value) ?? false;
};

/** Fields that the contract does not name may hold anything but deep nesting and integers that may be rounded. */
const deepest = 16;
const isDoubtful = (value: unknown, than: number): boolean => {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  if (typeof value !== 'object' || value === null) return false;
  if (than === 0) return true;
  for (const key in value) {
    if (isDoubtful((value as Readonly<Record<string, unknown>>)[key], than - 1)) return true;
  }
  return false;
};

const arrayOf = (element: Defined): Fit | undefined => {
  const rule = ruleOf(element);
  return (
    rule &&
    ((value) => {
      if (!Array.isArray(value)) return false;
      for (const item of value) if (!allows(rule, item)) return false;
      return true;
    })
  );
};

/** Keeps unknown fields except `__proto__`, which a schema leaves out. */
const looseObject = (shape: Readonly<Record<string, Defined>>): Fit | undefined => {
  const names = Object.keys(shape);
  const rules: Rule[] = [];
  for (const field of Object.values(shape)) {
    const rule = ruleOf(field);
    if (!rule) return undefined;
    rules.push(rule);
  }
  const places = new Map(names.map((name, place) => [name, place]));
  const required = rules.filter(({ missing }) => !missing).length;
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    let found = 0;
    let next = 0;
    for (const name in value) {
      const inner = (value as Readonly<Record<string, unknown>>)[name];
      // Fields mostly come in the contract's order, which saves looking up their names.
      if (names[next] !== name) next = places.get(name) ?? names.length;
      const rule = rules[next];
      if (rule) {
        next += 1;
        if (!allows(rule, inner)) return false;
        if (!rule.missing) found += 1;
      } else if (name === '__proto__') return false;
      else if (isDoubtful(inner, deepest)) return false;
    }
    return found === required;
  };
};

/** One of several plain types. */
const unionOf = (options: readonly Defined[]): Rule | undefined => {
  let union = nothing;
  for (const option of options) {
    const rule = ruleOf(option);
    if (!rule || rule.inside) return undefined;
    union = {
      text: union.text || rule.text,
      flag: union.flag || rule.flag,
      number: union.number || rule.number,
      whole: union.whole || rule.whole,
      null: union.null || rule.null,
      missing: union.missing || rule.missing,
      inside: undefined,
    };
  }
  return union;
};

const ruleOf = ({ def }: Defined): Rule | undefined => {
  const { type, innerType, element, shape, catchall } = def;
  if ((def.checks ?? []).length > 0) return undefined;
  if (type === 'string') return { ...nothing, text: true };
  if (type === 'boolean') return { ...nothing, flag: true };
  if (type === 'number' && def.format === 'safeint') return { ...nothing, whole: true };
  if (type === 'number' && def.format === undefined) return { ...nothing, number: true };
  if (type === 'union') return unionOf(def.options ?? []);
  // Preprocessing changes only values that do not fit yet.
  if (type === 'pipe') return def.out && ruleOf(def.out);
  const rule = innerType && ruleOf(innerType);
  if (type === 'nullable') return rule && { ...rule, null: true };
  if (type === 'optional') return rule && { ...rule, missing: true };
  const isLoose = type === 'object' && catchall?.def.type === 'unknown';
  const inside =
    type === 'array' && element ? arrayOf(element) : isLoose && shape ? looseObject(shape) : undefined;
  return inside && { ...nothing, inside };
};

/**
 * A quick check of an answer. A schema copies all that it checks, field by field, but nearly all answers are as the
 * contract says and need no change. An answer that this check does not accept goes through the schema, which decides
 * and says what is wrong.
 */
export const quickLook = (schema: z.ZodType): Fit => {
  const rule = ruleOf(schema);
  return (value) => rule !== undefined && allows(rule, value);
};

/** The quick check of each response schema. */
const fitsBySchema = new WeakMap<z.ZodType, Fit>();

const fitOf = (schema: z.ZodType): Fit => {
  const fit = fitsBySchema.get(schema) ?? quickLook(schema);
  fitsBySchema.set(schema, fit);
  return fit;
};

/** What is known of a failure, ready to become an error. */
interface Told {
  readonly code: Code;
  readonly key: ServiceErrorKey;
  readonly values?: MessageValues;
  readonly more: Partial<Problem>;
  readonly hasProblemBody?: boolean;
}

/** The result of an attempt: what happened, and the error to end with. */
export interface Assessment {
  readonly happened: Happened;
  readonly data?: unknown;
  readonly told?: Told;
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
  return found ?? 'invalid_request';
};

const sentenceFor = (plan: Plan, code: Code, detail: string): Pick<Told, 'key' | 'values'> => {
  if (!isServiceCode(code)) return { key: 'other_code', values: { code } };
  switch (code) {
    case 'invalid_request':
      return detail === '' ? { key: 'invalid_request_plain' } : { key: code, values: { detail } };
    case 'forbidden':
      return { key: code, values: { scope: plan.scopeNames.exec(detail)?.[0] ?? plan.scope } };
    case 'not_found':
      return { key: plan.sentences?.not_found ?? code };
    case 'conflict':
      return { key: plan.sentences?.conflict ?? 'conflict_other' };
    default:
      return { key: code };
  }
};

/** A gateway knows neither scopes nor contacts, so the sentence names the API key and the address first. */
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
  ...sentenceFor(plan, code, more.detail ?? ''),
  more: { status, ...more },
  hasProblemBody: true,
});

/** The failure of an answer that came from a gateway or a firewall, and not from the service. */
const tellBare = (plan: Plan, status: number): Told => {
  const code = codeOfStatus(status);
  return { code, ...bareSentence(plan, code, status), more: { status } };
};

const texts = ['title', 'detail', 'traceId', 'instance', 'type'] as const;

/**
 * A problem body has at least its code and `retryable` (contract, *Errors*; RFC 9457). The JSON of a gateway has
 * neither, and must not count as the service's word on whether a text was sent.
 */
const isProblemBody = (
  body: unknown,
): body is Record<string, unknown> & { code: string; retryable: boolean } =>
  isRecord(body) &&
  typeof body['code'] === 'string' &&
  body['code'] !== '' &&
  body['code'].length <= 100 &&
  typeof body['retryable'] === 'boolean';

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

const unfit = (status: number, key: ServiceErrorKey, reason: ReasonWord): Assessment => ({
  happened: { what: 'refused', status },
  told: { code: 'invalid_response', key, values: { reason }, more: { status } },
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
  if (plan.kind === 'delete') return { happened: done, data: parseShallow(text ?? ''), reason: '' };
  // A user who reads "check the address" about a text that was sent would send it again.
  const unread = (reason: ReasonWord, key: ServiceErrorKey = 'invalid_response'): Assessment =>
    unfit(status, plan.kind === 'read' ? key : 'unreadable_success', reason);
  if (text === undefined) return unread({ reason: 'too_large' }, 'answer_too_large');
  const known = saysNothing(text) ? withoutBody(plan, id) : undefined;
  if (known !== undefined) return { happened: done, data: known, reason: '' };
  const value = parse(text);
  if (fitOf(plan.response)(value)) return { happened: done, data: value, reason: '' };
  const body = shallow(exact(value, text), text);
  if (body === undefined) return unread({ reason: text === '' ? 'empty' : 'not_json' });
  const checked = plan.response.safeParse(body);
  if (checked.success) return { happened: done, data: checked.data, reason: '' };
  const field = checked.error.issues[0]?.path.map(String).join('.') ?? '';
  return unread(field === '' ? { reason: 'another_shape' } : `in ${field}`);
};

const happenedAt = (status: number, body: unknown, retryAfter: number | undefined): Happened => {
  if (status === 401) return { what: 'unauthorized' };
  if (status === 429) return { what: 'limited', retryAfter };
  if (isProblemBody(body)) return { what: 'problem', status, retryable: body.retryable };
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

/** The error that a call ends with. */
export const endAs = (
  as: Extract<Decision, { do: 'fail' }>['as'],
  { happened, told, reason, status }: Assessment,
  attempts: number,
): ServiceError => {
  if (as === 'answered' && told)
    return serviceError(
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
  if (as === 'outcome_unknown')
    return serviceError(as, isGateway ? 'outcome_unknown_bare' : as, { reason }, more);
  const failed = isGateway ? 'read_failed_bare' : 'read_failed';
  return serviceError(
    'network_error',
    happened.what === 'unreached' ? 'unreached' : failed,
    { reason },
    more,
  );
};
