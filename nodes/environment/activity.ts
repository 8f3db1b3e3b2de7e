import type { Request, Response } from 'express';
import { consentOf } from '../../lib/consent/consent';
import { activityOf, type Activity, type Asked as AskedPage, type Failure } from '../../lib/runtime/activity';
import { pausedUntil } from '../../lib/runtime/flow-node';
import type { Gauges } from '../../lib/runtime/metrics';
import { hideNumbers, lastFour } from '../../lib/runtime/log';
import type { Red } from '../../lib/runtime/red';
import { systemClock } from '../../lib/service/clock';
import type { Asked } from './admin-routes';
import type { RunningEnvironment } from './environment';
import { Refused, wordsFor } from './reply';
import { runningOf } from './running';

/** What every editor hears: that something has changed, and nothing of it. */
const topic = 'advisor-texting/changed';
const leastInterval = 1000;
/** How long the store may be in trouble before no more work is to be sent here. */
const patience = 30_000;
const largestPage = 200;

interface Announcing {
  readonly comms?: { publish(topic: string, data: unknown, retain?: boolean): void };
}

const announcers = new WeakMap<Red, () => void>();

/** Tells the editors at most once a second; they read the routes then, as far as anybody looks. */
export const announcerOf = (RED: Red): (() => void) => {
  const found = announcers.get(RED);
  if (found) return found;
  let lastTime = -Infinity;
  let isDue = false;
  const publish = (): void => {
    isDue = false;
    lastTime = systemClock.now();
    (RED as Announcing).comms?.publish(topic, {}, false);
  };
  const announce = (): void => {
    if (isDue) return;
    isDue = true;
    systemClock.after(
      Math.min(Math.max(lastTime + leastInterval - systemClock.now(), 0), leastInterval),
      publish,
    );
  };
  announcers.set(RED, announce);
  return announce;
};

/** For load balancers and the like: whether what comes in can be put on record. */
export const health = (RED: Red, response: Response): void => {
  const isWell = [...runningOf(RED)].every(
    ({ troubleSince }) => troubleSince === undefined || systemClock.now() - troubleSince < patience,
  );
  response
    .status(isWell ? 200 : 503)
    .set('Cache-Control', 'no-store')
    .json({ status: isWell ? 'ok' : 'unavailable' });
};

const activityIn = ({ form }: Asked): Activity => {
  if (!form.running) throw new Refused(404, 'refused.notDeployed');
  return activityOf(form.running);
};

const numberIn = ({ query }: Request, name: string, fallback: number, most: number): number => {
  const value = Math.floor(Number(query[name]));
  return value >= 1 ? Math.min(value, most) : fallback;
};

const textIn = ({ query }: Request, name: string): string => {
  const value = query[name];
  return typeof value === 'string' ? value : '';
};

const masked = <T extends { readonly phone: string | null; readonly detail?: string | null }>(
  item: T,
): T => ({
  ...item,
  phone: item.phone === null ? null : lastFour(item.phone),
  ...(typeof item.detail === 'string' && { detail: hideNumbers(item.detail) }),
});

/** A page of what goes on. Who may only read sees the last four digits, and cannot find out more by searching. */
export const readActivity = async (what: 'waits' | 'queue' | 'failures', asked: Asked): Promise<object> => {
  const activity = activityIn(asked);
  const { request, mayWrite } = asked;
  const page = numberIn(request, 'page', 1, 1_000_000);
  const pageSize = numberIn(request, 'pageSize', 50, largestPage);
  const phone = textIn(request, 'phone');
  if (phone !== '' && !mayWrite) return { data: [], pageInfo: { page, pageSize, totalRecord: 0 } };
  const advisor = textIn(request, 'advisor');
  const wanted: AskedPage = { page, pageSize, phone, ...(advisor !== '' && { advisor }) };
  const found = await activity[what](wanted);
  const data = mayWrite ? found.data : found.data.map((item) => masked(item));
  if (what === 'queue') return { ...found, data, lists: await activity.lists() };
  if (what === 'failures')
    return { ...found, data, codes: codesIn(found.data as readonly Failure[], request) };
  return { ...found, data };
};

/** How a status says the codes of these failures. */
const codesIn = (failures: readonly Failure[], request: Request): Record<string, string> => {
  const words = wordsFor(request);
  const codes = new Set(failures.map(({ code }) => code));
  return Object.fromEntries([...codes].map((code) => [code, words.find(`failed.${code}`) ?? code]));
};

/** What is measured of an environment from time to time. */
export const gaugesOf = (environment: RunningEnvironment): Gauges => {
  const one = { page: 1, pageSize: 1 };
  const activity = activityOf(environment);
  return {
    environment: environment.id,
    waits: async () => (await activity.waits(one)).pageInfo.totalRecord ?? 0,
    queue: async () => (await activity.queue(one)).pageInfo.totalRecord ?? 0,
    lateBy: async () => (await consentOf(environment)).waits.lateBy,
  };
};

/** How the service and the store are. */
export const serviceState = async ({ form }: Asked): Promise<object> => {
  const { running } = form;
  if (!running) throw new Refused(404, 'refused.notDeployed');
  const { service, clock, trouble = null } = running;
  const until = pausedUntil(running);
  return {
    service,
    pausedUntil: until > clock.now() ? until : null,
    lateBy: trouble === null ? (await consentOf(running)).waits.lateBy : 0,
    trouble,
    clock: service === 'simulator' ? clock.now() : null,
  };
};

const idIn = ({ request }: Asked): string => request.params['id'] ?? '';

const done = (asked: Asked, isDone: boolean): object => {
  if (!isDone) throw new Refused(404, 'refused.noSuchItem');
  return { id: idIn(asked) };
};

export const checkWait = async (asked: Asked): Promise<object> =>
  done(asked, await activityIn(asked).check(idIn(asked)));

export const cancelItem = async (kind: 'w' | 'q' | 'l', asked: Asked): Promise<object> =>
  done(asked, await activityIn(asked).cancel(idIn(asked), [kind]));
