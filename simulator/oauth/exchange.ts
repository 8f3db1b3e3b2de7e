import { defaultAdvisor } from '../../lib/default-advisor';
import { verifyChallenge } from 'pkce-challenge';
import { provisionedScopes, type Settings } from '../state/settings';
import type { Codes } from './codes';
import { readParameters } from './parameters';
import type { Family, TokenResponse, TokenIssuer } from './tokens';

export interface RegisteredClient {
  readonly clientId: string;
  readonly clientSecret: string;
}

export type Exchanged =
  | { readonly ok: true; readonly answer: TokenResponse; readonly advisor: string; readonly outcome: string }
  | { readonly ok: false; readonly status: 400 | 401; readonly error: string; readonly description: string };

const no = (error: string, description: string, status: 400 | 401 = 400): Exchanged => ({
  ok: false,
  status,
  error,
  description,
});

type FormValues = Readonly<Record<string, string>>;

interface Around {
  readonly tokens: TokenIssuer;
  readonly codes: Codes;
  readonly client: RegisteredClient;
  readonly settings: Settings;
  /** The origin of the request, which is the issuer in an id token. */
  readonly issuer: string;
}

const answerFor = ({ tokens, client, issuer }: Around, family: Family, nonce?: string): TokenResponse =>
  tokens.answer(family, { iss: issuer, aud: client.clientId, nonce }, client.clientSecret);

const byCode = async (around: Around, values: FormValues): Promise<Exchanged> => {
  const { tokens, codes } = around;
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
  return {
    ok: true,
    answer: answerFor(around, code.family, code.nonce),
    advisor: code.advisor,
    outcome: 'authorization_code',
  };
};

const byRefreshToken = (around: Around, values: FormValues): Exchanged => {
  const family = around.tokens.refresh(values['refresh_token'] ?? '');
  if (family === undefined) {
    return no(
      'invalid_grant',
      'The refresh token is unknown, expired, replaced or revoked. Authorize again.',
    );
  }
  return { ok: true, answer: answerFor(around, family), advisor: family.advisor, outcome: 'refresh_token' };
};

/**
 * The contract does not say how client credentials identify the advisor (*Authentication*, Gaps): it is the default
 * advisor.
 */
const byClient = (around: Around, values: FormValues): Exchanged => {
  const { tokens, settings } = around;
  const asked = (values['scope'] ?? '').split(' ').filter((scope) => scope !== '');
  const isRefused = (scope: string): boolean =>
    scope === 'openid' && settings.habits.clientOpenid === 'refused';
  const provisioned = provisionedScopes(settings).filter((scope) => !isRefused(scope));
  const unprovisioned = asked.filter((scope) => !provisioned.includes(scope));
  if (unprovisioned.length > 0) {
    return no('invalid_scope', `Not provisioned for this application: ${unprovisioned.join(' ')}`);
  }
  const scopes = (asked.length > 0 ? asked : provisioned).filter((scope) => scope !== 'offline_access');
  const family = tokens.begin(defaultAdvisor, scopes);
  return {
    ok: true,
    answer: answerFor(around, family),
    advisor: defaultAdvisor,
    outcome: 'client_credentials',
  };
};

/** Answers a token request whose form body is `body`. */
export const exchange = (around: Around, body: string): Exchanged | Promise<Exchanged> => {
  const read = readParameters(body);
  if ('repeated' in read) return no('invalid_request', `The parameter ${read.repeated} is given twice.`);
  const { values } = read;
  const { clientId, clientSecret } = around.client;
  if (values['client_id'] !== clientId || values['client_secret'] !== clientSecret) {
    return no('invalid_client', 'client_id or client_secret is wrong.', 401);
  }
  switch (values['grant_type']) {
    case 'authorization_code':
      return byCode(around, values);
    case 'refresh_token':
      return byRefreshToken(around, values);
    case 'client_credentials':
      return byClient(around, values);
    default:
      return no(
        'unsupported_grant_type',
        'grant_type must be authorization_code, refresh_token or client_credentials.',
      );
  }
};
