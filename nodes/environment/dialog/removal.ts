import { ask } from '../../../lib/editor/ask';
import { notify } from '../../../lib/editor/dom';
import { environmentSays, localNumber } from '../../../lib/editor/locale';
import type { EditedNode, Say } from '../../../lib/editor/red';
import { isVariable } from '../../../lib/editor/values';
import { second } from '../../../lib/durations';

/** Milliseconds: several nodes may be removed at once, with a tab or a selection. */
const gathering = 100;

/** The number of ids that fit into one address. */
const idsAtOnce = 200;

const allEnvironments = (): string[] => {
  const found: string[] = [];
  RED.nodes.eachConfig(({ id, type }) => {
    if (type === 'advisor-environment') found.push(id);
    return true;
  });
  return found;
};

/** The environments of a node; for a use of a subflow, those of all nodes in it. */
const environmentsOf = ({ type, environment }: Partial<EditedNode>): string[] => {
  const [, subflow] = /^subflow:(.+)$/.exec(type ?? '') ?? [];
  if (subflow !== undefined) return RED.nodes.filterNodes({ z: subflow }).flatMap(environmentsOf);
  if (type?.startsWith('advisor-') !== true || typeof environment !== 'string' || environment === '')
    return [];
  return isVariable(environment) ? allEnvironments() : [environment];
};

/** Says, when nodes are deleted or disabled, how many items they still have under way, and what becomes of them. */
export const warnOfRemoval = (): void => {
  const say: Say = (...said) => environmentSays(...said) ?? '';
  /** The ids of removed nodes, by environment. */
  const leaving = new Map<string, Set<string>>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  const countIn = async (environment: string, ids: readonly string[]): Promise<number> => {
    const query = new URLSearchParams(ids.map((id) => ['node', id])).toString();
    const path = `${encodeURIComponent(environment)}/pending?${query}`;
    // Without an answer, as for an environment that is not deployed, there is no number to show.
    const answer = (await ask(say, 'GET', path).catch(() => undefined)) as { count?: number } | undefined;
    return answer?.count ?? 0;
  };
  const tell = async (): Promise<void> => {
    const asked: Promise<number>[] = [];
    for (const [environment, ids] of leaving)
      for (let from = 0; from < ids.size; from += idsAtOnce)
        asked.push(countIn(environment, [...ids].slice(from, from + idsAtOnce)));
    leaving.clear();
    const count = (await Promise.all(asked)).reduce((sum, each) => sum + each, 0);
    if (count > 0) notify(say('removal', { count: localNumber(count) }), 'warning', 20 * second);
  };
  const leaves = (about: unknown): void => {
    const node = about as Partial<EditedNode>;
    const environments = environmentsOf(node);
    if (environments.length === 0) return;
    for (const environment of environments)
      leaving.set(environment, (leaving.get(environment) ?? new Set<string>()).add(String(node.id)));
    clearTimeout(timer);
    timer = setTimeout(() => void tell(), gathering);
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
