import { setImmediate as nextTurn } from 'node:timers/promises';
import { liveMessages } from '../state/messages';
import type { Table, Write } from '../state/store';
import type { Book, Wait } from './book';
import type { Shelf } from './shelf';
import { subjectIn, type Subject } from './subjects';
import type { WaitOutcome } from './verdict';
import { idIn, messageKey, outcomeKey, type MessageRecord, type Stored } from './wait-records';

/** A wait that has ended, as its node is told of it. */
export interface Settled {
  readonly id: string;
  /** Its own copy for a single wait; one for all waits of a list, and the original where disk could not hold it. */
  readonly message: Record<string, unknown>;
  /** Parts of the message could not be kept (`req`, functions) and are gone. */
  readonly dropped: boolean;
  readonly advisor: string;
  readonly subject: Subject;
  readonly start: number;
  /** How many waits the message began. */
  readonly count: number;
  /** What the node keeps with the message, and with this wait. */
  readonly about: unknown;
  readonly context: unknown;
  readonly outcome: WaitOutcome;
  /** It may have been told before the process was killed. */
  readonly repeated: boolean;
}

/** Gives whether it has reached the next node, which a deploy or a shutdown may close first. */
export type Tell = (settled: Settled) => Promise<boolean>;

export type Ended = readonly [Wait, WaitOutcome];

/** Of thousands that end at once, one commit each would take minutes, and all in one turn would hold up Node-RED. */
export const settledTogether = 100;

/** Outcomes on disk that this process knows were not told, because their node closed first: not repeated, then. */
const untold = new Set<string>();

/** Ends waits: the outcome is on disk before it is told, and gone some time after. */
export class Telling {
  /** How many waits each message of a list still has. */
  private readonly left = new Map<string, number>();
  /** The waits of a list end one after the other: reading its message for each would cost the square of its length. */
  private latest: { readonly key: string; readonly kept: MessageRecord | undefined } | undefined;

  constructor(
    private readonly table: Table<Stored>,
    private readonly book: Book,
    private readonly shelf: Shelf,
    private readonly node: string,
    private readonly tell: Tell,
    private readonly isClosed: () => boolean,
  ) {}

  expect(messageId: string, count: number): void {
    if (count > 1) this.left.set(messageId, (this.left.get(messageId) ?? 0) + 1);
  }

  /**
   * In a node that has closed they are only noted, for the next of its id to tell. `reached` is called as each is about
   * to be told: when this throws, the others can be settled again.
   */
  async settle(ended: readonly Ended[], reached?: () => void): Promise<void> {
    for (let at = 0; at < ended.length; at += settledTogether) {
      const some = ended.slice(at, at + settledTogether);
      await this.note(some);
      for (const [wait, outcome] of some) await this.tellOne(wait, outcome, reached);
      await nextTurn();
    }
  }

  /** Puts outcomes on disk, to be told by this node or the next of its id; the embedded store has them at once. */
  async note(ended: readonly Ended[]): Promise<void> {
    const notes = ended
      .map(([wait, value]) => ({ put: outcomeKey(this.node, this.book.idOf(wait)), value }))
      .filter(({ put }) => !untold.has(put));
    await this.table.write(notes);
    for (const { put } of notes) untold.add(put);
  }

  /** Those that had ended and may not have been told when the node last stopped. */
  async ended(): Promise<ReadonlyMap<string, WaitOutcome>> {
    const ended = new Map<string, WaitOutcome>();
    for await (const [key, outcome] of this.table.entries(`${this.node}/o/`)) {
      ended.set(idIn(key), outcome as WaitOutcome);
    }
    return ended;
  }

  async tellOne(wait: Wait, outcome: WaitOutcome, reached?: () => void): Promise<void> {
    if (this.isClosed()) return;
    const id = this.book.idOf(wait);
    const messageId = this.book.messageIdOf(wait);
    const record = await this.shelf.get(wait, id);
    const kept = await this.messageOf(messageKey(this.node, messageId), record?.[3] ?? 1);
    if (this.isClosed()) return;
    reached?.();
    const alive = liveMessages.get(messageKey(this.node, messageId));
    if (record && (alive ?? kept)) {
      const [advisor, stored, start, count] = record;
      const subject = subjectIn(stored);
      const context = kept?.contexts[this.book.indexOf(wait)];
      const repeated = !untold.has(outcomeKey(this.node, id));
      const message = alive ?? kept?.message ?? {};
      const dropped = kept?.dropped === true && !alive;
      const about = kept?.about;
      const settled = {
        id,
        message,
        dropped,
        advisor,
        subject,
        start,
        count,
        about,
        context,
        outcome,
        repeated,
      };
      while (!(await this.tell(settled))) if (this.isClosed()) return;
      untold.delete(outcomeKey(this.node, id));
    }
    this.remove(wait, id, messageId);
  }

  private async messageOf(key: string, count: number): Promise<MessageRecord | undefined> {
    if (this.latest?.key === key) return this.latest.kept;
    const kept = (await this.table.get(key)) as MessageRecord | undefined;
    this.latest = count > 1 ? { key, kept } : undefined;
    return kept;
  }

  private remove(wait: Wait, id: string, messageId: string): void {
    const writes: Write<Stored>[] = [{ remove: outcomeKey(this.node, id) }];
    const left = (this.left.get(messageId) ?? 1) - 1;
    if (left > 0) this.left.set(messageId, left);
    else {
      this.left.delete(messageId);
      liveMessages.forget(messageKey(this.node, messageId));
      writes.push({ remove: messageKey(this.node, messageId) });
    }
    this.shelf.remove(wait, id, writes);
    this.book.strike(wait);
  }
}
