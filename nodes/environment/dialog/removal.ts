import { ask } from '../../../lib/editor/ask';
import { environmentSays, numberOf } from '../../../lib/editor/locale';
import type { EditedNode, Say } from '../../../lib/editor/red';

/** Several nodes go at once: with a tab, or with what was selected. */
const gathering = 100;

const isOurs = (about: unknown): about is EditedNode => {
  const { type, environment } = about as Partial<EditedNode>;
  return type?.startsWith('advisor-') === true && typeof environment === 'string' && environment !== '';
};

/** Says, when nodes are deleted or disabled, how much they still have under way, and what becomes of it. */
export const warnOfRemoval = (): void => {
  const say: Say = (...said) => environmentSays(...said) ?? '';
  const leaving = new Map<string, EditedNode>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  const countOf = async ({ id, environment }: EditedNode): Promise<number> => {
    const query = new URLSearchParams({ node: id }).toString();
    const path = `${encodeURIComponent(String(environment))}/pending?${query}`;
    // Without an answer, as for an environment that is not deployed, there is no number to tell.
    const answer = (await ask(say, 'GET', path).catch(() => undefined)) as { count?: number } | undefined;
    return answer?.count ?? 0;
  };
  const tell = async (): Promise<void> => {
    const nodes = [...leaving.values()];
    leaving.clear();
    const counts = await Promise.all(nodes.map(countOf));
    const count = counts.reduce((sum, each) => sum + each, 0);
    if (count > 0)
      RED.notify(say('removal', { count: numberOf(count) }), { type: 'warning', timeout: 20_000 });
  };
  const leaves = (about: unknown): void => {
    if (!isOurs(about)) return;
    leaving.set(about.id, about);
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
