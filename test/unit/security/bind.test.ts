import { once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';

/** Every address of this machine except the simulator's. */
const otherAddresses = [
  '127.0.0.2',
  ...Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).map(({ address, scopeid }) => (scopeid ? `${address}%${scopeid.toString()}` : address)),
  ),
].filter((address) => address !== '127.0.0.1');

const isReached = async (host: string, port: number): Promise<boolean> => {
  const socket = connect({ host, port, timeout: 1000 });
  socket.on('error', () => undefined);
  const reached = await Promise.race([
    once(socket, 'connect').then(
      () => true,
      () => false,
    ),
    once(socket, 'timeout').then(
      () => false,
      () => false,
    ),
  ]);
  socket.destroy();
  return reached;
};

describe('the port of the simulator', () => {
  let simulator: Simulator;
  const port = (): number => Number(new URL(simulator.url).port);

  afterEach(() => simulator.close());

  it('answers on no address of this machine except loopback', async () => {
    simulator = await startSimulator();
    should(await isReached('127.0.0.1', port())).be.true();
    for (const address of otherAddresses)
      should([address, await isReached(address, port())]).deepEqual([address, false]);
  });

  it('answers elsewhere only if configured', async () => {
    simulator = await startSimulator({ host: '0.0.0.0' });
    should(await isReached('127.0.0.2', port())).be.true();
  });
});
