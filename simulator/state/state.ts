import { z } from 'zod';
import type { Clock } from '../../lib/service/clock';
import { Account, accountSchema, type AccountRecord } from './account';
import { advisorIdentity, knownIdentities, type AdvisorIdentity } from './identities';
import type { Settings, SettingsChange } from './settings';
import { changeSettings, settingsSchema } from './settings-schema';

export const stateSchema = z.object({
  messageId: z.int(),
  settings: settingsSchema,
  accounts: z.array(z.object({ advisor: z.string(), account: accountSchema })),
});
type StateRecord = z.output<typeof stateSchema>;

const firstMessageId = 900_001;

/** Everything that the simulated service knows. Every change is reported to those that store or show it. */
export class State {
  readonly accounts = new Map<string, Account>();
  private readonly listeners = new Set<() => void>();
  /** Cancel the timers of scheduled texts. */
  private readonly arrivals = new Set<() => void>();
  private messageId = firstMessageId;
  private current: Settings;

  constructor(
    readonly clock: Clock,
    private readonly initial: Settings,
    private readonly contacts: number,
  ) {
    this.current = initial;
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
    this.cancelArrivals();
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
        for (const { scheduledFor } of line.messages) if (scheduledFor !== null) this.arrivesAt(scheduledFor);
      }
    }
  }

  close(): void {
    this.cancelArrivals();
    this.listeners.clear();
  }

  /** A scheduled text is a change when it arrives. */
  private arrivesAt(when: number): void {
    const ms = when - this.clock.now();
    if (ms <= 0) return;
    const cancel = this.clock.after(ms, () => {
      this.arrivals.delete(cancel);
      this.changed();
    });
    this.arrivals.add(cancel);
  }

  private cancelArrivals(): void {
    for (const cancel of this.arrivals) cancel();
    this.arrivals.clear();
  }

  private open(advisor: string, record: AccountRecord): Account {
    const account = new Account(advisorIdentity(advisor), record, {
      now: () => this.clock.now(),
      nextMessageId: () => this.messageId++,
      arrivesAt: (when) => {
        this.arrivesAt(when);
      },
    });
    this.accounts.set(advisor, account);
    return account;
  }
}
