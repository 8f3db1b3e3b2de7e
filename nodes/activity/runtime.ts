import { operationNode, type SearchOperation } from '../../lib/address-book/operation';
import type { ResultPage } from '../../lib/service/endpoints';
import { runSearch, searchSettings, type Search } from '../../lib/address-book/search';
import { activityOf, mostFailuresKept, pageIn, sentenceOf, type Activity } from '../../lib/runtime/activity';
import type { Environment } from '../../lib/runtime/environment';
import { failedOutcome, invalidInput, problemOf } from '../../lib/runtime/errors';
import { serviceError } from '../../lib/service/errors';
import { anyAdvisor, type Tools } from '../../lib/runtime/flow-node';
import { oneOrList, pathIn } from '../../lib/runtime/inputs';
import { Tally } from '../../lib/runtime/delivery';
import type { Outcome } from '../../lib/outbox/outcome';
import { spec } from './spec';

interface ActivityItem {
  readonly id?: string;
  readonly advisor: string | null;
}

interface ActivityReading {
  all(): AsyncIterable<ActivityItem> | Promise<readonly ActivityItem[]>;
  page(asked: { page: number; pageSize: number; advisor?: string }): Promise<ResultPage<ActivityItem>>;
}

const readingOf = (what: string, activity: Activity, tools: Tools): ActivityReading => {
  switch (what) {
    case 'waits':
      return { all: () => activity.allWaits(), page: (asked) => activity.waits(asked) };
    case 'queue':
      return { all: () => activity.allQueued(), page: (asked) => activity.queue(asked) };
    case 'failures': {
      const page: ActivityReading['page'] = async (asked) => {
        const { data, pageInfo } = await activity.failures(asked);
        const shown = data.map((failure) => {
          const { problem: _, ...rest } = failure;
          return { ...rest, message: sentenceOf(failure, tools.words) };
        });
        return { data: shown, pageInfo };
      };
      return { all: async () => (await page({ page: 1, pageSize: mostFailuresKept })).data, page };
    }
    default: {
      const all = () => tools.environment().advisorList();
      return {
        all,
        async page(asked) {
          const { advisor } = asked;
          const meant = (await all()).filter((each) => advisor === undefined || each.advisor === advisor);
          return pageIn(meant, asked);
        },
      };
    }
  }
};

const checked = (tools: Tools): Environment => {
  tools.checkSettings();
  return tools.environment();
};

const listing = (tools: Tools, what: string): SearchOperation => {
  const settings = searchSettings(tools);
  const { advisorSource } = tools;
  return {
    kind: 'search',
    async prepare(msg) {
      const environment = checked(tools);
      const advisor = anyAdvisor(advisorSource, await advisorSource.read(msg), msg) || undefined;
      // An advisor who must authorize again may still have waits and failures to show.
      if (advisor !== undefined && environment.advisorState(advisor) === 'unknown')
        throw serviceError('authorization_required', 'advisor_unauthorized', {
          advisor,
          environment: environment.name,
        });
      const reading = readingOf(what, activityOf(environment), tools);
      // The count of the queue includes duplicates, which are not items: it cannot be used as a total.
      const isCounted = !settings.all || (advisor === undefined && what !== 'queue');
      const search: Search<ActivityItem> = {
        fetch: (page, pageSize) =>
          reading.page({ page, pageSize, ...(isCounted && advisor !== undefined && { advisor }) }),
        all: () => reading.all(),
        matches: isCounted ? undefined : (item) => advisor === undefined || item.advisor === advisor,
      };
      return (stream) => runSearch(stream, search, settings);
    },
  };
};

const doing = (tools: Tools, act: (activity: Activity, id: string) => Promise<boolean>): SearchOperation => {
  const itemId = tools.source('itemId');
  const outcomeOf = async (activity: Activity, value: unknown): Promise<Outcome> => {
    try {
      if (typeof value !== 'string' || value.trim() === '')
        throw invalidInput('item_missing', { where: itemId.where });
      const id = value.trim();
      if (!(await act(activity, id))) throw serviceError('not_found', 'item_gone');
      return { port: 0, payload: { id } };
    } catch (thrown) {
      return failedOutcome(problemOf(thrown));
    }
  };
  return {
    kind: 'search',
    async prepare(msg) {
      const activity = activityOf(checked(tools));
      const { items, list } = oneOrList(await itemId.read(msg), itemId.where);
      return async (stream) => {
        if (list) stream.job.asList(items.length, { listAt: pathIn(tools.RED, itemId, msg) });
        const tally = new Tally(tools.outputs);
        for (const [index, entry] of items.entries()) {
          const outcome = await outcomeOf(activity, entry);
          tally.add(outcome);
          const summary = tally.total === items.length ? tally.summary : undefined;
          stream.job.emit(index, outcome, { entry, summary });
        }
        const { done = 0 } = tally.counts;
        stream.show(done > 0 ? 'done' : 'failed', done);
      };
    },
  };
};

export const create = operationNode(spec, (tools) => ({
  waits: listing(tools, 'waits'),
  queue: listing(tools, 'queue'),
  failures: listing(tools, 'failures'),
  advisors: listing(tools, 'advisors'),
  check: doing(tools, (activity, id) => activity.check(id)),
  cancel: doing(tools, (activity, id) => activity.cancel(id)),
}));
