import { ask } from '../../../lib/editor/ask';
import { notify } from '../../../lib/editor/dom';
import { environmentSays as say, locale } from '../../../lib/editor/locale';
import type { EditedNode, Form, Notice } from '../../../lib/editor/red';
import {
  clearStatuses,
  environments,
  environmentType,
  leavesEnvironment,
  usersOf,
} from '../../../lib/editor/flow';
import { isVariable } from '../../../lib/runtime/settings';
import { second } from '../../../lib/durations';
import { question } from './panels';

/** Milliseconds: several nodes may be removed at once, with a tab or a selection. */
const gathering = 100;

/** The number of ids that fit into one address. */
const idsAtOnce = 200;

/** The number of people who are named. */
const mostNames = 3;

/** The environments of a node; for a subflow instance, those of all nodes in it. */
const environmentsOf = ({ type, environment }: Partial<EditedNode>): string[] => {
  const [, subflow] = /^subflow:(.+)$/.exec(type ?? '') ?? [];
  if (subflow !== undefined) return RED.nodes.filterNodes({ z: subflow }).flatMap(environmentsOf);
  if (type?.startsWith('advisor-') !== true || typeof environment !== 'string' || environment === '')
    return [];
  return isVariable(environment) ? environments().map(({ id }) => id) : [environment];
};

/** What has not finished, how many waits are among it, and some of those who wait. */
interface Unfinished {
  readonly count: number;
  readonly waits: number;
  readonly people: readonly string[];
}

/** Without an answer, as for an environment that is not deployed, there is nothing to show. */
export const unfinishedIn = async (
  environment: string,
  ids: readonly string[] = [],
): Promise<Unfinished[]> => {
  const query = new URLSearchParams(ids.map((id) => ['node', id])).toString();
  const asked = ask(say, 'GET', `${encodeURIComponent(environment)}/pending?${query}`) as Promise<Unfinished>;
  return asked.then(
    (answer) => [answer],
    () => [],
  );
};

const listOf = (words: readonly string[]): string => new Intl.ListFormat(locale()).format(words);

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

const counted = (count: number, one: string, many: string): string[] =>
  count === 0 ? [] : [count === 1 ? one : many];

/** Says what would stop, and who waits; undefined when nothing would stop. `limit` says which texts are then not sent. */
export const lossIn = (
  found: readonly Unfinished[],
  sentence: (work: string) => string,
  limit?: string,
): string | undefined => {
  const waits = sumOf(found.map((each) => each.waits));
  const texts = sumOf(found.map(({ count }) => count)) - waits;
  if (waits + texts === 0) return undefined;
  const work = [
    ...counted(waits, say('removal.oneWait', { count: waits }), say('removal.waits', { count: waits })),
    ...counted(texts, say('removal.oneText', { count: texts }), say('removal.texts', { count: texts })),
  ];
  const people = found.flatMap((each) => each.people).slice(0, mostNames);
  const further = waits - people.length;
  const names = [...new Set(people), ...(further > 0 ? [say('removal.more', { count: further })] : [])];
  return [
    sentence(listOf(work)),
    ...(texts > 0 && limit !== undefined ? [limit] : []),
    ...(people.length > 0 ? [say('removal.waiting', { names: listOf(names) })] : []),
  ].join(' ');
};

const lossWith = async (node: EditedNode): Promise<string | undefined> => {
  const name = RED.utils.getNodeLabel(node, node.id);
  const pauses = (work: string): string => say('removal.environment', { name, work });
  return lossIn(await unfinishedIn(node.id), pauses, say('removal.limit'));
};

/** Environments whose deletion was confirmed in their dialog. */
const confirmed = new Set<string>();

/** Asks, before an environment is deleted in its dialog, whether to abandon the people who wait in it. */
export const askBeforeDelete = (form: Form): void => {
  const { node } = form;
  const remove = form.root.closest('.red-ui-tray').find('.red-ui-tray-toolbar .leftButton');
  const asked = $('<div>', { class: 'advisor-warning', role: 'alert' }).hide();
  form.root.prepend(asked);
  const goOn = (): void => {
    confirmed.add(node.id);
    // A click that jQuery triggers would reach the listener below after all others.
    remove[0]?.click();
  };
  const stay = (): void => {
    asked.hide();
    remove.trigger('focus');
  };
  remove[0]?.addEventListener(
    'click',
    (event) => {
      if (confirmed.has(node.id)) return;
      event.stopImmediatePropagation();
      void lossWith(node).then((loss) => {
        if (loss === undefined) {
          goOn();
          return;
        }
        const panel = question(loss, [
          [say('removal.delete'), goOn],
          [say('removal.keep'), stay],
        ]);
        asked.empty().append(panel.element).show();
        panel.focus();
      });
    },
    true,
  );
};

/** Says, when nodes or environments are deleted or disabled, what is still in progress there. */
export const warnOfRemoval = (): void => {
  /** The ids of removed nodes, by environment. */
  const leaving = new Map<string, Set<string>>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** What the notice is about, as long as it has not returned. */
  const gone = new Set<string>();
  let notice: Notice | undefined;

  const warn = (words: string): void => {
    notice = notify(words, 'warning', 20 * second);
  };
  const returns = (about: unknown): void => {
    if (gone.delete((about as EditedNode).id) && gone.size === 0) notice?.close();
  };
  const warnOfNodes = async (): Promise<void> => {
    const asked: Promise<Unfinished[]>[] = [];
    for (const [environment, ids] of leaving)
      for (let from = 0; from < ids.size; from += idsAtOnce)
        asked.push(unfinishedIn(environment, [...ids].slice(from, from + idsAtOnce)));
    leaving.clear();
    const pauses = (work: string): string => say('removal.nodes', { work });
    const loss = lossIn((await Promise.all(asked)).flat(), pauses, say('removal.limit'));
    if (loss !== undefined) warn(loss);
  };
  const warnOfEnvironment = async (node: EditedNode): Promise<void> => {
    clearStatuses(usersOf(node));
    if (confirmed.delete(node.id)) return;
    const loss = await lossWith(node);
    if (loss !== undefined) warn(loss);
  };
  const leaves = (about: unknown): void => {
    const node = about as EditedNode;
    const isEnvironment = node.type === environmentType;
    if (isEnvironment) void warnOfEnvironment(node);
    const environments = environmentsOf(node);
    if (isEnvironment || environments.length > 0) gone.add(node.id);
    if (environments.length === 0) return;
    for (const environment of environments)
      leaving.set(environment, (leaving.get(environment) ?? new Set<string>()).add(node.id));
    clearTimeout(timer);
    timer = setTimeout(() => void warnOfNodes(), gathering);
  };

  const warnOfMove = async (about: unknown): Promise<void> => {
    const node = about as EditedNode;
    // It may be back where its work is.
    notice?.close();
    const asked = environmentsOf(node).map((environment) => unfinishedIn(environment, [node.id]));
    const loss = lossIn((await Promise.all(asked)).flat(), (work) => say('removal.node', { work }));
    if (loss !== undefined) warn(loss);
  };

  RED.events.on(leavesEnvironment, (about) => void warnOfMove(about));
  RED.events.on('nodes:remove', leaves);
  RED.events.on('nodes:add', returns);
  RED.events.on('nodes:change', (about) => {
    ((about as { d?: unknown }).d === true ? leaves : returns)(about);
  });
  RED.events.on('flows:change', (about) => {
    const { id, disabled } = about as { id?: unknown; disabled?: unknown };
    for (const node of RED.nodes.filterNodes({ z: id })) (disabled === true ? leaves : returns)(node);
  });
  RED.events.on('deploy', () => {
    gone.clear();
    notice?.close();
  });
};
