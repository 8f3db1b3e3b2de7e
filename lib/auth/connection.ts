import type { Prefixes } from '../service/prefixes';

/** How an environment gets its tokens: everything filled in and every `${VARIABLE}` resolved. */
export interface Connection {
  /** The environment's id in the editor: its authorizations are kept under it. */
  readonly environment: string;
  /** Sandbox or production. */
  readonly service?: string;
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
  /** With `openid`, in the contract's words. */
  readonly scopes: readonly string[];
  /** What the service says in place of `core` and `text`. */
  readonly prefixes?: Prefixes;
  /** The HTTP proxy that the environment names; empty means what the process says. */
  readonly proxy?: string;
  /** A refresh token given as a credential, to seed an installation that has no browser; empty when there is none. */
  readonly seed: string;
  /** How often a token request that failed is repeated. */
  readonly retries: number;
  /** Milliseconds for one token request. */
  readonly timeout?: number;
}

/** The advisor when nothing is said. */
export const defaultAdvisor = 'default';
