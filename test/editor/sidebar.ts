import type { Page } from 'playwright-core';
import type { FlowNode } from '../support/node-red';

export const silent = '+12025550111';
export const never = '+12025550112';
export const forbidden = '+12025550172';
export const numbered = (n: number): string => `+1206555${String(n).padStart(4, '0')}`;

/** A way in to a send node in each of these environments, named `text <environment>`. */
export const sendNodes = (
  environments: readonly string[],
  wires: readonly (readonly string[])[],
): FlowNode[] =>
  environments.flatMap((environment, place) => [
    {
      id: `to ${environment}`,
      type: 'test-port',
      z: 'tab',
      name: `text ${environment}`,
      x: 100,
      y: 140 + 40 * place,
      wires: [[`send ${environment}`]],
    },
    {
      id: `send ${environment}`,
      type: 'advisor-send-text',
      z: 'tab',
      name: `my send ${environment}`,
      environment,
      x: 300,
      y: 140 + 40 * place,
      wires,
    },
  ]);

/** What reaches beyond the right edge. */
export const wide = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const bar = document.querySelector('.advisor-sidebar');
    const edge = bar.getBoundingClientRect().left + bar.clientWidth;
    return [...bar.querySelectorAll('*')].filter((one) => one.offsetParent !== null)
      .filter((one) => one.getBoundingClientRect().right > edge + 0.5)
      .map((one) => one.outerHTML.slice(0, 120));
  })()`);
