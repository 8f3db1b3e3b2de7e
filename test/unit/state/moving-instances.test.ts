import { rmSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import { keysOf } from '../../../lib/outbox/records';
import type { Store } from '../../../lib/state/store';
import type { Mutable } from '../../../lib/mutable';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import type { SharedServices } from '../../../nodes/environment/services';
import { startSimulator, type Simulator } from '../../../simulator';
import { authorize, freshFolder, removeFolders } from '../../support/auth/setup';
import { Postgres } from '../../support/postgres';
import { SharedEnvironments } from '../../support/shared-environments';

const phone = '+13005550100';
const item = keysOf('send').item(Buffer.alloc(12, 1), 0, false);
const accept = (store: Store, environment: RunningEnvironment): Promise<boolean> =>
  store.write([
    {
      table: 'work',
      put: item,
      value: { state: 'accepted', item: { index: 0 }, single: { space: environment.space } },
    },
  ]);
const finish = (store: Store): Promise<boolean> => store.write([{ table: 'work', remove: item }]);

describe('instances whose environment moves from their user directories to PostgreSQL', function () {
  this.timeout(180_000);
  let server: Postgres;
  let simulator: Simulator;
  let environments: SharedEnvironments;

  before(async () => {
    server = await Postgres.start();
    simulator = await startSimulator({ settings: { rotateRefreshTokens: true } });
    environments = new SharedEnvironments(server, simulator);
  });
  beforeEach(() => {
    environments.next();
  });
  afterEach(() => environments.closeAll());
  after(async () => {
    await simulator.close();
    await server.close();
    removeFolders();
  });

  type Where = Parameters<SharedEnvironments['start']>[3] & { readonly userDir: string };

  const start = async (
    store: 'embedded' | 'postgres',
    where: Where,
    name = 'one',
  ): Promise<RunningEnvironment> => {
    const environment = environments.start(name, 'a', { store }, where);
    await environment.store();
    await environment.opening;
    return environment;
  };

  /** A start in a user directory, and what the next one finds there. */
  const once = async <T>(
    store: 'embedded' | 'postgres',
    where: Where,
    work: (environment: RunningEnvironment, store: Store) => T | Promise<T>,
    name?: string,
  ): Promise<T> => {
    const environment = await start(store, where, name);
    try {
      return await work(environment, await environment.store());
    } finally {
      await environment.close();
    }
  };

  const tokenOf = (environment: RunningEnvironment): string | null | undefined =>
    environment.services.vault.get(environment.connection(), 'alice')?.grant.refreshToken;

  it('stay there while something is left, say so, and move at the first start after that', async () => {
    const warnings: string[] = [];
    const where = { userDir: freshFolder(), warn: (text: string) => warnings.push(text) };
    const before = await once('embedded', where, async (environment, store) => {
      await authorize(environment.services, environment.connection(), 'alice');
      await (await doNotTextOf(environment)).block(phone, 'asked', 1);
      await accept(store, environment);
      return tokenOf(environment);
    });
    await once('postgres', where, async (environment, store) => {
      should(environment.isInDatabase).be.false();
      should(await environment.leftInFile()).eql({ items: 1, waits: 0 });
      should(warnings.join()).match(/stays in the user directory.*texts and requests: 1, waits: 0/);
      should([tokenOf(environment), await environment.isBlocked(phone)]).eql([before, true]);
      await finish(store);
      should([environment.isInDatabase, await environment.leftInFile()]).eql([false, { items: 0, waits: 0 }]);
    });
    warnings.length = 0;
    await once('postgres', where, async (environment) => {
      should([environment.isInDatabase, await environment.leftInFile()]).eql([true, undefined]);
      should([tokenOf(environment), await environment.isBlocked(phone)]).eql([before, true]);
    });
    should(warnings).eql([]);
    await once('embedded', where, async (environment) => {
      should([tokenOf(environment), await environment.isBlocked(phone)]).eql([undefined, false]);
    });
  });

  it('stay or move each on its own', async () => {
    const [one, two] = [{ userDir: freshFolder() }, { userDir: freshFolder() }];
    for (const where of [one, two])
      await once('embedded', where, async (environment, store) => {
        if (where === two) await accept(store, environment);
        await (await doNotTextOf(environment)).block(where === one ? phone : '+13005550101', null, 1);
      });
    const first = await start('postgres', one);
    await once(
      'postgres',
      two,
      async (environment, store) => {
        should([first.isInDatabase, environment.isInDatabase]).eql([true, false]);
        await finish(store);
      },
      'two',
    );
    const second = await start('postgres', two, 'two');
    should(second.isInDatabase).be.true();
    for (const each of [first, second])
      should([await each.isBlocked(phone), await each.isBlocked('+13005550101')]).eql([true, true]);
  });

  it('move everything, even if the slot in the database is lost meanwhile', async () => {
    const where = { userDir: freshFolder() };
    await once('embedded', where, async (environment) => {
      await (await doNotTextOf(environment)).block(phone, null, 1);
    });
    const environment = environments.start('one', 'a', {}, where);
    const { shared } = environment as unknown as { readonly shared: Mutable<SharedServices> };
    const { openFile } = shared;
    let opened = 0;
    shared.openFile = () => {
      opened += 1;
      if (opened === 2)
        server.query(
          `update advisor_texting.lease set token = token + 1, holder = 'another' where holder <> '' and slot > 0`,
        );
      return openFile();
    };
    await environment.store();
    await environment.opening;
    should(opened).be.above(2);
    should(await environment.isBlocked(phone, true)).be.true();
    should(environment.services.vault.isOpen).be.true();
  });

  it('use the latest authorization after a return to the user directory', async () => {
    const where = { userDir: freshFolder() };
    const authorized = (environment: RunningEnvironment): Promise<void> =>
      authorize(environment.services, environment.connection(), 'alice');
    await once('embedded', where, authorized);
    const moved = await once('postgres', where, tokenOf);
    const again = await once('embedded', where, async (environment) => {
      should(environment.advisorState('alice')).equal('unknown');
      await authorized(environment);
      return tokenOf(environment);
    });
    should(again).not.equal(moved);
    should(await once('postgres', where, tokenOf)).equal(again);
  });

  it('are in one place in all uses of a subflow', async () => {
    const where = { userDir: freshFolder(), running: new Set<RunningEnvironment>() };
    await once('embedded', { userDir: where.userDir }, (environment, store) => accept(store, environment));
    const uses = await Promise.all([start('postgres', where), start('postgres', where)]);
    await finish((await uses[0]?.store()) as Store);
    // Added by a deploy that leaves the others running.
    uses.push(await start('postgres', where));
    should(uses.map(({ isInDatabase }) => isInDatabase)).eql([false, false, false]);
  });

  it('move where another use of the subflow keeps nothing in the database: a simulator, or one with a fault', async () => {
    for (const other of [{ service: 'simulator' }, { storeUrl: '' }]) {
      const where = { userDir: freshFolder(), running: new Set<RunningEnvironment>() };
      environments.start('one', 'a', other, where);
      should((await start('postgres', where)).isInDatabase).be.true();
    }
  });

  it('leave the do-not-text list to an environment that stays, and share it', async () => {
    const where = { userDir: freshFolder(), running: new Set<RunningEnvironment>() };
    await once('embedded', { userDir: where.userDir, id: 'staying' } as Where, async (environment, store) => {
      await accept(store, environment);
      await (await doNotTextOf(environment)).block(phone, null, 1);
    });
    const [moving, staying] = await Promise.all([
      start('postgres', { ...where, id: 'moving' } as Where),
      start('postgres', { ...where, id: 'staying' } as Where),
    ]);
    should([moving.isInDatabase, staying.isInDatabase]).eql([true, false]);
    should(await staying.isBlocked(phone, true)).be.true();
    should(await moving.isBlocked(phone)).be.true();
  });

  it('leave it as well while it is not known yet where that environment stays', async () => {
    const where = { userDir: freshFolder() };
    await once('embedded', where, async (environment) => {
      await (await doNotTextOf(environment)).block(phone, null, 1);
    });
    const other = {
      id: 'other',
      service: 'sandbox',
      isInDatabase: true,
      services: { recognition: { isKnown: true } },
      get placing() {
        return Promise.resolve().then(() => (this.isInDatabase = false));
      },
    };
    const running = new Set([other as unknown as RunningEnvironment]);
    await once('postgres', { ...where, running }, ({ isInDatabase }) => {
      should(isInDatabase).be.true();
    });
    await once('embedded', where, async (environment) => {
      should(await environment.isBlocked(phone)).be.true();
    });
  });

  it('text nobody when they go back, each time, until somebody confirms that the list stays behind', async () => {
    const where = { userDir: freshFolder() };
    const isLost = ({ isStoreLost }: RunningEnvironment): boolean => isStoreLost;
    await once('embedded', where, async (environment) => {
      await (await doNotTextOf(environment)).block(phone, null, 1);
    });
    for (const _ of [1, 2]) {
      should(await once('postgres', where, isLost)).be.false();
      should(await once('embedded', where, isLost)).be.true();
      await once('embedded', where, async (environment) => {
        should(await environment.confirmStore()).be.true();
      });
      should(await once('embedded', where, isLost)).be.false();
    }
    should(await once('postgres', where, (environment) => environment.isBlocked(phone))).be.true();
  });

  for (const store of ['embedded', 'postgres'] as const)
    it(`leave the do-not-text list to one beside them (${store}), and text nobody from one in their place`, async () => {
      for (const isBeside of [true, false]) {
        const where = { userDir: freshFolder(), running: new Set<RunningEnvironment>() };
        const id = `${store} ${String(isBeside)}`;
        const first = await start('postgres', { ...where, id: `first ${id}` } as Where);
        await (await doNotTextOf(first)).block(phone, null, 1);
        if (!isBeside) {
          await first.close();
          where.running.clear();
        }
        const second = await start(store, { ...where, id: `second ${id}` } as Where);
        should([second.isStoreLost, await second.isBlocked(phone)]).eql([!isBeside, isBeside]);
      }
    });

  it('stay if what was there is lost, and text nobody until somebody confirms that', async () => {
    const where = { userDir: freshFolder() };
    const lose = (): void => rmSync(join(where.userDir, 'advisor-texting'), { recursive: true });
    await once('embedded', where, () => undefined);
    lose();
    await once('postgres', where, async (environment) => {
      should([environment.isInDatabase, environment.isStoreLost]).eql([false, true]);
      should(await environment.confirmStore()).be.true();
    });
    const isWell = (environment: RunningEnvironment): void => {
      should([environment.isInDatabase, environment.isStoreLost]).eql([true, false]);
    };
    await once('postgres', where, isWell);
    // What is lost now is that of other environments.
    lose();
    await once('embedded', { ...where, id: 'another' } as Where, ({ isStoreLost }) => {
      should(isStoreLost).be.true();
    });
    await once('postgres', where, isWell);
  });
});
