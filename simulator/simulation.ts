import { defaultAdvisor } from '../lib/default-advisor';
import type { MovableClock } from './movable-clock';
import { Faults } from './faults';
import type { Ledger } from './ledger';
import { Codes } from './oauth/codes';
import { TokenIssuer } from './oauth/tokens';
import { defaultSettings, type SettingsChange } from './state/settings';
import { changeSettings } from './state/settings-schema';
import { State } from './state/state';
import { second } from '../lib/durations';

export interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly apiKey: string;
}

export interface SimulationOptions {
  /** The number of contacts in a new address book. */
  readonly contacts: number;
  readonly settings: SettingsChange;
  readonly credentials: ClientCredentials;
  readonly randomSeed: number;
  readonly ledger: Ledger;
  readonly hasFlows: () => boolean | null;
}

/** The simulated service without its sockets: state, authorizations, faults and ledger, and the operations on them. */
export class Simulation {
  readonly state: State;
  readonly tokens: TokenIssuer;
  readonly codes: Codes;
  readonly faults: Faults;
  readonly ledger: Ledger;
  readonly client: ClientCredentials;
  readonly apiKey: string;
  /** Whether flows of Node-RED use this simulator; null if it runs outside Node-RED. */
  readonly hasFlows: () => boolean | null;
  private readonly resetListeners = new Set<() => Promise<void>>();

  constructor(
    readonly clock: MovableClock,
    options: SimulationOptions,
  ) {
    this.client = options.credentials;
    this.apiKey = options.credentials.apiKey;
    this.hasFlows = options.hasFlows;
    this.state = new State(clock, changeSettings(defaultSettings, options.settings), options.contacts);
    this.tokens = new TokenIssuer(clock, () => this.state.settings);
    this.codes = new Codes(clock);
    this.ledger = options.ledger;
    this.faults = new Faults(options.randomSeed, () => {
      this.state.changed();
    });
  }

  /** Answers for the owner of a number: to the named advisor, else in every account that knows the number. */
  answer(phone: string, answer: 'accepted' | 'declined', advisor?: string): void {
    for (const account of this.accountsWith(phone, advisor)) {
      account.answer(account.line(account.contactFor(phone), phone), answer);
    }
    this.state.changed();
  }

  /** Forgets consent, messages and past errors of a number; its contact stays. */
  resetPhone(phone: string, advisor?: string): void {
    for (const account of this.accountsWith(phone, advisor)) account.forgetPhone(phone);
    this.state.changed();
  }

  /** Moves the clock forward. */
  async advance(seconds: number): Promise<void> {
    await this.clock.move(seconds * second);
    this.state.changed();
  }

  /** Revokes authorizations, so that a refresh gets a 400; returns their number. */
  revoke(advisor?: string): number {
    const count = this.tokens.revoke(advisor);
    this.state.changed();
    return count;
  }

  /**
   * Returns to the seed and the first settings, without faults and with an empty ledger. The clock and the
   * authorizations stay. Resolves when all listeners have forgotten too.
   */
  async reset(): Promise<void> {
    this.faults.clear();
    this.ledger.clear();
    this.state.reset();
    await Promise.all([...this.resetListeners].map((listener) => listener()));
  }

  onReset(listener: () => Promise<void>): void {
    this.resetListeners.add(listener);
  }

  private accountsWith(phone: string, advisor: string | undefined) {
    if (advisor !== undefined) return [this.state.account(advisor)];
    const having = [...this.state.accounts.values()].filter((account) => account.lines.has(phone));
    return having.length > 0 ? having : [this.state.account(defaultAdvisor)];
  }
}
