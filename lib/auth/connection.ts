/** How an environment gets its tokens: everything filled in and every `${VARIABLE}` resolved. */
export interface Connection {
  /** The environment's id in the editor: its authorizations are kept under it. */
  readonly environment: string;
  /** As the user calls it, for messages. */
  readonly name: string;
  readonly grant: 'authorization_code' | 'client_credentials';
  /** Where its tokens are used; may still be empty while somebody authorizes. */
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly tokenUrl: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** As sent: with `openid`. */
  readonly scopes: readonly string[];
  /** A refresh token given as a credential, to seed an installation that has no browser; empty when there is none. */
  readonly seed: string;
  /** How often a token request that failed is repeated. */
  readonly retries: number;
}

/** The advisor when nothing is said. */
export const defaultAdvisor = 'default';
