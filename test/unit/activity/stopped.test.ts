import { EventEmitter } from 'node:events';
import should from 'should';
import { deployEnd } from '../../../lib/runtime/delivery';
import type { Red } from '../../../lib/runtime/red';
import { nextIteration } from '../../support/event-loop';

describe('a request that waits for the end of a deploy', () => {
  let RED: Red;
  let stopped: (deploy?: boolean) => void;

  beforeEach(async () => {
    const events = new EventEmitter();
    RED = { events } as unknown as Red;
    stopped = (deploy) =>
      events.emit('runtime-event', { id: 'runtime-state', payload: { state: 'stop', deploy } });
    await deployEnd(RED);
    events.emit('flows:stopping');
  });
  const isOver = (): Promise<boolean> =>
    Promise.race([deployEnd(RED).then(() => true), nextIteration().then(() => false)]);

  it('waits while the flows stop and start', async () => {
    should(await isOver()).be.false();
    stopped(true);
    should(await isOver()).be.false();
    RED.events.emit('flows:started');
    should(await isOver()).be.true();
  });

  it('waits no longer when the flows were only stopped', async () => {
    const over = deployEnd(RED);
    stopped();
    await over;
    should(await isOver()).be.true();
  });
});
