import type { ResponseOf } from '../../lib/service/endpoints';
import type { Client } from '../../lib/service/types';
import type { Tools } from '../../lib/runtime/flow-node';
import { refuse } from '../../lib/runtime/messages';
import { failure, problemOf, type Outcome } from '../../lib/runtime/outcomes';
import { outcomeOf } from './answer';
import type { Text } from './prepare';
import type { Resend } from './resend';
import type { Work } from './work';

/** Sends the texts of one node, a few at a time, and sees each of them out. */
export class Dispatch {
  readonly works = new Set<Work>();
  private cancel = new AbortController();
  private isClosing = false;
  private underWay = 0;
  private allLanded: (() => void) | undefined;

  constructor(
    private readonly tools: Tools,
    private readonly isConsentMissing: (result: ResponseOf<'sendMessage'>) => boolean,
    private readonly maxConcurrent: number,
    private readonly told: (outcome: Outcome) => void,
  ) {}

  start(work: Work, client: Client): void {
    this.works.add(work);
    const lanes = Math.min(this.maxConcurrent, work.texts.length);
    for (let lane = 0; lane < lanes; lane++) {
      this.pull(work, client).catch((fault: unknown) => {
        this.tools.node.error(problemOf(fault).message);
      });
    }
  }

  /** Cancels what has not begun; returns how many that were. */
  reset(): number {
    let cancelled = 0;
    for (const work of this.works) {
      work.isCancelled = true;
      cancelled += work.texts.length - work.next;
    }
    this.cancel.abort();
    this.cancel = new AbortController();
    return cancelled;
  }

  /** What has not begun stays on record for the next node of this id; what is under way lands first. */
  close(): Promise<void> {
    this.isClosing = true;
    this.cancel.abort();
    return this.underWay === 0
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.allLanded = resolve;
        });
  }

  private async pull(work: Work, client: Client): Promise<void> {
    while (!this.isClosing) {
      const text = work.texts[work.next];
      if (!text) return;
      work.next += 1;
      await this.send(work, client, text);
    }
  }

  private async send(work: Work, client: Client, text: Text): Promise<void> {
    if (text.wrong) return this.settle(work, text, failure(text.wrong));
    if (text.sentAs !== undefined) return this.settle(work, text, this.alreadySent(work, text.sentAs));
    if (work.isCancelled) return this.settle(work, text, failure(refuse('cancelled', 'cancelled').problem));
    const { advisor, delivery } = work.order;
    const { phone = '', text: words = '' } = text;
    let hasBegun = false;
    this.underWay += 1;
    try {
      const { data, attempts } = await client.call(
        'sendMessage',
        { body: { phone, text: words, ...delivery } },
        {
          advisor,
          lane: this.tools.node.id,
          signal: this.cancel.signal,
          begin: () => {
            hasBegun = true;
            return work.entry.begin(text.index);
          },
        },
      );
      const { isConsentMissing } = this;
      await this.settle(
        work,
        text,
        outcomeOf(data, { attempts, scheduled: delivery !== undefined, isConsentMissing }),
      );
    } catch (thrown) {
      const why = problemOf(thrown);
      if (!this.isClosing || why.code !== 'cancelled') await this.settle(work, text, failure(why));
      else if (hasBegun) await work.entry.outcome(text.index, { again: true });
    } finally {
      this.underWay -= 1;
      if (this.underWay === 0) this.allLanded?.();
    }
  }

  /** Puts the outcome on record, then tells it; its duplicates go with it. */
  async settle(work: Work, text: Text, outcome: Outcome): Promise<void> {
    const texts = [text, ...(work.duplicates.get(text.index) ?? [])];
    const outcomes = texts.map((each) => this.dress(work, each, outcome));
    await this.record(work, texts, outcomes, this.isClosing);
    if (this.isClosing) {
      await this.record(work, texts, outcomes, true);
      return;
    }
    texts.forEach((each, position) => {
      this.tell(work, each, outcomes[position] ?? outcome);
    });
  }

  tell(work: Work, text: Text, outcome: Outcome): void {
    work.job.leave(text.index, outcome);
    work.entry.told(text.index);
    work.left -= 1;
    if (work.left === 0) this.works.delete(work);
    this.told(outcome);
  }

  private async record(
    work: Work,
    texts: readonly Text[],
    outcomes: readonly Outcome[],
    untold: boolean,
  ): Promise<void> {
    await Promise.all(
      texts.map(({ index }, position) => {
        const outcome = outcomes[position];
        return outcome && work.entry.outcome(index, { outcome, ...(untold && { untold }) });
      }),
    );
  }

  private alreadySent(work: Work, duplicateOf: number): Outcome {
    const scheduled = work.order.delivery !== undefined;
    return { port: 0, payload: { messageId: null, memberId: null, scheduled, attempts: 0, duplicateOf } };
  }

  /** The fields a texting node writes as used, and what the message needs to come round again. */
  private dress(work: Work, text: Text, outcome: Outcome): Outcome {
    const { advisor } = work.order;
    const { phone, text: words, recipient, duplicateOf } = text;
    const isDuplicate = duplicateOf !== undefined;
    const dressed: Outcome = {
      ...outcome,
      ...(isDuplicate && outcome.port !== 1 && { payload: { ...(outcome.payload as object), duplicateOf } }),
      set: {
        ...(phone !== undefined && { phone }),
        ...(words !== undefined && { text: words }),
        ...(advisor !== '' && { advisor }),
        ...(recipient && { recipient }),
      },
    };
    if (outcome.port !== 2 || phone === undefined || words === undefined) return dressed;
    const resend: Resend = {
      node: this.tools.node.id,
      phone,
      text: words,
      advisor,
      ...(isDuplicate && { duplicateOf }),
    };
    return { ...dressed, carry: { resend } };
  }
}
