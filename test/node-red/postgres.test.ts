import { rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { freshUserDir } from '../support/installation';
import { Postgres } from '../support/postgres';
import { type RealRed, startRed } from '../support/node-red';
import { numbers, Sandbox, toldOf, waiterId } from '../support/sandbox';

const sends = ['sent', 'failed', 'needs consent'];
const waits = ['accepted', 'wait failed', 'not accepted'];

describe('two Node-RED instances on one PostgreSQL', function () {
  this.timeout(180_000);
  let server: Postgres;
  let on: Sandbox;
  let other: RealRed;

  const userDirs: string[] = [];
  /** As after `npm install pg` in it. */
  const withPg = (): string => {
    const userDir = freshUserDir();
    userDirs.push(userDir);
    symlinkSync(dirname(require.resolve('pg/package.json')), join(userDir, 'node_modules', 'pg'));
    return userDir;
  };

  before(async () => {
    server = await Postgres.start();
    on = await Sandbox.start({
      version: 4,
      userDir: withPg(),
      simulator: { contacts: 1100, settings: { consentRequired: false, rotateRefreshTokens: true } },
      environment: { store: 'postgres' },
      env: { DATABASE: server.url() },
    });
    const [environment, ...nodes] = on.flows;
    const waiter = nodes.find(({ id }) => id === waiterId);
    const slow = { ...waiter, id: 'c0c0c0c0c0c0c0c0', pollEvery: 3600, pollFor: 3600, thenEvery: 3600 };
    const inlet = {
      id: 'slow wait',
      type: 'test-port',
      z: waiter?.['z'],
      name: 'slow wait',
      wires: [[slow.id]],
    };
    const rest = [...nodes, slow, inlet];
    const credentials = { ...(environment?.['credentials'] as object), storeUrl: '${DATABASE}' };
    const flows = [{ ...environment, credentials }, ...rest] as typeof on.flows;
    await on.red.deploy(flows);
    other = await startRed({
      version: 4,
      userDir: withPg(),
      env: { DATABASE: server.url() },
      settings: { disableEditor: true },
      flows: [],
    });
    await other.deploy(flows);
  });
  after(async () => {
    await other.close();
    await on.close();
    await server.close();
    for (const userDir of userDirs) rmSync(userDir, { recursive: true, force: true });
  });

  const told = (
    ports: readonly string[],
  ): Map<string, { code: string | undefined; isRepeated: boolean }[]> => {
    const all = new Map<string, { code: string | undefined; isRepeated: boolean }[]>();
    for (const red of [on.red, other])
      for (const [phone, outcomes] of toldOf(red, ports).byPhone)
        all.set(phone, [...(all.get(phone) ?? []), ...outcomes]);
    return all;
  };

  it('both send, with one authorization that is refreshed once', async () => {
    const [one = '', two = ''] = numbers(2, 100);
    await Promise.all([
      on.red.send('send', { phone: one, text: 'From one' }),
      other.send('send', { phone: two, text: 'From the other' }),
    ]);
    for (const red of [on.red, other])
      await red.until(() => red.arrived.some(({ port }) => port === 'sent') || undefined, 'A text', 60_000);
    should([...on.red.arrived, ...other.arrived].filter(({ port }) => port === 'failed')).be.empty();
    const renewals = on.simulator.ledger.entries().filter(({ endpoint }) => endpoint === 'token');
    should(renewals.length).be.belowOrEqual(2);
  });

  it('carry out a cancel or check given to one, for the items of the other', async () => {
    const [cancelled = '', checked = ''] = numbers(2, 5100);
    await on.red.send('slow wait', { phone: cancelled });
    await on.red.send('slow wait', { phone: checked });
    const savedWaits = `select count(*) from advisor_texting.work where position('wait\\000' in encode(key, 'escape')) > 0
      and position('c0c0c0c0c0c0c0c0' in encode(key, 'escape')) > 0`;
    while (server.query(savedWaits).trim() !== '2') await pause(50);
    const ended = (port: string, phone: string): Promise<unknown> =>
      on.red.until(
        () => on.red.arrived.find((each) => each.port === port && each.msg['phone'] === phone),
        `The wait for ${phone} on ${port}`,
        90_000,
      );
    await other.send('slow wait', { phone: cancelled, reset: true });
    await ended('not accepted', cancelled);
    on.simulator.accept(checked, 'default');
    await other.send('slow wait', { phone: checked, flush: true });
    await ended('accepted', checked);
  });

  it('take over a list and waits when one is killed, and send no text twice', async () => {
    const phones = numbers(600, 1000);
    const [waiting = ''] = numbers(1, 5000);
    await on.red.send('wait', { phone: waiting });
    const before = on.entries('sendMessage').length;
    await on.red.send('send', { phone: phones, text: 'Hello' });
    await on.received('sendMessage', before + 100);
    await on.red.kill9();
    on.simulator.accept(waiting, 'default');
    await other.until(
      () => {
        const known = told(sends);
        return phones.every((phone) => known.has(phone)) || undefined;
      },
      'The last outcome',
      90_000,
    );
    await other.until(() => (told(waits).has(waiting) ? true : undefined), 'The end of the wait', 60_000);
    const texts = new Map<string, number>();
    for (const { phone, processed } of on.entries('sendMessage'))
      if (processed) texts.set(String(phone), (texts.get(String(phone)) ?? 0) + 1);
    should([...texts.values()].filter((times) => times > 1)).deepEqual([]);
    const outcomes = told(sends);
    for (const phone of phones) {
      const codes = (outcomes.get(phone) ?? []).map(({ code }) => code);
      if (!codes.includes(undefined)) should(new Set(codes)).deepEqual(new Set(['outcome_unknown']));
      const unmarked = (outcomes.get(phone) ?? []).filter(({ isRepeated }) => !isRepeated);
      should(unmarked.length).be.belowOrEqual(1);
    }
  });
});

describe('a Node-RED without pg', function () {
  this.timeout(180_000);

  it('says what to install, and sends nothing', async () => {
    const on = await Sandbox.start({
      version: 5,
      simulator: { contacts: 10, settings: { consentRequired: false } },
      environment: { store: 'postgres' },
      env: { DATABASE: 'postgres://localhost/texting' },
    });
    try {
      const [environment, ...nodes] = on.flows;
      const credentials = { ...(environment?.['credentials'] as object), storeUrl: '${DATABASE}' };
      await on.red.deploy([{ ...environment, credentials }, ...nodes] as typeof on.flows);
      const [phone = ''] = numbers(1, 100);
      await on.red.send('send', { phone, text: 'Hello' });
      const failed = await on.red.until(
        () => on.red.arrived.find(({ port }) => port === 'failed'),
        'The failure',
        30_000,
      );
      const { code, message } = failed.msg['error'] as { code: string; message: string };
      should(code).equal('not_configured');
      should(message).match(/run "npm install pg" in the Node-RED user directory/);
      should(on.simulator.ledger.entries().some(({ endpoint }) => endpoint === 'sendMessage')).be.false();
    } finally {
      await on.close();
    }
  });
});
