import type { FlowNode } from '../../support/node-red';

/** Accepts at the second check: the first is made before the directory is saved. */
export const waiting = '+12025550101';
export const held = '+12185550108';
export const blocked = '+12025550131';
/** Accepts immediately, so that it can be texted. */
export const texted = '+12025550100';

const tenYears = { hours: 87_600, seconds: 315_360_000 };

const inTab = { z: 'tab', environment: 'environment' };
const input = (name: string, ...to: string[]): FlowNode => ({
  id: `${name}-in`,
  type: 'test-port',
  name: `${name}-in`,
  z: 'tab',
  wires: [to],
});
const output = (name: string): FlowNode => ({ id: name, type: 'test-port', name, z: 'tab', wires: [] });
const allTo = (name: string): string[][] => [[name], [name], [name]];

/** One of everything that is kept over a restart, with times that never expire. */
export const flowsAt = (now: Date): readonly FlowNode[] => {
  const hour = `${((now.getUTCHours() + 12) % 24).toString().padStart(2, '0')}:`;
  return [
    { id: 'tab', type: 'tab', label: 'upgrade' },
    { id: 'environment', type: 'advisor-environment', name: 'Simulator', service: 'simulator' },
    {
      id: 'hours',
      type: 'advisor-environment',
      name: 'Simulator with text hours',
      service: 'simulator',
      timeZone: 'UTC',
      textFrom: `${hour}00`,
      textUntil: `${hour}59`,
      outsideHours: 'hold',
      resumeWithin: tenYears.seconds,
    },
    input('ask', 'ask'),
    { id: 'ask', type: 'advisor-request-consent', ...inTab, wires: [['asked', 'wait'], ['asked']] },
    input('wait', 'wait'),
    {
      id: 'wait',
      type: 'advisor-check-consent',
      ...inTab,
      mode: 'wait',
      giveUpAfter: tenYears.seconds,
      wires: allTo('waited'),
    },
    input('send', 'send'),
    {
      id: 'send',
      type: 'advisor-send-text',
      ...inTab,
      onceKey: 'a key',
      onceKeyType: 'str',
      onceFor: tenYears.hours,
      wires: allTo('sent'),
    },
    input('hold', 'hold'),
    { id: 'hold', type: 'advisor-send-text', z: 'tab', environment: 'hours', wires: allTo('released') },
    input('block', 'block'),
    { id: 'block', type: 'advisor-do-not-text', ...inTab, operation: 'block', wires: allTo('blocked') },
    ...['asked', 'waited', 'sent', 'released', 'blocked'].map(output),
  ];
};
