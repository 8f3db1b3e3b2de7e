import type { Clock } from '../../lib/service/clock';
import { Account, type AccountRecord } from './account';
import { Dues } from './dues';
import { advisorIdentity, knownIdentities, type AdvisorIdentity } from './identities';
import type { Settings, SettingsChange } from './settings';
import { changeSettings } from './settings-schema';

export interface StateRecord {
  messageId: number;
  settings: Settings;
  accounts: { advisor: string; account: AccountRecord }[];
}

const firstMessageId = 900_001;

/** Everything that the simulated service knows. Every change is reported to those that store or show it. */
export class State {
  readonly accounts = new Map<string, Account>();
  private readonly listeners = new Set<() => void>();
  private readonly dues: Dues;
  private messageId = firstMessageId;
  private current: Settings;

  constructor(
    readonly clock: Clock,
    private readonly initial: Settings,
    private readonly contacts: number,
  ) {
    this.current = initial;
    this.dues = new Dues(clock, () => {
      this.changed();
    });
  }

  get settings(): Settings {
    return this.current;
  }

  change(change: SettingsChange): void {
    this.current = changeSettings(this.current, change);
    this.changed();
  }

  account(advisor: string): Account {
    return this.accounts.get(advisor) ?? this.open(advisor, Account.fresh(this.contacts));
  }

  identities(): AdvisorIdentity[] {
    const further = [...this.accounts.values()].map(({ identity }) => identity);
    return [...new Map([...knownIdentities, ...further].map((one) => [one.advisor, one])).values()];
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  reset(): void {
    this.accounts.clear();
    this.dues.clear();
    this.current = this.initial;
    this.changed();
  }

  record(): StateRecord {
    return {
      messageId: this.messageId,
      settings: this.current,
      accounts: [...this.accounts].map(([advisor, account]) => ({ advisor, account: account.record() })),
    };
  }

  restore(record: StateRecord): void {
    this.messageId = record.messageId;
    this.current = record.settings;
    for (const { advisor, account } of record.accounts) {
      const { lines } = this.open(advisor, account);
      for (const line of lines.values()) {
        for (const { scheduledFor } of line.messages) if (scheduledFor !== null) this.dues.add(scheduledFor);
      }
    }
  }

  close(): void {
    this.dues.clear();
    this.listeners.clear();
  }

  private open(advisor: string, record: AccountRecord): Account {
    const account = new Account(advisorIdentity(advisor), record, {
      now: () => this.clock.now(),
      nextMessageId: () => this.messageId++,
      arrivesAt: (when) => {
        this.dues.add(when);
      },
    });
    this.accounts.set(advisor, account);
    return account;
  }
}
