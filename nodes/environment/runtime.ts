import type { Node } from 'node-red';
import { activityOf } from '../../lib/runtime/activity';
import { metrics } from '../../lib/runtime/metrics';
import type { Config, NodeRuntime } from '../../lib/runtime/register';
import { problemOf } from '../../lib/runtime/errors';
import type { Red, RunningNode } from '../../lib/runtime/red';
import { wordsOf } from '../../lib/runtime/language';
import { announcerOf, gaugesOf } from './sidebar-data';
import { RunningEnvironment } from './environment';
import { runningOf } from './running';
import { savedNodes } from './saved-nodes';
import { servicesOf } from './services';
import { resolveValues } from './variables';

/** A config node with the member in which flow nodes find its environment. */
type EnvironmentNode = RunningNode & { environment?: RunningEnvironment };

export const create: NodeRuntime['create'] = (RED: Red, node: Node, config: Config): void => {
  const self: EnvironmentNode = node as EnvironmentNode;
  const variableValue = (variable: string): unknown => RED.util.getSetting(self, variable);
  const id = self._alias ?? self.id;
  const values = {
    ...resolveValues({ ...config, ...self.credentials }, variableValue),
    // Node-RED gives a node the value of a variable instead.
    proxyAsWritten: savedNodes(RED).find((each) => each['id'] === id)?.['proxy'],
  };
  const running = runningOf(RED);
  const environment = new RunningEnvironment(servicesOf(RED), id, values, variableValue, running, self.id);
  self.environment = environment;
  running.add(environment);
  const announce = announcerOf(RED, id);
  environment.onChange(announce);
  activityOf(environment).changed = announce;
  const endMeasuring = metrics()?.observe(gaugesOf(environment));
  announce();
  self.on('close', (done: () => void) => {
    running.delete(environment);
    endMeasuring?.();
    announce();
    environment.close().then(done, (fault: unknown) => {
      self.error(wordsOf(RED).problem(problemOf(fault)));
      done();
    });
  });
};
