import type { Node, NodeAPI } from 'node-red';
import { flowNode, type Tools } from '../../lib/runtime/flow-node';
import { invalid } from '../../lib/runtime/messages';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { runSearch, searchSettings } from '../../lib/runtime/search';
import { taskHandler, type Run } from '../../lib/runtime/task';
import type { RequestOf } from '../../lib/service/endpoints';
import { longestSearch, spec } from './spec';

type ContentType = NonNullable<RequestOf<'searchContent'>['query']>['contentType'];

/** An empty text finds everything; a number is more likely an inject's timestamp than something to look for. */
const searchTextOf = (value: unknown, where: string): string => {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalid('search_kind', { where });
  const text = value.trim();
  if (text.length > longestSearch) {
    throw invalid('search_long', { length: text.length, longest: longestSearch });
  }
  return text;
};

const searching = (tools: Tools): Run => {
  const settings = searchSettings(tools);
  const search = tools.source('search');
  const contentType = tools.plain.text('contentType') as ContentType;
  return async (task) => {
    const searchText = searchTextOf(await search.read(task.msg), search.where);
    const { pageSize } = settings;
    await runSearch(
      task,
      {
        fetch: (page, signal) =>
          task.caller.call(
            'searchContent',
            { query: { contentType, ...(searchText !== '' && { searchText }), page, pageSize } },
            signal,
          ),
        // The library may list one address under several titles.
        idOf: ({ url, title }) => (typeof url === 'string' ? `${url} ${title ?? ''}` : undefined),
      },
      settings,
    );
  };
};

export const create = (RED: NodeAPI, node: Node, config: Config): void => {
  flowNode(RED, node as RunningNode, config, spec, (tools) => taskHandler(tools, searching(tools)));
};
