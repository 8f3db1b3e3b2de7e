/** One request as the simulator saw it. */
export interface LedgerEntry {
  readonly at: number;
  readonly method: string;
  readonly path: string;
  /** The endpoint's name in the table, or `token`; null when there is no such endpoint. */
  endpoint: string | null;
  advisor: string | null;
  /** The number in the request; several are joined by commas. */
  phone: string | null;
  /** The text of a send. */
  text?: string;
  messageId?: number | null;
  /** The HTTP status of the answer; 0 when the connection was cut instead. */
  status: number;
  /** The result: `sent`, `not-consented`, a consent state, a problem's code, or the name of a fault. */
  outcome: string;
  /** Whether the request was carried out, even if the client received no answer. */
  processed: boolean;
}

export const newEntry = (at: number, method: string, path: string): LedgerEntry => ({
  at,
  method,
  path,
  endpoint: null,
  advisor: null,
  phone: null,
  status: 0,
  outcome: '',
  processed: false,
});

/** The latest `limit` requests; 0 keeps none. */
export class Ledger {
  /** The number of requests since the start or the last clear, kept or not. */
  received = 0;
  private kept: LedgerEntry[] = [];

  constructor(private readonly limit: number) {}

  add(entry: LedgerEntry): void {
    this.received++;
    if (this.limit === 0) return;
    this.kept.push(entry);
    if (this.kept.length >= 2 * this.limit) this.kept = this.kept.slice(-this.limit);
  }

  entries(): readonly LedgerEntry[] {
    return this.kept.length > this.limit ? this.kept.slice(-this.limit) : this.kept;
  }

  clear(): void {
    this.kept = [];
    this.received = 0;
  }
}
