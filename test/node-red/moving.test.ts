import { rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import should from 'should';
import { freshUserDir } from '../support/installation';
import { type FlowNode, type RealRed, startRed } from '../support/node-red';
import { Postgres } from '../support/postgres';
import { environmentId, numbers, Sandbox, type Told, toldOf, twoNodes } from '../support/sandbox';
import { until } from '../support/until';

describe('a Node-RED whose state moves from its user directory to PostgreSQL', function () {
  this.timeout(180_000);
  let server: Postgres;
  let on: Sandbox;
  let userDir: string;

  before(async () => {
    server = await Postgres.start();
    userDir = freshUserDir();
    symlinkSync(dirname(require.resolve('pg/package.json')), join(userDir, 'node_modules', 'pg'));
    on = await Sandbox.start({
      version: 5,
      userDir,
      simulator: { contacts: 200, settings: { consentRequired: false, rotateRefreshTokens: true } },
      env: { DATABASE: server.url() },
      flows: twoNodes({ sender: { onceKey: 'invitation', onceKeyType: 'str', onceFor: 24 } }),
    });
  });
  after(async () => {
    await on.close();
    await server.close();
    rmSync(userDir, { recursive: true, force: true });
  });

  it('finishes its texts and waits where they are, says what is left, and takes keys and authorization along', async () => {
    const { red, simulator } = on;
    const [sent = '', ...waited] = numbers(4);
    const texts = numbers(40, 20);
    const told = (port: string): Set<string> => new Set(toldOf(red, [port]).byPhone.keys());
    const state = async (): Promise<object> => {
      const { json } = await red.request('GET', `advisor-texting/${environmentId}/service`);
      const { store, left } = json as { store: unknown; left: unknown };
      return { store, left };
    };

    await red.send('send', { phone: sent, text: 'You are invited' });
    await red.until(() => told('sent').has(sent) || undefined, 'The first text', 60_000);
    await red.send('wait', { phone: waited });
    await on.received('getConsent', waited.length);
    // What follows is accepted, and cannot be sent before the deploy.
    simulator.faults.add({ endpoint: 'sendMessage', status: 429, retryAfter: 1, rate: 1 });
    await red.send('send', { phone: texts, text: 'You are invited' });
    await on.received('sendMessage', 2);

    const [environment, ...rest] = on.flows;
    const credentials = { ...(environment?.['credentials'] as object), storeUrl: '${DATABASE}' };
    const flows = [{ ...environment, store: 'postgres', credentials }, ...rest] as typeof on.flows;
    await red.deploy(flows);
    should(await state()).eql({ store: 'embedded', left: { items: texts.length, waits: waited.length } });
    simulator.faults.clear();
    for (const phone of waited) simulator.accept(phone, 'default');
    await red.until(
      () => (told('accepted').size === waited.length && told('sent').size === texts.length + 1) || undefined,
      'Every wait and every text',
      120_000,
    );
    const done = { store: 'embedded', left: { items: 0, waits: 0 } };
    await until(async () => isDeepStrictEqual(await state(), done));

    await red.deploy(flows);
    should(await state()).eql({ store: 'postgres', left: null });
    await red.send('send', { phone: sent, text: 'You are invited' });
    await red.until(
      () => red.arrived.filter(({ msg }) => msg['phone'] === sent).length === 2 || undefined,
      'The repeated text',
      60_000,
    );
    should(told('failed').size).equal(0);
    const received = on.entries('sendMessage').filter(({ processed }) => processed);
    should(received.map(({ phone }) => phone).sort()).eql([sent, ...texts].sort());
  });
});

describe('a node that is moved to an environment with another store', function () {
  this.timeout(180_000);
  let server: Postgres;
  let on: Sandbox;
  const userDirs: string[] = [];
  const withPg = (): string => {
    const userDir = freshUserDir();
    userDirs.push(userDir);
    symlinkSync(dirname(require.resolve('pg/package.json')), join(userDir, 'node_modules', 'pg'));
    return userDir;
  };

  before(async () => {
    server = await Postgres.start();
    on = await Sandbox.start({
      version: 5,
      userDir: withPg(),
      simulator: { contacts: 100, settings: { consentRequired: false } },
      environment: { grant: 'client_credentials' },
      env: { DATABASE: server.url() },
    });
  });
  after(async () => {
    await on.close();
    await server.close();
    for (const userDir of userDirs) rmSync(userDir, { recursive: true, force: true });
  });

  const inFile = { id: 'in-file', store: 'embedded' };
  const inDatabase = { id: 'in-database', store: 'postgres' };
  const inAnother = { id: 'in-another', store: 'postgres' };
  const texts = numbers(3);
  const waited = numbers(2, 10);

  /** The same nodes in one of several environments. */
  const flows = (environments: readonly object[], { id }: { readonly id: string }): FlowNode[] => {
    const [template, ...nodes] = on.flows;
    const credentials = { ...(template?.['credentials'] as object), storeUrl: '${DATABASE}' };
    return [
      ...environments.map((each) => ({ ...template, credentials, ...each }) as FlowNode),
      ...nodes.map((node) => ('environment' in node ? { ...node, environment: id } : node)),
    ];
  };

  const accept = async (deployed: FlowNode[]): Promise<void> => {
    const { red, simulator } = on;
    await red.deploy(deployed);
    red.arrived.length = 0;
    simulator.ledger.clear();
    simulator.faults.add({ endpoint: 'sendMessage', status: 429, retryAfter: 1, rate: 1 });
    await red.send('wait', { phone: waited });
    await on.received('getConsent', waited.length);
    await red.send('send', { phone: texts, text: 'Hello' });
    await on.received('sendMessage', 1);
  };

  const checkCancelled = async (red: RealRed): Promise<void> => {
    on.simulator.faults.clear();
    const told = (): Map<string, Told[]> =>
      toldOf(red, ['sent', 'failed', 'accepted', 'wait failed', 'not accepted']).byPhone;
    const areAll = (): true | undefined => told().size === texts.length + waited.length || undefined;
    await red.until(areAll, 'Every text and every wait', 60_000);
    const text = { port: 'failed', code: 'cancelled', isRepeated: false };
    const wait = { port: 'not accepted', code: undefined, isRepeated: false };
    should(Object.fromEntries(told())).eql(
      Object.fromEntries([
        ...texts.map((phone) => [phone, [text]]),
        ...waited.map((phone) => [phone, [wait]]),
      ]),
    );
    should(on.entries('sendMessage').filter(({ processed }) => processed)).eql([]);
  };

  const moves = [
    { title: 'from the user directory to a database', from: inFile, to: inDatabase },
    { title: 'from a database to the user directory', from: inDatabase, to: inFile },
    { title: 'from one part of a database to another', from: inDatabase, to: inAnother },
    { title: 'from the user directory, deleted', from: inFile, to: inDatabase, isDeleted: true },
    { title: 'from a database, deleted', from: inDatabase, to: inFile, isDeleted: true },
  ];
  for (const { title, from, to, isDeleted = false } of moves)
    it(`cancels what it had accepted, moved ${title}`, async () => {
      await accept(flows([from, to], from));
      await on.red.deploy(flows(isDeleted ? [to] : [from, to], to), 'nodes');
      await checkCancelled(on.red);
    });

  it('cancels what an instance had accepted before the move, and left to another', async () => {
    const both = [inDatabase, inAnother];
    await accept(flows(both, inDatabase));
    const other = await startRed({
      version: 5,
      userDir: withPg(),
      env: { DATABASE: server.url() },
      flows: [],
    });
    try {
      await other.deploy(flows(both, inAnother));
      await on.red.stop();
      await checkCancelled(other);
    } finally {
      await other.close();
    }
  });
});
