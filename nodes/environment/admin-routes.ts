import type { Request, RequestHandler, Response } from 'express';
import type { Connection } from '../../lib/auth/connection';
import { defaultAdvisor } from '../../lib/default-advisor';
import { visible } from '../../lib/visible';
import { deployEnd } from '../../lib/runtime/delivery';
import type { Red } from '../../lib/runtime/red';
import { ServiceError } from '../../lib/service/errors';
import {
  advisorsIn,
  cancelItem,
  checkWait,
  pendingIn,
  readActivity,
  runningIn,
  serviceState,
} from './sidebar-data';
import { listAdvisors } from './advisor-list';
import { readBlocked, unblock } from './blocked';
import { bundleOf } from './bundle';
import { runChecks } from './checks';
import {
  addressBeside,
  checkScopes,
  connectionIn,
  connectionOf,
  serviceOf,
  type EnvironmentValues,
} from './config';
import { FormReader, type RouteRequest } from './form';
import { lookUp } from './lookup';
import { needsOf, savedNodes } from './saved-nodes';
import { comesBackHere } from './open-routes';
import {
  advisorKey,
  field,
  smallJsonOnly,
  Refused,
  reply,
  soon,
  wordsForRequest,
  type Mounts,
} from './reply';
import { findRunning } from './running';
import type { Services } from './services';

const codeConnection = (id: string, values: EnvironmentValues): Connection => {
  if (serviceOf(values) === 'simulator') throw new Refused(400, 'refused.simulator');
  checkScopes(values);
  const connection = connectionOf(id, values);
  if (connection.grant === 'authorization_code') return connection;
  throw new Refused(400, 'refused.clientCredentials');
};

/** What is deployed may still be the simulator, or lack what the form in the dialog already has. */
const connectionForLink = (id: string, values: EnvironmentValues): Connection => {
  if (serviceOf(values) === 'simulator') throw new Refused(400, 'refused.deployFirst');
  try {
    return codeConnection(id, values);
  } catch (thrown) {
    const isIncomplete = thrown instanceof ServiceError && thrown.problem.wording?.key === 'settings_missing';
    throw isIncomplete ? new Refused(400, 'refused.deployFirst') : thrown;
  }
};

/** The query of a pasted address. */
const queryIn = (address: unknown): URLSearchParams => {
  const text = typeof address === 'string' ? address.trim() : '';
  const at = text.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : (text.slice(at + 1).split('#')[0] ?? ''));
};

/** The settings of the form that may be part of an address: no secrets. */
const formFields = ['service', 'grant', 'tokenUrl', 'clientId', 'scopes'];

/** The values of the form, so that the list is right before they are deployed. */
const shownValues = (form: FormReader, query: Request['query']): EnvironmentValues | undefined => {
  const given = formFields.flatMap((name) => (typeof query[name] === 'string' ? [[name, query[name]]] : []));
  return given.length > 0 ? form.look(Object.fromEntries(given) as EnvironmentValues) : form.running?.values;
};

/** The connection of the deployed environment; undefined when it is not configured. */
const deployedConnection = ({ id, form }: RouteRequest): Connection | undefined =>
  connectionIn(id, form.running?.values);

const pathAdvisor = ({ request }: RouteRequest): string => advisorKey(request.params['advisor']);
const bodyAdvisor = ({ request }: RouteRequest): string => advisorKey(field(request, 'advisor'));

/** The advisor of a test that names none: the only one. */
const usualAdvisor = async (
  services: Services,
  { id, form }: RouteRequest,
  values: EnvironmentValues,
): Promise<string> => {
  const [only, another] = await listAdvisors(services, id, values, form.running?.values);
  if (another) throw new Refused(400, 'refused.severalAdvisors');
  return only?.advisor ?? defaultAdvisor;
};

/** The settings that each parameter of the authorization request comes from. Other parameters come from the address. */
const querySources: Readonly<Record<string, readonly string[]>> = {
  response_type: [],
  client_id: ['clientId'],
  redirect_uri: ['redirectUri'],
  code_challenge: [],
  code_challenge_method: [],
  state: [],
  scope: ['scopes', 'corePrefix', 'textPrefix'],
};
const ofAddress = ['authUrl'];

/**
 * The address of one of our pages, beside the callback. It is relative to the editor if the full one would reveal a
 * variable.
 */
const placeTold = (form: FormReader, redirectUri: string, page: string): string =>
  addressBeside(form.hasVariable('redirectUri') ? '' : redirectUri, page);

/**
 * The address at which the window starts. It is one of our pages if that page can set the cookie, and if the address of
 * the authorization page would reveal a variable: our page then redirects there. Its query is that of the authorization
 * page, without what comes from a variable.
 */
const addressTold = (
  url: string,
  { redirectUri }: Connection,
  isBound: boolean,
  form: FormReader,
): string => {
  const hasVariable = (setting: string): boolean => form.hasVariable(setting);
  const { search, searchParams } = new URL(url);
  const isTold = [...ofAddress, ...Object.values(querySources).flat()].some(hasVariable);
  if (!isBound && !isTold) return url;
  const page = `link/${searchParams.get('state') ?? ''}`;
  const place = placeTold(form, isBound ? redirectUri : '', page);
  const kept = search
    .slice(1)
    .split('&')
    .filter((pair) => !(querySources[pair.split('=')[0] ?? ''] ?? ofAddress).some(hasVariable));
  return `${place}?${kept.join('&')}`;
};

/** A route about one environment. Each needs a permission. */
interface AdminRoute {
  readonly method: 'get' | 'post' | 'delete';
  /** Below `/advisor-texting/:env/`. */
  readonly path: string;
  readonly permission: 'advisor-texting.read' | 'advisor-texting.write';
  /** The event in Node-RED's audit log; routes that only read have none. */
  readonly audit?: string;
  readonly work: (services: Services, asked: RouteRequest, RED: Red) => unknown;
}

const read = { method: 'get', permission: 'advisor-texting.read' } as const;
const write = { method: 'post', permission: 'advisor-texting.write' } as const;
const cancel = { method: 'delete', permission: 'advisor-texting.write', audit: 'cancel' } as const;

const table: readonly AdminRoute[] = [
  {
    ...write,
    path: 'authorize',
    audit: 'authorize',
    async work({ authorizations }, asked) {
      const connection = codeConnection(asked.id, asked.form.use(field(asked.request, 'form')));
      const isBound = comesBackHere(asked.request, connection.redirectUri);
      const url = await authorizations.begin(connection, bodyAdvisor(asked), undefined, isBound);
      return { url: addressTold(url, connection, isBound, asked.form) };
    },
  },
  {
    ...read,
    path: 'authorize',
    work: ({ authorizations }, { id, request }) =>
      authorizations.attempt(id, advisorKey(request.query['advisor'])),
  },
  {
    ...write,
    path: 'link',
    audit: 'link',
    async work({ vault }, asked) {
      const { values } = asked.form.deployed();
      const { redirectUri } = connectionForLink(asked.id, values);
      const advisor = bodyAdvisor(asked);
      const token = await vault.useNow(() => vault.createLink(asked.id, advisor));
      return { url: placeTold(asked.form, redirectUri, `link/${token}`) };
    },
  },
  {
    ...write,
    path: 'complete',
    audit: 'complete',
    async work({ authorizations, vault }, { id, request }) {
      const query = queryIn(field(request, 'address'));
      const finished = await vault.useNow(() => authorizations.finish(query, { pastedFor: id }));
      if (finished.ok) return { advisor: finished.advisor, state: finished.state };
      throw new Refused(400, `page.${finished.why}.text`);
    },
  },
  {
    ...read,
    path: 'advisors',
    async work(services, asked) {
      const { id, form, request } = asked;
      const values = shownValues(form, request.query);
      return advisorsIn(asked, await listAdvisors(services, id, values, form.running?.values));
    },
  },
  {
    ...read,
    path: 'pending',
    work: (_, asked) => pendingIn(asked),
  },
  {
    ...write,
    path: 'advisors/:advisor/confirm',
    audit: 'confirm',
    async work({ vault }, asked) {
      const advisor = pathAdvisor(asked);
      // The person who is shown is confirmed, and nobody else who waits at another service.
      const connection = connectionIn(asked.id, shownValues(asked.form, asked.request.query));
      if (await vault.useNow(() => vault.confirm(asked.id, advisor, connection)))
        return { advisor, state: 'authorized' };
      throw new Refused(404, 'refused.nothingToConfirm');
    },
  },
  {
    ...write,
    path: 'store/confirm',
    audit: 'confirmStore',
    async work(_, { form }) {
      const running = form.deployed();
      // When the answer is that the store is unavailable, nothing may be confirmed later.
      await soon(running.store());
      if (await soon(running.confirmStore())) return { store: 'confirmed' };
      throw new Refused(404, 'refused.storeNotLost');
    },
  },
  {
    ...write,
    method: 'delete',
    path: 'advisors/:advisor',
    audit: 'disconnect',
    async work({ vault }, asked) {
      const advisor = pathAdvisor(asked);
      const connection = deployedConnection(asked);
      if (await vault.useNow(() => vault.disconnect(asked.id, advisor, connection))) return { advisor };
      throw new Refused(404, 'refused.notConnected');
    },
  },
  {
    ...write,
    path: 'test',
    audit: 'test',
    async work(services, asked, RED) {
      const { id, form, request } = asked;
      const values = form.use(field(request, 'form'));
      const isNamed = field(request, 'advisor') !== undefined;
      const advisor = isNamed ? bodyAdvisor(asked) : await usualAdvisor(services, asked, values);
      const deployedAt = form.deployedOrigin('baseUrl');
      const isWhole = field(request, 'whole') === true;
      const needs = needsOf(savedNodes(RED), id);
      const trial = { id, values, advisor, deployedAt, needs, isWhole };
      return runChecks(services, trial, wordsForRequest(request));
    },
  },
  { ...read, path: 'waits', work: (_, asked) => readActivity('waits', asked) },
  { ...write, path: 'waits/:id/check', audit: 'check', work: (_, asked) => checkWait(asked) },
  { ...cancel, path: 'waits/:id', work: (_, asked) => cancelItem('w', asked) },
  { ...read, path: 'queue', work: (_, asked) => readActivity('queue', asked) },
  { ...cancel, path: 'queue/:id', work: (_, asked) => cancelItem('q', asked) },
  { ...read, path: 'lists', work: (_, asked) => readActivity('lists', asked) },
  { ...cancel, path: 'lists/:id', audit: 'stop', work: (_, asked) => cancelItem('l', asked) },
  { ...read, path: 'failures', work: (_, asked) => readActivity('failures', asked) },
  { ...read, path: 'do-not-text', work: (_, asked) => readBlocked(asked) },
  { ...cancel, path: 'do-not-text/:phone', audit: 'unblock', work: (_, asked) => unblock(asked) },
  { ...read, path: 'bundle', work: (services, asked, RED) => bundleOf(RED, services, asked) },
  { ...read, path: 'service', work: (_, asked, RED) => serviceState(RED, asked) },
  { ...read, path: 'lookup/:what', work: (_, asked) => lookUp(runningIn(asked), asked.request) },
];

/** Without logins, everybody may do everything. With logins, Node-RED has already identified the user. */
const may = (RED: Red, request: Request, permission: `${string}.write`): boolean => {
  if (!(RED.settings as { adminAuth?: unknown }).adminAuth) return true;
  const { scope } = (request as { authInfo?: { scope?: unknown } }).authInfo ?? {};
  const sufficient: unknown[] = ['*', 'write', '*.write', permission];
  return [scope].flat().some((each) => sufficient.includes(each));
};

/** Node-RED adds the user, the address and the path. Its type declarations lack the event. */
interface AuditLog {
  audit(entry: Readonly<Record<'event' | 'environment', string>>, request: Request): void;
}

/** The advisor that the request was about, if the path does not name one. */
const advisorTold = (result: unknown, request: Request): { readonly advisor?: string } => {
  const named = field(request, 'advisor') ?? (result as { advisor?: unknown } | undefined)?.advisor;
  return typeof named === 'string' && named !== '' ? { advisor: visible(named) } : {};
};

export const adminRoutes = (RED: Red, mounts: Mounts, services: Services): void => {
  for (const { method, path, permission, audit, work } of table) {
    const handle = (request: Request, response: Response): void => {
      const id = request.params['env'] ?? '';
      const mayWrite = may(RED, request, 'advisor-texting.write');
      let form: FormReader | undefined;
      const tryOnce = async (): Promise<unknown> => {
        await deployEnd(RED);
        form = new FormReader(RED, id, may(RED, request, 'flows.write'));
        const result = await work(form.running?.services ?? services, { id, form, request, mayWrite }, RED);
        if (audit !== undefined)
          (RED.log as unknown as AuditLog).audit(
            { event: `advisor-texting.${audit}`, environment: id, ...advisorTold(result, request) },
            request,
          );
        return result;
      };
      const isReplaced = (): boolean => form?.running !== findRunning(RED, id);
      void reply(
        { log: services.log, request, response, mayWrite, hide: (said) => (form ? form.hide(said) : said) },
        () =>
          // A read that a deploy interrupts is retried on the new environment.
          tryOnce().catch((fault: unknown) => {
            if (method === 'get' && isReplaced()) return tryOnce();
            throw fault;
          }),
      );
    };
    mounts[method](
      `/advisor-texting/:env/${path}`,
      RED.auth.needsPermission(permission) as RequestHandler,
      ...(method === 'post' ? [smallJsonOnly] : []),
      handle,
    );
  }
};
