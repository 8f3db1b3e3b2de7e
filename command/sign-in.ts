import { minute } from '../lib/durations';
import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/service/clock';
import { type ReasonWord, ServiceError } from '../lib/service/errors';
import { finding, type Finding } from '../lib/check/rehearsal';
import { requestDefaults } from '../lib/service/client';
import { readRetryAfter, Retries, type Happened } from '../lib/service/retry';
import { createTransport, postForm, trustedBase, trustedUrl } from '../lib/service/transport';
import { authorizationUrl } from '../lib/auth/authorization';
import type { Connection } from '../lib/auth/connection';
import { clientErrors, errorIn } from '../lib/auth/token-endpoint';

const mostPaused = minute;

/** The clock and the random source: tests have their own. */
export interface Chance {
  readonly clock: Clock;
  readonly random: () => number;
}

interface Said {
  readonly status: number;
  readonly retryAfter?: string | undefined;
}

/** A 503 is transient (contract, *Authentication*, 10). */
const isTrouble = (status: number): boolean => status === 429 || status >= 500;

const happenedTo = (status: number, retryAfter: number | undefined): Happened =>
  status === 429 ? { what: 'limited', retryAfter } : { what: 'gateway' };

/** Retries the request while the server fails, until the time for pauses is used up. */
const patiently = async <T extends Said>(
  { retries }: Connection,
  { clock, random }: Chance,
  ask: () => Promise<T>,
): Promise<T> => {
  const course = new Retries(clock, random);
  for (let waited = 0; ;) {
    const said = await ask();
    if (!isTrouble(said.status)) return said;
    const asked = readRetryAfter(said.retryAfter, clock.now());
    const decision = course.after('read', happenedTo(said.status, asked), {
      retries,
      repeatSends: 'contract',
    });
    const ms = 'ms' in decision ? Math.max(decision.ms, asked ?? 0) : Infinity;
    waited += ms;
    if (waited > mostPaused) return said;
    await new Promise<void>((resolve) => clock.after(ms, resolve));
  }
};

/** A rate limit is no fault of the settings, so it counts as not tried. */
const unavailable = (check: string, address: string, status: number): Finding =>
  finding(check)(status === 429 ? 'untried' : false, 'check.signInFails', { address, status });

/**
 * Whether the token endpoint knows the application: it is shown a refresh token that nobody was ever given, so that
 * nothing is issued or spent. A client that is not known is refused before the token is looked at (RFC 6749, sections
 * 3.2.1 and 5.2).
 */
export const rehearseClient = async (connection: Connection, chance: Chance): Promise<Finding> => {
  const say = finding('client');
  const { tokenUrl, clientId, proxy, timeout = requestDefaults.timeout } = connection;
  const address = trustedBase(tokenUrl, 'tokenUrl');
  const refreshToken = randomBytes(24).toString('base64url');
  const ask = async (clientSecret: string): Promise<Said & { readonly error: unknown }> => {
    const fields = {
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
      client_id: clientId,
      client_secret: clientSecret,
    };
    const { status, text, retryAfter } = await postForm(tokenUrl, fields, { timeout, proxy });
    return { status, error: errorIn(text), retryAfter };
  };
  try {
    const { status, error } = await patiently(connection, chance, () => ask(connection.clientSecret));
    if (status >= 400 && status < 500 && error === 'invalid_grant')
      return say(true, 'check.client', { address });
    const isRefused = status === 401 || status === 403 || (status === 400 && clientErrors.includes(error));
    if (isRefused) return say(false, 'check.clientRefused', { address, status });
    if (isTrouble(status)) return unavailable('client', address, status);
    if (status !== 400) return say(false, 'check.clientElsewhere', { address, status });
    const wrong = await ask(randomBytes(24).toString('base64url'));
    const isToldApart = wrong.status !== status || wrong.error !== error;
    return isToldApart
      ? say(true, 'check.client', { address })
      : say(null, 'check.clientUnclear', { address });
  } catch (fault) {
    if (!(fault instanceof ServiceError) || fault.code === 'not_configured') throw fault;
    const { reason = '' } = fault.problem.wording?.values ?? {};
    return say(false, 'check.clientUnreached', { address, reason });
  }
};

/** Errors of a server that would continue if somebody were signed in (OpenID Connect Core, section 3.1.2.6). */
const wouldGoOn = new Set([
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
  'access_denied',
]);

/** How an authorization page answered: it redirected back, was shown or redirected elsewhere, or refused. */
interface PageAnswer extends Said {
  /** The error in the redirect back, empty for none; undefined where there was no redirect back. */
  readonly backWith?: string | undefined;
  /** Why there was no answer: the status is then 0. */
  readonly reason?: ReasonWord;
}

const openPage = async (connection: Connection): Promise<PageAnswer> => {
  const url = trustedUrl(await authorizationUrl(connection), 'authUrl');
  // Nobody is there to sign in: a server that knows `prompt` says so at once instead of showing a page.
  url.searchParams.set('prompt', 'none');
  const { proxy, redirectUri, timeout = requestDefaults.timeout } = connection;
  const transport = createTransport({ base: url.origin, timeout, connections: 1, proxy });
  try {
    const result = await transport.send({ method: 'GET', url: url.pathname + url.search });
    if (result.state !== 'answered') return { status: 0, reason: result.reason };
    const { status, retryAfter, location = '' } = result;
    const isBack = location.startsWith(redirectUri) && URL.canParse(location);
    const backWith = isBack ? (new URL(location).searchParams.get('error') ?? '') : undefined;
    return { status, backWith, retryAfter };
  } finally {
    await transport.destroy();
  }
};

/**
 * Whether the authorization page takes the request that an advisor's browser would bring, as far as it goes before
 * somebody signs in. A redirect URI that is not registered is refused before that (the contract, *Authentication*), so
 * the answer to one that cannot be registered tells whether ours is.
 */
export const rehearseAuthorization = async (connection: Connection, chance: Chance): Promise<Finding> => {
  const say = finding('authorization');
  const address = trustedBase(connection.authUrl, 'authUrl');
  const { status, backWith, reason = '' } = await patiently(connection, chance, () => openPage(connection));
  if (status === 0) return say(false, 'check.authorizationUnreached', { address, reason });
  if (isTrouble(status)) return unavailable('authorization', address, status);
  if (status === 404) return say(false, 'check.authorizationNotThere', { address, status });
  if (backWith === '' || wouldGoOn.has(backWith ?? '?')) return say(true, 'check.authorization', { address });
  if (backWith === 'invalid_scope') return say(false, 'check.authorizationScopes', { address });
  if (backWith !== undefined) return say(false, 'check.authorizationError', { address, error: backWith });
  if (status >= 400) return say(false, 'check.authorizationRefused', { address, status });
  const unregistered = `${connection.redirectUri}/${randomBytes(9).toString('base64url')}`;
  const other = await openPage({ ...connection, redirectUri: unregistered });
  return other.status >= 400 && other.status < 500
    ? say(true, 'check.authorization', { address })
    : say(null, 'check.authorizationUnclear', { address });
};
