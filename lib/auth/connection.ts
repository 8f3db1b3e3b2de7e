import type { Prefixes } from '../service/prefixes';

/** How an environment gets its tokens: all settings are complete, and every `${VARIABLE}` is resolved. */
export interface Connection {
  /** The environment's id in the editor: its authorizations are kept under it. */
  readonly environment: string;
  /** Sandbox or production. */
  readonly service?: string;
  /** The name that the user gave the environment, for messages. */
  readonly name: string;
  readonly grant: 'authorization_code' | 'client_credentials';
  /** Where the tokens are used; may still be empty while somebody authorizes. */
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly tokenUrl: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The scopes in the contract's words; `openid` is among them where an advisor signs in, or where it is listed. */
  readonly scopes: readonly string[];
  /** The service's own words for `core` and `text`. */
  readonly prefixes?: Prefixes;
  /** The HTTP proxy of the environment; empty means that of the process's variables. */
  readonly proxy?: string;
  /** A refresh token given as a credential, to seed an installation that has no browser; empty when there is none. */
  readonly seed: string;
  readonly retries: number;
  readonly timeout?: number;
}
