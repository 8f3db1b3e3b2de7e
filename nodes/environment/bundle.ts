import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isNothing } from '../../lib/kinds';
import { activityOf } from '../../lib/runtime/activity';
import type { Failure } from '../../lib/runtime/activity-items';
import { lastFour } from '../../lib/runtime/log';
import { plainCode } from '../../lib/runtime/errors';
import type { Red } from '../../lib/runtime/red';
import type { Field } from '../../lib/runtime/spec';
import { lazy } from '../../lib/runtime/lazy';
import { serviceState } from './sidebar-data';
import { soon } from './reply';
import { listAdvisors } from './advisor-list';
import type { EnvironmentValues } from './config';
import type { RouteRequest } from './form';
import type { Services } from './services';
import { scopes, spec } from './spec';
import { variablesIn } from './variables';

/** A support bundle goes to strangers: it contains only what is known to be harmless. */

const dependencies = ['lmdb', 'undici', 'axios', 'zod', 'libphonenumber-js', 'pg'] as const;

/** Not every package lets its package.json be resolved, so it is searched for above the loaded file. */
const dependencyVersion = (name: string): string | null => {
  try {
    for (let folder = dirname(require.resolve(name)); dirname(folder) !== folder; folder = dirname(folder)) {
      const description = join(folder, 'package.json');
      if (!existsSync(description)) continue;
      const { name: own, version } = JSON.parse(readFileSync(description, 'utf8')) as Record<string, unknown>;
      if (own === name && typeof version === 'string') return version;
    }
    return null;
  } catch {
    return null;
  }
};

export const installedVersions = (nodeRed: unknown): object => ({
  package: lazy.transport().ownVersion,
  nodeRed: typeof nodeRed === 'string' ? nodeRed : null,
  node: process.version,
  platform: `${process.platform} ${process.arch}`,
  dependencies: Object.fromEntries(dependencies.map((name) => [name, dependencyVersion(name)])),
});

const kinds: Readonly<Record<string, RegExp>> = {
  country: /^[A-Za-z]{2}$/,
  time: /^\d{2}:\d{2}$/,
  time_zone: /^[A-Za-z_]+(\/[A-Za-z_+-]+){0,2}$/,
};
const knownScopes: readonly unknown[] = [...scopes, 'openid'];

/** A setting as it may be shown: `${VARIABLE}` stays a variable. */
const shown = (field: Field, value: unknown): unknown => {
  if (isNothing(value)) return 'empty';
  if (variablesIn(value).length > 0) return 'variable';
  if (field.kind === 'flag') return value === true || value === 'true';
  if (field.kind === 'number') {
    const number = Number(value);
    return Math.abs(number) < 1e7 ? number : 'set';
  }
  if (field.kind === 'choice') return field.options.some((option) => option === value) ? value : 'unknown';
  if (field.kind === 'ticks') return [value].flat().filter((each) => knownScopes.includes(each));
  if (field.kind !== 'text' || typeof value !== 'string') return 'set';
  // Only the origin of an address is shown: a path, a query or a user may be secret.
  if (field.format === 'url') return URL.canParse(value) ? new URL(value).origin : 'invalid';
  return kinds[field.format ?? '']?.test(value) === true ? value : 'set';
};

export const settingsTold = (written: EnvironmentValues): object =>
  Object.fromEntries(spec.fields.map((field) => [field.name, shown(field, written[field.name])]));

const mostFailuresTold = 100;

/** Trace ids come from the service, and are shown only to users who may write. */
const failureTold =
  (mayWrite: boolean) =>
  ({ at, node, phone, code, traceId }: Failure): object => ({
    at: new Date(at).toISOString(),
    node: node.id,
    phone: phone === null ? null : lastFour(phone),
    code: plainCode(code),
    traceId: mayWrite && traceId !== null && /^[\w.:/=-]{1,200}$/.test(traceId) ? traceId : null,
  });

/** Everything that helps to find out what is wrong with an environment, and nothing confidential. */
export const bundleOf = async (RED: Red, services: Services, asked: RouteRequest): Promise<object> => {
  const { id, form, mayWrite } = asked;
  const { running, written } = form;
  const whole = {
    made: new Date().toISOString(),
    versions: installedVersions(nodeRedOf(RED)),
    environment: id,
  };
  const settings = settingsTold(written);
  if (!running) return { ...whole, settings, state: null, advisors: [], failures: [] };
  const { store, pausedUntil, lateBy, trouble, fault } = await serviceState(RED, asked);
  const known = await listAdvisors(services, id, running.values, running.values).catch(() => []);
  const failures = activityOf(running).failures({ page: 1, pageSize: mostFailuresTold });
  // An unavailable store is a finding of its own (`isStoreInTrouble`): the bundle is made without failures.
  const found = await soon(failures).catch(() => ({ data: [] }));
  return {
    ...whole,
    settings,
    state: {
      store,
      pausedUntil,
      lateBy,
      isStoreInTrouble: trouble !== null,
      isConfigured: fault === null,
    },
    advisors: known.map(({ state: each, missingScopes, expiresAt, refreshedAt }) => ({
      state: each,
      missingScopes: missingScopes.filter((scope) => knownScopes.includes(scope)),
      expiresAt,
      refreshedAt,
    })),
    failures: found.data.map(failureTold(mayWrite)),
  };
};

const nodeRedOf = (RED: Red): unknown => {
  const { version } = RED as unknown as { version?: unknown };
  return typeof version === 'function' ? (version as () => unknown)() : version;
};
