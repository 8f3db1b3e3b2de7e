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
import { focusIn, question } from './panels';

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
  const asked = ask('GET', `${encodeURIComponent(environment)}/pending?${query}`) as Promise<Unfinished>;
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

const ofEnvironment =
  (node: EditedNode) =>
  (work: string): string =>
    say('removal.environment', { name: RED.utils.getNodeLabel(node, node.id), work });

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
      void unfinishedIn(node.id).then((found) => {
        const loss = lossIn(found, ofEnvironment(node), say('removal.limit'));
        if (loss === undefined) {
          goOn();
          return;
        }
        const panel = question(loss, [
          [say('removal.delete'), goOn],
          [say('removal.keep'), stay],
        ]);
        focusIn(asked.empty().append(panel).show());
      });
    },
    true,
  );
};

/** In a subflow, a node runs under another id, in each use of it: its work stays behind, also when it is cut and pasted. */
const isMovedBySubflow = (node: EditedNode): boolean => {
  if (!/^(advisor-|subflow:)/.test(node.type)) return false;
  const before = RED.nodes.originalFlow()?.find(({ id }) => id === node.id);
  const places = before && before.z !== node['z'] ? [before.z, node['z']] : [];
  return places.some((z) => typeof z === 'string' && RED.nodes.subflow(z) !== undefined);
};

/** Says, when nodes or environments are deleted, disabled, or moved into or out of a subflow, what is still in progress there. */
export const warnOfRemoval = (): void => {
  /** The ids of removed nodes, by environment. */
  const leaving = new Map<string, Set<string>>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** What the notice is about, as long as it has not returned. */
  const gone = new Set<string>();
  let notice: Notice | undefined;

  const warn = async (
    asked: readonly Promise<Unfinished[]>[],
    sentence: (work: string) => string,
    limit?: string,
  ): Promise<void> => {
    const loss = lossIn((await Promise.all(asked)).flat(), sentence, limit);
    if (loss !== undefined) notice = notify(loss, 'warning', 20 * second);
  };
  const returns = (about: unknown): void => {
    if (isMovedBySubflow(about as EditedNode)) return;
    if (gone.delete((about as EditedNode).id) && gone.size === 0) notice?.close();
  };
  const warnOfNodes = (): void => {
    const asked: Promise<Unfinished[]>[] = [];
    for (const [environment, ids] of leaving)
      for (let from = 0; from < ids.size; from += idsAtOnce)
        asked.push(unfinishedIn(environment, [...ids].slice(from, from + idsAtOnce)));
    leaving.clear();
    void warn(asked, (work) => say('removal.nodes', { work }), say('removal.limit'));
  };
  const warnOfEnvironment = (node: EditedNode): void => {
    clearStatuses(usersOf(node));
    if (!confirmed.delete(node.id))
      void warn([unfinishedIn(node.id)], ofEnvironment(node), say('removal.limit'));
  };
  const leaves = (about: unknown): void => {
    const node = about as EditedNode;
    const isEnvironment = node.type === environmentType;
    if (isEnvironment) warnOfEnvironment(node);
    const environments = environmentsOf(node);
    if (isEnvironment || environments.length > 0) gone.add(node.id);
    if (environments.length === 0) return;
    for (const environment of environments)
      leaving.set(environment, (leaving.get(environment) ?? new Set<string>()).add(node.id));
    clearTimeout(timer);
    timer = setTimeout(warnOfNodes, gathering);
  };

  RED.events.on(leavesEnvironment, (about) => {
    const node = about as EditedNode;
    // It may be back where its work is.
    notice?.close();
    const asked = environmentsOf(node).map((environment) => unfinishedIn(environment, [node.id]));
    void warn(asked, (work) => say('removal.node', { work }));
  });
  RED.events.on('nodes:remove', leaves);
  RED.events.on('nodes:add', returns);
  RED.events.on('nodes:change', (about) => {
    const node = about as EditedNode;
    (node['d'] === true || isMovedBySubflow(node) ? leaves : returns)(node);
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
