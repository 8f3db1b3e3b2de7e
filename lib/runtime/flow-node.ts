import type { Mutable } from '../mutable';
import type { ItemData } from '../outbox/records';
import { processMemory } from '../process-memory';
import { systemClock } from '../service/clock';
import { ServiceError, serviceError } from '../service/errors';
import { StoreClosed, TakenOver } from '../state/store';
import { activityOf } from './activity';
import { atNextStart, madeLate, outputsOf } from './delivery';
import type { Environment } from './environment';
import { invalidInput, problemOf } from './errors';
import { faultInSettings, noSource, plainSettings, source, type Source } from './inputs';
import { asText, isBlank, sameName, tried } from '../kinds';
import { wordsOf } from './language';
import type { Message, Red, RunningNode } from './red';
import type { Config } from './register';
import type { NodeSpec } from './spec';
import { createStatus } from './status';

export const environmentOf = (RED: Red, id: unknown): Environment | undefined => {
  const found = typeof id === 'string' && id !== '' ? (RED.nodes.getNode(id) as unknown) : undefined;
  return (found as { environment?: Environment } | null | undefined)?.environment;
};

/**
 * Makes a node again whose environment was missing, once it is there: Node-RED restarts the nodes of an environment that
 * is removed or changed by a deploy of modified nodes, but not those of one that is added.
 */
export const whenAdded = (RED: Red, node: RunningNode, environment: unknown, make: () => void): void => {
  let closes = 0;
  const look = (): void => {
    if (!environmentOf(RED, environment)) {
      forget = atNextStart(RED, look);
      return;
    }
    void node.close(false).then(() => {
      // A deploy may have closed the node meanwhile.
      if (closes > 1) return;
      node.removeAllListeners('close');
      make();
      madeLate(RED);
    });
  };
  let forget = atNextStart(RED, look);
  node.on('close', () => {
    closes += 1;
    forget();
  });
};

const theOnlyOne = (environment: Environment): string => {
  const known = environment.advisors();
  const [only] = known;
  if (only === undefined) {
    throw serviceError('authorization_required', 'nobody_authorized', { environment: environment.name });
  }
  if (known.length > 1) {
    throw invalidInput('several_advisors');
  }
  return only;
};

const authorized = (environment: Environment, advisor: string): string => {
  const { name } = environment;
  switch (environment.advisorState(advisor)) {
    case 'authorized':
      return advisor;
    case 'authorize_again':
      throw serviceError('authorization_required', 'authorization_ended', { advisor, name });
    case 'unknown': {
      const known = environment.advisors().find((each) => sameName(each, advisor));
      throw known === undefined
        ? serviceError('authorization_required', 'advisor_unauthorized', { advisor, environment: name })
        : serviceError('authorization_required', 'advisor_case', { advisor, known, environment: name });
    }
  }
};

/** The advisor that a recipient's object names; undefined when it names none. Throws when it is not authorized. */
export const ownAdvisor = (environment: Environment, value: unknown): string | undefined => {
  if (isBlank(value)) return undefined;
  const key = asText(value)?.trim();
  if (key === undefined) throw invalidInput('advisor_own');
  return authorized(environment, key);
};

/** The advisor of the chosen source, else `msg.advisor`; empty when neither names one. */
export const anyAdvisor = (chosen: Source, value: unknown, msg: Message, isOfList = false): string => {
  const isChosen = !isBlank(chosen.value);
  const given = isChosen ? value : msg.advisor;
  const where = isChosen ? chosen.where : 'msg.advisor';
  if (isChosen && isBlank(given))
    throw invalidInput(isOfList ? 'advisor_of_rows' : 'advisor_empty', { where });
  const key = isBlank(given) ? '' : asText(given)?.trim();
  if (key === undefined) throw invalidInput('advisor_value', { where });
  return key;
};

/** Whether the advisor is authorized, or anybody when it is empty; false when the environment is not configured. */
export const isAuthorized = (environment: Environment, advisor: string): boolean =>
  tried(() => {
    const known = advisor === '' ? environment.advisors() : [advisor];
    return known.some((each) => environment.advisorState(each) === 'authorized');
  }) ?? false;

/** The environment and service of each node's latest status. */
const shownFor = processMemory('statuses', new Map<string, string>());

/** What a node's own part works with. */
export type Tools = ReturnType<typeof toolsOf>;

export const toolsOf = (RED: Red, node: RunningNode, spec: NodeSpec, config: Config) => {
  const words = wordsOf(RED);
  const found = environmentOf(RED, config['environment']);
  const closing = new AbortController();
  const status = createStatus(node, words, found, shownFor.has(node.id));
  const activity = found && activityOf(found);
  const space = activity?.space ?? '';
  if ((shownFor.get(node.id) ?? space) !== space) node.status({});
  shownFor.set(node.id, space);
  let forgetStart = (): void => undefined;
  const flowsStarted = new Promise<void>((resolve) => {
    forgetStart = atNextStart(RED, resolve);
  });
  const outputs = outputsOf(RED, node, spec.outputs, words.problem, activity);
  // Not every node acts for an advisor.
  const hasAdvisor = spec.fields.some(({ name }) => name === 'advisor');
  const advisorSource = hasAdvisor ? source(RED, node, spec, config, 'advisor') : noSource;
  /** The last advisor that was found authorized. If that has ended since, the request for a token notices. */
  let lastAdvisor: { readonly asked: string; readonly found: string } | undefined;
  const wrongSettings = faultInSettings(spec, config);

  /** Throws `not_configured` when the node has no environment, or a disabled one. */
  const environment = (): Environment => {
    if (found) return found;
    throw serviceError('not_configured', 'no_environment');
  };

  /** Throws `invalid_input` when a setting of this node is wrong. */
  const checkSettings = (): void => {
    if (wrongSettings) throw wrongSettings;
  };

  return {
    RED,
    node,
    words,
    status,
    outputs,
    activity,
    advisorSource,
    environment,
    checkSettings,
    source: (name: string) => source(RED, node, spec, config, name),
    plain: plainSettings(spec, config),
    country: found?.settings.country ?? '',
    /** The environment's clock, by which statuses show times; a simulator's can be moved. */
    clock: found?.clock ?? systemClock,
    closed: closing.signal,
    /**
     * The advisor that a message is for. Checks the settings first. If the advisor cannot be determined, items that name
     * their own do not fail.
     */
    advisor(
      value: unknown,
      msg: Message,
      items: readonly Mutable<Pick<ItemData, 'advisor' | 'wrong'>>[] = [],
      isList = false,
    ): string {
      const from = environment();
      checkSettings();
      try {
        const asked = anyAdvisor(advisorSource, value, msg, isList);
        if (lastAdvisor?.asked !== asked)
          lastAdvisor = { asked, found: authorized(from, asked || theOnlyOne(from)) };
        return lastAdvisor.found;
      } catch (thrown) {
        if (!(thrown instanceof ServiceError) || thrown.code === 'not_configured') throw thrown;
        if (!items.some(({ advisor }) => advisor !== undefined)) throw thrown;
        for (const item of items) if (item.advisor === undefined) item.wrong ??= thrown.problem;
        return '';
      }
    },
    forgetAdvisor(): void {
      lastAdvisor = undefined;
    },
    fault: (thrown: unknown): void => {
      // The work is saved: the next start, or the process that took over the store, resumes it.
      if (!(thrown instanceof TakenOver || thrown instanceof StoreClosed))
        node.error(words.problem(problemOf(thrown)));
    },
    /** Runs the task when all nodes can be sent to. */
    whenStarted(task: () => void): void {
      void flowsStarted.then(task);
    },
    close(): void {
      closing.abort();
      status.close();
      forgetStart();
    },
  };
};
