import { defaultAdvisor } from '../../lib/default-advisor';
import { verifyChallenge } from 'pkce-challenge';
import type { Simulation } from '../simulation';
import { provisionedScopes } from '../state/settings';
import { readParameters } from './parameters';
import type { Family } from './tokens';

interface Refused {
  readonly ok: false;
  readonly status: 400 | 401;
  readonly error: string;
  readonly description: string;
}

export type Exchanged =
  | { readonly ok: true; readonly answer: object; readonly advisor: string; readonly outcome: string }
  | Refused;

/** The authorization that a request is granted, and the nonce of its id token. */
interface Granted {
  readonly family: Family;
  readonly nonce?: string | undefined;
}

const no = (error: string, description: string, status: 400 | 401 = 400): Refused => ({
  ok: false,
  status,
  error,
  description,
});

type FormValues = Readonly<Record<string, string>>;
type Grant = (simulation: Simulation, values: FormValues) => Granted | Refused | Promise<Granted | Refused>;

const byCode = async ({ tokens, codes }: Simulation, values: FormValues): Promise<Granted | Refused> => {
  const code = codes.find(values['code'] ?? '');
  if (code === undefined) return no('invalid_grant', 'The code is unknown or has expired. Authorize again.');
  if (code.spent) {
    if (code.family !== undefined) tokens.end(code.family);
    return no('invalid_grant', 'The code was used before. Authorize again.');
  }
  code.spent = true;
  if (values['redirect_uri'] !== code.redirectUri) {
    return no('invalid_grant', 'redirect_uri is not the one of the authorization request.');
  }
  const verifier = values['code_verifier'] ?? '';
  if (!/^[\w.~-]{43,128}$/.test(verifier) || !(await verifyChallenge(verifier, code.challenge))) {
    return no('invalid_grant', 'code_verifier does not match the code_challenge.');
  }
  code.family = tokens.begin(code.advisor, code.scopes);
  return { family: code.family, nonce: code.nonce };
};

const byRefreshToken = ({ tokens }: Simulation, values: FormValues): Granted | Refused => {
  const family = tokens.refresh(values['refresh_token'] ?? '');
  if (family !== undefined) return { family };
  return no('invalid_grant', 'The refresh token is unknown, expired, replaced or revoked. Authorize again.');
};

/**
 * The contract does not say how client credentials identify the advisor (*Authentication*, Gaps): it is the default
 * advisor.
 */
const byClient = ({ tokens, state: { settings } }: Simulation, values: FormValues): Granted | Refused => {
  const asked = (values['scope'] ?? '').split(' ').filter((scope) => scope !== '');
  const isRefused = (scope: string): boolean =>
    scope === 'openid' && settings.habits.clientOpenid === 'refused';
  const provisioned = provisionedScopes(settings).filter((scope) => !isRefused(scope));
  const unprovisioned = asked.filter((scope) => !provisioned.includes(scope));
  if (unprovisioned.length > 0) {
    return no('invalid_scope', `Not provisioned for this application: ${unprovisioned.join(' ')}`);
  }
  const scopes = (asked.length > 0 ? asked : provisioned).filter((scope) => scope !== 'offline_access');
  return { family: tokens.begin(defaultAdvisor, scopes) };
};

const grants = new Map<string, Grant>([
  ['authorization_code', byCode],
  ['refresh_token', byRefreshToken],
  ['client_credentials', byClient],
]);

/** Answers a token request whose form is `body`. The issuer of an id token is the origin of the request. */
export const exchange = async (simulation: Simulation, issuer: string, body: string): Promise<Exchanged> => {
  const read = readParameters(body);
  if ('repeated' in read) return no('invalid_request', `The parameter ${read.repeated} is given twice.`);
  const { values } = read;
  const { clientId, clientSecret } = simulation.client;
  if (values['client_id'] !== clientId || values['client_secret'] !== clientSecret) {
    return no('invalid_client', 'client_id or client_secret is wrong.', 401);
  }
  const type = values['grant_type'] ?? '';
  const grant = grants.get(type);
  if (!grant)
    return no('unsupported_grant_type', `grant_type must be one of ${[...grants.keys()].join(', ')}.`);
  const granted = await grant(simulation, values);
  if ('error' in granted) return granted;
  const { family, nonce } = granted;
  const answer = simulation.tokens.answer(family, { iss: issuer, aud: clientId, nonce }, clientSecret);
  return { ok: true, answer, advisor: family.advisor, outcome: type };
};
