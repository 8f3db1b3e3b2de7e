import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { MovableClock } from '../../lib/service/clock';
import { startSimulator, type Simulator } from '../../simulator';
import { runChild, type Child } from '../state/child';
import { authorize, connectionTo, freshFolder, removeFolders, startProcess } from './support';

const lifetime = 3600;

describe('several processes on one user directory', () => {
  let simulator: Simulator;
  let clock: MovableClock;
  let folder: string;

  beforeEach(async () => {
    clock = new MovableClock(() => Date.now());
    simulator = await startSimulator({ clock, settings: { rotateRefreshTokens: true } });
    folder = freshFolder();
    await authorize(startProcess(folder, { clock }), connectionTo(simulator));
    await clock.move(lifetime * 1000);
  });
  afterEach(() => simulator.close());
  after(removeFolders);

  const startFile = (): string => join(folder, 'start');
  const run = (hang = false): Child => {
    const settings = JSON.stringify({ connection: connectionTo(simulator), ahead: lifetime * 1000, hang });
    return runChild('../auth/renews.ts', folder, settings, startFile());
  };
  const tokenOf = ({ lines }: Child): string | undefined =>
    lines.find((line) => line.startsWith('token '))?.slice(6);

  it('renew once between them, and all go on', async () => {
    const children = Array.from({ length: 4 }, () => run());
    await Promise.all(children.map((child) => child.printed(1)));
    writeFileSync(startFile(), '');
    await Promise.all(children.map((child) => child.ended()));
    should(new Set(children.map(tokenOf)).size).equal(1);
    should(children.map(tokenOf)[0]).be.a.String();
    should(children.flatMap(({ lines }) => lines).filter((line) => line === 'asking')).have.length(1);
    await clock.move(lifetime * 1000);
    should(
      await startProcess(folder, { clock }).tokens.token(connectionTo(simulator), 'default'),
    ).be.a.String();
  });

  it('go on when one is killed in the middle of renewing', async () => {
    const killed = run(true);
    writeFileSync(startFile(), '');
    await killed.printed(2);
    const next = startProcess(folder, { clock });
    const waiting = next.tokens.token(connectionTo(simulator), 'default');
    await killed.kill();
    should(await waiting).be.a.String();
  });

  it('go on with the rotated token of one that was killed right after', async () => {
    const killed = run();
    writeFileSync(startFile(), '');
    await killed.printed(3);
    await killed.kill();
    await clock.move(lifetime * 1000);
    const next = startProcess(folder, { clock });
    should(await next.tokens.token(connectionTo(simulator), 'default')).be.a.String();
    should(next.posted).have.length(1);
  });
});
