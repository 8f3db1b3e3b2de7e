import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { SignInRefusal } from '../../lib/auth/authorization';
import { VaultAway } from '../../lib/auth/vault';
import { second } from '../../lib/durations';
import { isNothing, isRecord } from '../../lib/kinds';
import { late, systemClock, within } from '../../lib/service/clock';
import type { Log } from '../../lib/runtime/log';
import { invalidInput, ownWords, plainCode } from '../../lib/runtime/errors';
import { type Words, wordsIn } from '../../lib/runtime/language';
import { ServiceError, type Problem } from '../../lib/service/errors';
import type english from '../../locales/en-US/runtime.json';

type Mount = (path: string, ...handlers: RequestHandler[]) => unknown;

/** Adds routes to the admin API. */
export type Mounts = Readonly<Record<'get' | 'post' | 'delete' | 'use', Mount>>;

/** The words in the language of the request: the editor's, or the browser's. */
export const wordsForRequest = (request: Request): Words => wordsIn(...request.acceptsLanguages());

/** An answer to the editor with an error status. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly key: `refused.${keyof (typeof english)['refused']}` | `page.${SignInRefusal}.text`,
  ) {
    super(key);
  }
}

/** A request of the editor or of a program, and what its user may see. */
export interface Exchange {
  readonly log: Log;
  readonly request: Request;
  readonly response: Response;
  /** Whether the user may read what the service said. */
  readonly mayWrite: boolean;
  /** Removes from an answer what nobody may see. */
  readonly hide?: (answer: unknown) => unknown;
}

/** Milliseconds that somebody waits for a store, which may be unavailable for long. */
export const mostPatient = 8 * second;

export const soon = async <T>(work: T | Promise<T>): Promise<T> => {
  const done = await within(systemClock, mostPatient, Promise.resolve(work));
  if (done === late) throw new Refused(503, 'refused.storeAway');
  return done;
};

const asItIs = (answer: unknown): unknown => answer;

/** Answers with the result of the work, as JSON. */
export const reply = async (exchange: Exchange, work: () => unknown): Promise<void> => {
  try {
    const result = await work();
    const { response, hide = asItIs } = exchange;
    response.set('Cache-Control', 'no-store').json(hide(result));
  } catch (fault) {
    try {
      replyFault(exchange, fault);
    } catch (another) {
      // `hide` cannot search a form with thousands of levels. Uncaught, this would end Node-RED.
      replyFault(exchange, another);
    }
  }
};

/** The failure of a request to the service, as the user may see it. */
const answerTo = ({ code, ...problem }: Problem, words: Words, mayWrite: boolean): object => {
  if (mayWrite) return { code, message: words.problem({ code, ...problem }) };
  const own = ownWords({ code, ...problem });
  const plain = plainCode(code);
  return { code: plain, message: own ? words.problem(own) : (words.find(`failed.${plain}`) ?? plain) };
};

export const replyFault = (
  { log, request, response, mayWrite, hide = asItIs }: Exchange,
  fault: unknown,
): void => {
  const words = wordsForRequest(request);
  if (fault instanceof Refused) {
    response.status(fault.status).json({ message: words.say(fault.key) });
  } else if (fault instanceof VaultAway) {
    response.status(503).json({ message: words.say('refused.storeAway') });
  } else if (fault instanceof ServiceError) {
    response
      .status(fault.code === 'network_error' ? 502 : 400)
      .json(hide(answerTo(fault.problem, words, mayWrite)));
  } else {
    log.error(`A request from the editor failed: ${fault instanceof Error ? fault.message : String(fault)}`);
    response.status(500).json({ message: words.say('refused.fault') });
  }
};

/** No form is larger. To look for variables in several megabytes would stop Node-RED for seconds. */
const mostBytes = 100_000;

/**
 * Another site's page can make a browser post a form or an empty body, but not JSON. Programs send no `Origin` header,
 * and may leave the type of an empty body out.
 */
export const smallJsonOnly = (request: Request, response: Response, next: NextFunction): void => {
  const {
    'content-length': length,
    'content-type': type,
    'content-encoding': coding,
    origin,
  } = request.headers;
  const isEmpty = !type && !Number(length ?? 0);
  /** The length of a compressed body says nothing about what is in it. */
  const sizeOf = (): number =>
    length === undefined || coding !== undefined ? JSON.stringify(request.body ?? '').length : Number(length);
  const refuse = (status: number, key: Refused['key']): void => {
    response.status(status).json({ message: wordsForRequest(request).say(key) });
  };
  if (!request.is('application/json') && !(isEmpty && origin === undefined)) refuse(415, 'refused.notJson');
  else if (sizeOf() > mostBytes) refuse(413, 'refused.tooLarge');
  else next();
};

const bodyOf = (request: Request): Readonly<Record<string, unknown>> => {
  const body: unknown = request.body;
  return isRecord(body) ? body : {};
};

export const field = (request: Request, name: string): unknown =>
  Object.hasOwn(bodyOf(request), name) ? bodyOf(request)[name] : undefined;

/** A parameter of the query; empty where it is missing, or comes as a list or an object. */
export const textIn = ({ query }: Request, name: string): string => {
  const value = query[name];
  return typeof value === 'string' ? value : '';
};

export const numberIn = (request: Request, name: string, fallback: number, most: number): number => {
  const value = Math.floor(Number(textIn(request, name)));
  return value >= 1 ? Math.min(value, most) : fallback;
};

/** The advisor's key, chosen by the integrator; `default` when none is given. */
export const advisorKey = (given: unknown): string => {
  if (isNothing(given)) return 'default';
  const key = typeof given === 'string' ? given.trim() : '';
  if (key === '' || key.length > 200) {
    throw invalidInput('advisor_kind');
  }
  return key;
};
