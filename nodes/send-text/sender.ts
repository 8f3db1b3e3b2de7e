import { consentTest } from '../../lib/consent/missing';
import type { Environment } from '../../lib/runtime/environment';
import { readAll } from '../../lib/runtime/fields';
import { isOrder, look, type Handler, type Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import { failure, problemOf, type Outcome } from '../../lib/runtime/outcomes';
import type { Message } from '../../lib/runtime/red';
import { Dispatch } from './dispatch';
import { openLedger, type Ledger, type Order } from './ledger';
import { prepareTexts, textOf, type Text } from './prepare';
import { takeResend, type Resend } from './resend';
import { takeUp } from './resume';
import { deliveryOf } from './schedule';
import { sendStatus } from './status';
import { workOf, type Work } from './work';

/** The property of the message that holds the list: it is not copied for each recipient. */
const topOf = (path: unknown): string | undefined => /^[\w$]+/.exec(String(path))?.[0];

interface Ready {
  readonly environment: Environment;
  readonly ledger: Ledger;
  readonly dispatch: Dispatch;
}

/** From a message to one outcome per recipient. */
export class Sender implements Handler {
  private readonly phones;
  private readonly texts;
  private readonly schedule;
  private readonly giveText;
  private readonly isScheduled: boolean;
  private readonly showOutcome: (works: ReadonlySet<Work>, outcome: Outcome) => void;
  private ready: Ready | undefined;
  /** What a predecessor left is read before the first message is taken, or it would be taken for its own. */
  private opening: Promise<void> | undefined;

  constructor(private readonly tools: Tools) {
    this.phones = tools.source('phone');
    this.texts = tools.source('text');
    this.schedule = [tools.source('deliveryDate'), tools.source('frequency')];
    this.giveText = textOf(this.texts);
    this.isScheduled = tools.plain<string>('schedule') === 'at';
    this.showOutcome = sendStatus(tools);
    this.opening = this.open().finally(() => {
      this.opening = undefined;
    });
  }

  control(msg: Message): boolean {
    if (!isOrder(msg, 'reset')) return false;
    const count = this.ready?.dispatch.reset() ?? 0;
    this.tools.status.show(() => look('grey', 'ring', this.tools.words.say('status.cancelled', { count })));
    return true;
  }

  input(msg: Message, job: Job): void | Promise<void> {
    if (this.opening) return this.opening.then(() => this.input(msg, job));
    const again = takeResend(msg, this.tools.node.id);
    const values = readAll(
      [
        this.tools.advisorSource,
        ...(again ? [] : [this.phones, this.texts]),
        ...(this.isScheduled ? this.schedule : []),
      ],
      msg,
    );
    return values instanceof Promise
      ? values.then((read) => {
          this.take(msg, job, again, read);
        })
      : this.take(msg, job, again, values);
  }

  async close(): Promise<void> {
    await this.opening;
    await this.ready?.dispatch.close();
    await this.ready?.ledger.settle();
  }

  private take(msg: Message, job: Job, again: Resend | undefined, values: readonly unknown[]): void {
    const [advisor, ...others] = values;
    const [phones, text] = again ? [] : others.splice(0, 2);
    const country = this.ready?.environment.settings.country ?? '';
    const { list, texts } = again
      ? { list: false, texts: [textAgain(again)] }
      : prepareTexts(phones, this.phones.where, country, (recipient) => this.giveText(recipient, msg, text));
    const shared = this.phones.type === 'msg' ? topOf(this.phones.value) : undefined;
    if (list) job.asList(texts.length, shared);
    const id = job.sequenceId;
    const sequence = id === undefined ? {} : { list: { id, ...(shared !== undefined && { shared }) } };

    let order: Order;
    try {
      const environment = this.tools.environment();
      const { clock, settings } = environment;
      const [date, frequency] = others;
      order = {
        ...sequence,
        advisor: again?.advisor ?? this.tools.advisor(environment, advisor, msg),
        ...(this.isScheduled && {
          delivery: deliveryOf(date, frequency, settings.deliveryDateUnit, clock.now()),
        }),
      };
    } catch (thrown) {
      const why = failure(problemOf(thrown));
      for (const each of texts) job.leave(each.index, each.wrong ? failure(each.wrong) : why);
      this.showOutcome(new Set(), why);
      return;
    }
    this.begin(msg, job, order, texts);
  }

  private begin(msg: Message, job: Job, order: Order, texts: readonly Text[]): void {
    if (!this.ready) throw new Error('the journal is not open');
    const { ledger, dispatch, environment } = this.ready;
    const entry = ledger.accept(this.tools.node.id, { message: msg, recipients: texts, context: order });
    this.run(dispatch, environment, workOf(job, order, entry, texts));
  }

  /** The client is there from the second message on; what must wait for it is on record by then. */
  private run(dispatch: Dispatch, environment: Environment, work: Work): void {
    const refuseAll = (thrown: unknown): void => {
      const why = problemOf(thrown);
      for (const text of work.texts) void dispatch.settle(work, text, failure(text.wrong ?? why));
    };
    try {
      const client = environment.client();
      if (client instanceof Promise) {
        client.then((made) => {
          dispatch.start(work, made);
        }, refuseAll);
      } else {
        dispatch.start(work, client);
      }
    } catch (thrown) {
      refuseAll(thrown);
    }
  }

  private async open(): Promise<void> {
    const { tools } = this;
    try {
      const environment = tools.environment();
      const { settings } = environment;
      const { ledger, isUnsaved } = await openLedger(environment);
      if (isUnsaved) tools.markUnsaved();
      const dispatch: Dispatch = new Dispatch(
        tools,
        consentTest(settings.consentPattern),
        settings.maxConcurrent,
        (outcome) => {
          this.showOutcome(dispatch.works, outcome);
        },
      );
      const left = await ledger.resume(tools.node.id, settings.resumeWithin);
      this.ready = { environment, ledger, dispatch };
      if (left.length > 0) {
        tools.whenStarted(() => {
          for (const each of left) {
            this.run(dispatch, environment, takeUp(tools, dispatch, each));
          }
        });
      }
    } catch (thrown) {
      this.showOutcome(new Set(), failure(problemOf(thrown)));
    }
  }
}

const textAgain = ({ phone, text, duplicateOf }: Resend): Text => ({
  index: 0,
  phone,
  text,
  ...(duplicateOf !== undefined && { sentAs: duplicateOf }),
});
