import type { Tools } from '../../lib/runtime/flow-node';
import { refuse } from '../../lib/runtime/messages';
import { failure } from '../../lib/runtime/outcomes';
import type { Resumed, Todo } from '../../lib/state/journal';
import type { Dispatch } from './dispatch';
import type { Kept, Order } from './ledger';
import type { Text } from './prepare';
import { workOf, type Work } from './work';

const unknown = () =>
  failure(refuse('outcome_unknown', 'unknown_after_restart', {}, { attempts: 1 }).problem);
const stale = () => failure(refuse('stale', 'stale').problem);

const isOpen = (todo: Todo<Text, Kept>): boolean =>
  todo.what === 'send' || (todo.what === 'tell' && 'again' in todo.outcome);

/** A duplicate goes with its original; without one, nobody knows any more what became of it. */
const isToSend = (todo: Todo<Text, Kept>, sending: ReadonlySet<number>): boolean => {
  const { duplicateOf } = todo.recipient;
  return isOpen(todo) && (duplicateOf === undefined || sending.has(duplicateOf));
};

/** Tells what a restart left to tell, and returns what it left to send. */
export const takeUp = (
  tools: Tools,
  dispatch: Dispatch,
  { entry, message, dropped, context, count, open }: Resumed<Text, Kept>,
): Work => {
  const order = context as Order;
  const job = tools.resumed(message);
  if (order.list) job.asList(count, order.list.shared, order.list.id);
  if (dropped) tools.warnOfDropped();

  const originals = open.filter((todo) => isOpen(todo) && todo.recipient.duplicateOf === undefined);
  const sending = new Set(originals.map(({ index }) => index));
  const texts = open.filter((todo) => isToSend(todo, sending)).map(({ recipient }) => recipient);
  const work = workOf(job, order, entry, texts, open.length);
  work.left = open.length;
  dispatch.works.add(work);

  for (const todo of open) {
    if (isToSend(todo, sending)) continue;
    if (todo.what === 'tell' && 'outcome' in todo.outcome) {
      const { outcome, untold } = todo.outcome;
      dispatch.tell(work, todo.recipient, untold ? outcome : { ...outcome, repeated: true });
    } else {
      void dispatch.settle(work, todo.recipient, todo.what === 'stale' ? stale() : unknown());
    }
  }
  return work;
};
