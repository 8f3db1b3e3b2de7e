import { ask } from '../../../lib/editor/ask';
import { notify } from '../../../lib/editor/dom';
import { environmentSays, locale, localNumber } from '../../../lib/editor/locale';
import type { EditedNode, Form, Say } from '../../../lib/editor/red';
import { clearStatuses, usersOf } from '../../../lib/editor/status';
import { isVariable } from '../../../lib/editor/values';
import { second } from '../../../lib/durations';
import type { Listed, WaitItem } from '../../../lib/runtime/activity-items';
import { question } from './panels';

/** Milliseconds: several nodes may be removed at once, with a tab or a selection. */
const gathering = 100;

/** The number of ids that fit into one address. */
const idsAtOnce = 200;

/** The number of people who are named. */
const mostNames = 3;

const environmentType = 'advisor-environment';

const say: Say = (...said) => environmentSays(...said) ?? '';

const allEnvironments = (): string[] => {
  const found: string[] = [];
  RED.nodes.eachConfig(({ id, type }) => {
    if (type === environmentType) found.push(id);
    return true;
  });
  return found;
};

/** The environments of a node; for a subflow instance, those of all nodes in it. */
const environmentsOf = ({ type, environment }: Partial<EditedNode>): string[] => {
  const [, subflow] = /^subflow:(.+)$/.exec(type ?? '') ?? [];
  if (subflow !== undefined) return RED.nodes.filterNodes({ z: subflow }).flatMap(environmentsOf);
  if (type?.startsWith('advisor-') !== true || typeof environment !== 'string' || environment === '')
    return [];
  return isVariable(environment) ? allEnvironments() : [environment];
};

/** Without an answer, as for an environment that is not deployed, there is nothing to show. */
const read = async <T>(environment: string, path: string): Promise<T | undefined> =>
  (await ask(say, 'GET', `${encodeURIComponent(environment)}/${path}`).catch(() => undefined)) as
    T | undefined;

const countIn = async (environment: string, ids: readonly string[] = []): Promise<number> => {
  const query = new URLSearchParams(ids.map((id) => ['node', id])).toString();
  return (await read<{ count?: number }>(environment, `pending?${query}`))?.count ?? 0;
};

/** What would stop with an environment, and who waits there; undefined when nothing would. */
const lossWith = async ({ id, name }: Pick<EditedNode, 'id' | 'name'>): Promise<string | undefined> => {
  const count = await countIn(id);
  if (count === 0) return undefined;
  const waits = await read<Listed<WaitItem>>(id, `waits?page=1&pageSize=${String(mostNames)}`);
  const data = waits?.data ?? [];
  const people = new Map(
    data.map(({ name, phone, memberId }) => [phone ?? memberId, name ?? phone ?? memberId]),
  );
  const further = (waits?.pageInfo.totalRecord ?? data.length) - data.length;
  const names = [
    ...[...people.values()].map(String),
    ...(further > 0 ? [say('removal.more', { count: localNumber(further) })] : []),
  ];
  return [
    say('removal.environment', { name: name ?? '', count: localNumber(count) }),
    ...(names.length > 0
      ? [say('removal.waiting', { names: new Intl.ListFormat(locale()).format(names) })]
      : []),
  ].join(' ');
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
      void lossWith({ id: node.id, name: RED.utils.getNodeLabel(node, node.id) }).then((loss) => {
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

  const warn = (words: string): void => {
    notify(words, 'warning', 20 * second);
  };
  const warnOfNodes = async (): Promise<void> => {
    const asked: Promise<number>[] = [];
    for (const [environment, ids] of leaving)
      for (let from = 0; from < ids.size; from += idsAtOnce)
        asked.push(countIn(environment, [...ids].slice(from, from + idsAtOnce)));
    leaving.clear();
    const count = (await Promise.all(asked)).reduce((sum, each) => sum + each, 0);
    if (count > 0) warn(say('removal.nodes', { count: localNumber(count) }));
  };
  const warnOfEnvironment = async (node: EditedNode): Promise<void> => {
    clearStatuses(usersOf(node));
    if (confirmed.delete(node.id)) return;
    const loss = await lossWith({ id: node.id, name: RED.utils.getNodeLabel(node, node.id) });
    if (loss !== undefined) warn(loss);
  };
  const leaves = (about: unknown): void => {
    const node = about as EditedNode;
    if (node.type === environmentType) void warnOfEnvironment(node);
    const environments = environmentsOf(node);
    if (environments.length === 0) return;
    for (const environment of environments)
      leaving.set(environment, (leaving.get(environment) ?? new Set<string>()).add(node.id));
    clearTimeout(timer);
    timer = setTimeout(() => void warnOfNodes(), gathering);
  };

  RED.events.on('nodes:remove', leaves);
  RED.events.on('nodes:change', (about) => {
    if ((about as { d?: unknown }).d === true) leaves(about);
  });
  RED.events.on('flows:change', (about) => {
    const { id, disabled } = about as { id?: unknown; disabled?: unknown };
    if (disabled === true) for (const node of RED.nodes.filterNodes({ z: id })) leaves(node);
  });
};
