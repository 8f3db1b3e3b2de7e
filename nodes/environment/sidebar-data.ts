import { largestPage } from '../../lib/contract-values';
import type { Request, Response } from 'express';
import { consentOf } from '../../lib/consent/consent';
import { countPaused } from '../../lib/outbox/removed-nodes';
import {
  activityOf,
  pageIn,
  sentenceOf,
  type Activity,
  type ActivityQuery,
  type FailureRecord,
} from '../../lib/runtime/activity';
import { sumOfPending } from '../../lib/outbox/queue-reader';
import { processMemory } from '../../lib/process-memory';
import {
  changedTopic,
  type AdvisorItem,
  type ChangeNews,
  type Listed,
  type ServiceState,
  type WaitItem,
} from '../../lib/runtime/activity-items';
import type { Gauges } from '../../lib/runtime/metrics';
import { lastFour } from '../../lib/runtime/log';
import { ownWords, plainCode, problemOf } from '../../lib/runtime/errors';
import type { Red } from '../../lib/runtime/red';
import { elapsedBy, late, systemClock, within } from '../../lib/service/clock';
import { phoneNumber } from '../../lib/texting/recipients';
import { serviceOf } from './config';
import { isOf, type RunningEnvironment } from './environment';
import type { RouteRequest } from './form';
import { mostPatient, numberIn, Refused, soon, textIn, wordsForRequest } from './reply';
import { runningOf } from './running';
import { nodeId, runningIn as runningNodes, savedNodes } from './saved-nodes';
import { second } from '../../lib/durations';

const leastInterval = second;
/** Milliseconds for which the store may be failing before the health check fails. */
const troubleAllowedFor = 30 * second;

interface Announcing {
  readonly comms?: { publish(topic: string, data: unknown, retain?: boolean): void };
}

const announcers = processMemory('listeners', new WeakMap<Red, (environment: string) => void>());

/** Notifies the editors at most once a second; a visible sidebar then reads the routes of these environments. */
const announcerIn = (RED: Red): ((environment: string) => void) => {
  let lastTime = -Infinity;
  let isDue = false;
  // A process that was started later starts with a later number, so that editors notice the gap.
  let number = Date.now();
  let changed = new Set<string>();
  let before = new Set<string>();
  const schedule = (): void => {
    if (isDue) return;
    isDue = true;
    const rest = lastTime + leastInterval - elapsedBy(systemClock);
    systemClock.after(Math.max(rest, 0), publish);
  };
  const publish = (): void => {
    isDue = false;
    lastTime = elapsedBy(systemClock);
    // A change may be saved only a moment later, so it is announced once more.
    const news: ChangeNews = { number: ++number, environments: [...new Set([...changed, ...before])] };
    before = changed;
    changed = new Set();
    // The message is retained: an editor that connects later sees by its number whether it has missed something.
    (RED as Announcing).comms?.publish(changedTopic, news, true);
    if (before.size > 0) schedule();
  };
  return (environment) => {
    changed.add(environment);
    schedule();
  };
};

/** Announces that something of this environment has changed. */
export const announcerOf = (RED: Red, environment: string): (() => void) => {
  const announce = announcers.get(RED) ?? announcerIn(RED);
  announcers.set(RED, announce);
  return () => announce(environment);
};

/** For load balancers: whether incoming messages can be saved. */
export const health = (RED: Red, response: Response): void => {
  const isWell = [...runningOf(RED)].every(({ troubledFor }) => troubledFor < troubleAllowedFor);
  response
    .status(isWell ? 200 : 503)
    .set('Cache-Control', 'no-store')
    .json({ status: isWell ? 'ok' : 'unavailable' });
};

export const runningIn = ({ form }: RouteRequest): RunningEnvironment => {
  if (!form.running) throw new Refused(404, 'refused.notRunning');
  return form.running;
};

const activityIn = (asked: RouteRequest): Activity => activityOf(runningIn(asked));

/** The name is left out too: with it, the last four digits would identify a person. */
const masked = <T extends { readonly phone: string | null }>(item: T): T => {
  const { name: _, ...rest } = item as T & { readonly name?: string };
  return { ...rest, phone: item.phone === null ? null : lastFour(item.phone) } as unknown as T;
};

/** A failure without anything that the service said. */
const maskedFailure = (failure: FailureRecord): FailureRecord => {
  const { problem, ...rest } = masked(failure);
  const code = plainCode(failure.code);
  const own = problem && ownWords({ ...problem, code: failure.code });
  return { ...rest, code, detail: null, traceId: null, ...(own && { problem: own }) };
};

/** A number in the notation of its country is first searched in E.164, by key, and then by its digits. */
const waitsFound = async (
  activity: Activity,
  wanted: ActivityQuery,
  country: string,
): Promise<Listed<WaitItem>> => {
  const phone = phoneNumber(wanted.phone, country) ?? phoneNumber(`+${wanted.phone ?? ''}`, country);
  const found = phone === undefined ? undefined : await activity.waits({ ...wanted, phone });
  return found && found.data.length > 0 ? found : activity.waits(wanted);
};

const states = ['queued', 'held', 'sending'] as const;

export const pageAsked = (request: Request): { readonly page: number; readonly pageSize: number } => ({
  page: numberIn(request, 'page', 1, 1_000_000),
  pageSize: numberIn(request, 'pageSize', 50, largestPage),
});

/** Advisors who have to act come first. */
export const advisorsIn = (
  { request }: RouteRequest,
  advisors: readonly AdvisorItem[],
): readonly AdvisorItem[] | Listed<AdvisorItem> => {
  if (request.query['page'] === undefined) return advisors;
  const isWell = ({ state }: AdvisorItem): number => Number(state === 'authorized');
  const sorted = advisors.toSorted((one, other) => isWell(one) - isWell(other));
  return pageIn(sorted, pageAsked(request));
};

/**
 * A page of the activity. Without the permission to write, numbers show their last four digits, what the service said
 * is left out, and a search finds nothing.
 */
export const readActivity = async (
  what: 'waits' | 'queue' | 'lists' | 'failures',
  asked: RouteRequest,
): Promise<object> => {
  const activity = activityIn(asked);
  const { request, mayWrite, form } = asked;
  const { page, pageSize } = pageAsked(request);
  if (what === 'lists') return soon(activity.lists({ page, pageSize }));
  const phone = textIn(request, 'phone');
  if (phone !== '' && !mayWrite) return pageIn([], { page, pageSize });
  const advisor = textIn(request, 'advisor');
  const wanted: ActivityQuery = { page, pageSize, phone, ...(advisor !== '' && { advisor }) };
  const shown = <T extends { readonly phone: string | null }>(data: readonly T[]): readonly T[] =>
    mayWrite ? data : data.map(masked);
  if (what === 'waits') {
    const country = form.running?.settings.country ?? '';
    const found = await soon(waitsFound(activity, wanted, country));
    return { ...found, data: shown(found.data) };
  }
  if (what === 'queue') {
    const state = states.find((each) => each === textIn(request, 'state'));
    const found = await soon(activity.queue(state === undefined ? wanted : { ...wanted, state }));
    return { ...found, data: shown(found.data) };
  }
  const { data: all, pageInfo } = await soon(activity.failures(wanted, textIn(request, 'gathered') !== ''));
  const failures = mayWrite ? all : all.map(maskedFailure);
  const data = failures.map(({ problem: _, ...failure }) => failure);
  return { data, pageInfo, ...failuresInWords(failures, request) };
};

/** The codes whose words are those of a status that lasts until somebody acts. */
const wordsOfOthers = new Map([
  ['authorization_required', 'status.notAuthorized'],
  ['not_configured', 'status.notConfigured'],
]);

/** The short words for the codes of these failures, and the sentence of each failure. */
const failuresInWords = (
  failures: readonly FailureRecord[],
  request: Request,
): { readonly codes: Record<string, string>; readonly advice: readonly (string | null)[] } => {
  const words = wordsForRequest(request);
  const codes = new Set(failures.map(({ code }) => code));
  const wordOf = (code: string): string =>
    words.find(`failed.${code}`) ?? words.say(wordsOfOthers.get(code) ?? 'failed.other');
  return {
    codes: Object.fromEntries([...codes].map((code) => [code, wordOf(code)])),
    advice: failures.map((failure) => sentenceOf(failure, words)),
  };
};

export const gaugesOf = (environment: RunningEnvironment): Gauges => {
  const activity = activityOf(environment);
  return {
    environment: environment.id,
    waits: () => activity.waitCount(),
    queue: () => activity.queueLength(),
    lateBy: async () => (await consentOf(environment)).lateBy,
  };
};

/** The state of the service and the store. */
export const serviceState = async (RED: Red, asked: RouteRequest): Promise<ServiceState> => {
  const { request, mayWrite } = asked;
  const running = runningIn(asked);
  const { clock, trouble = null } = running;
  const service = serviceOf(running.values) ?? null;
  const until = Math.max(...running.uses().map((each) => each.pausedUntil));
  const open = trouble === null ? await within(systemClock, mostPatient, stateIn(RED, running)) : late;
  return {
    service,
    pausedUntil: until > clock.now() ? until : null,
    ...(open === late ? unopened : open),
    trouble,
    isStoreLost: running.isStoreLost,
    fault: faultIn(running, request),
    clock: service === 'simulator' ? clock.now() : null,
    mayWrite,
  };
};

/** The sentence about what the environment lacks; null when it lacks nothing. */
const faultIn = (environment: RunningEnvironment, request: Request): string | null => {
  try {
    environment.advisors();
    return null;
  } catch (fault) {
    const problem = problemOf(fault);
    return problem.code === 'not_configured' ? wordsForRequest(request).problem(problem) : null;
  }
};

type StoreState = Pick<ServiceState, 'store' | 'lateBy' | 'queued' | 'left' | 'paused'>;

const unopened: StoreState = { store: null, lateBy: 0, queued: null, left: null, paused: 0 };

/** Where the state is kept, and how late polls are. An environment that is not configured has neither. */
const stateIn = async (RED: Red, environment: RunningEnvironment): Promise<StoreState> => {
  try {
    const consents = await Promise.all(environment.uses().map((each) => consentOf(each)));
    const lateBy = Math.max(...consents.map((consent) => consent.lateBy));
    const store = await environment.store();
    const { engine, peers } = store;
    const { pageInfo } = await activityOf(environment).queue({ page: 1, pageSize: 1 });
    return {
      lateBy,
      store: peers ? 'postgres' : engine.durable ? 'embedded' : 'memory',
      queued: pageInfo.totalRecord,
      left: (await environment.leftInFile()) ?? null,
      // In a database, they may be for nodes that run in other processes.
      paused: peers ? 0 : await countPaused(store, new Set(runningNodes(savedNodes(RED)).map(nodeId))),
    };
  } catch {
    return unopened;
  }
};

const idIn = ({ request }: RouteRequest): string => request.params['id'] ?? '';

const done = (asked: RouteRequest, isDone: boolean): object => {
  if (!isDone) throw new Refused(404, 'refused.noSuchItem');
  return { id: idIn(asked) };
};

export const checkWait = async (asked: RouteRequest): Promise<object> =>
  done(asked, await soon(activityIn(asked).check(idIn(asked))));

export const cancelItem = async (kind: 'w' | 'q' | 'l', asked: RouteRequest): Promise<object> =>
  done(asked, await soon(activityIn(asked).cancel(idIn(asked), [kind])));

/** The number of people who are named. */
const mostNames = 3;

/**
 * What is cancelled when the environment is pointed to another service: how much, how many waits among it, and some of
 * those who wait. With `node`, that of the named nodes or subflow instances.
 */
export const pendingIn = async ({ form, request, mayWrite }: RouteRequest): Promise<object> => {
  const { node } = request.query;
  const ids = node === undefined ? undefined : [node].flat().filter((id) => typeof id === 'string');
  const { running } = form;
  const uses = running?.uses() ?? [];
  const { items, waits } = sumOfPending(await soon(Promise.all(uses.map((each) => each.pending(ids)))));
  const found = running && waits > 0 ? await soon(activityOf(running).waitsOf(isOf(ids), mostNames)) : [];
  const people = (mayWrite ? found : found.map(masked)).map(
    ({ name, phone, memberId }) => name ?? phone ?? String(memberId),
  );
  return { count: items + waits, waits, people };
};
