import fs, { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { settingsShelf } from '../../lib/auth/shelf';
import { Vault } from '../../lib/auth/vault';
import { frozenClock, freshFolder, readStored, removeFolders, startProcess, type Stored } from './support';

const secret = 'canary-refresh-token-0123456789';
const property = 'advisorTextingVault';
const keyPath = (folder: string): string => join(folder, 'advisor-texting', 'data-key.json');

describe('vault', () => {
  let folder: string;
  beforeEach(() => {
    folder = freshFolder();
  });
  after(removeFolders);

  it('has a record on disk when the write resolves, and after a restart', async () => {
    await startProcess(folder).vault.write('grant:1', { token: secret });
    should(startProcess(folder).vault.read('grant:1')).deepEqual({ token: secret });
  });

  it('leaves nothing readable on disk', async () => {
    await startProcess(folder).vault.write('grant:1', { token: secret });
    const text = readFileSync(join(folder, '.config.runtime.json'), 'utf8');
    for (const encoding of ['utf8', 'base64', 'hex', 'base64url'] as const) {
      should(text).not.containEql(Buffer.from(secret).toString(encoding).slice(0, 30));
    }
  });

  it('keeps a removed record removed', async () => {
    const { vault } = startProcess(folder);
    await vault.write('grant:1', 1);
    await vault.remove('grant:1');
    should(vault.names('grant:')).be.empty();
    should(startProcess(folder).vault.read('grant:1')).be.undefined();
  });

  const tamper = (name: string, change: (sealed: Buffer) => void): void => {
    const { settings } = startProcess(folder);
    const document = settings.get(property) as { records: Record<string, { sealed: string }> };
    const record = document.records[name];
    if (!record) throw new Error('no such record');
    const bytes = Buffer.from(record.sealed, 'base64');
    change(bytes);
    record.sealed = bytes.toString('base64');
    void settings.set(property, document);
  };

  it('sets a record with any flipped bit aside, reports it, and goes on with the others', async () => {
    const first = startProcess(folder).vault;
    await first.write('grant:good', 'good');
    await first.write('grant:bad', 'bad');
    const length = startProcess(folder).vault.seal(Buffer.from('"bad"'), 'grant:bad').length;
    for (let at = 0; at < length; at += 1) {
      await startProcess(folder).vault.write('grant:bad', 'bad');
      tamper('grant:bad', (bytes) => {
        bytes[at] = (bytes[at] ?? 0) ^ 1;
      });
      const { vault, warnings } = startProcess(folder);
      should(vault.read('grant:bad')).be.undefined();
      should(vault.read('grant:good')).equal('good');
      should(warnings.join()).match(/grant:bad.*damaged.*authorize again/);
    }
  });

  it('does not take one record for another', async () => {
    const { vault, settings } = startProcess(folder);
    await vault.write('grant:alice', 'of alice');
    const document = settings.get(property) as { records: Stored };
    document.records['grant:bob'] = document.records['grant:alice'];
    await settings.set(property, document);
    should(startProcess(folder).vault.read('grant:bob')).be.undefined();
  });

  for (const damage of [
    'nonsense',
    7,
    [],
    { records: 'no' },
    { keys: { a: 1 }, records: { b: [] }, aside: [1] },
  ]) {
    it(`starts on a damaged vault (${JSON.stringify(damage)}), says so once and keeps the damage`, async () => {
      await startProcess(folder).settings.set(property, damage);
      const { vault, warnings } = startProcess(folder);
      await vault.write('grant:1', 'new');
      should(warnings.join()).match(/damaged.*set aside/);
      const again = startProcess(folder);
      should(again.warnings).be.empty();
      should(again.vault.read('grant:1')).equal('new');
      should((readStored(folder)[property] as { aside: unknown[] }).aside.length).be.above(0);
    });
  }

  it('moves to a credential secret that is set later, while the generated one is still there', async () => {
    const generated = startProcess(folder, { local: {} });
    await generated.settings.set('_credentialSecret', 'made by the runtime');
    await generated.vault.write('grant:1', secret);
    should(existsSync(keyPath(folder))).be.false();
    const moved = startProcess(folder, { local: { credentialSecret: 'chosen' } });
    should(moved.vault.read('grant:1')).equal(secret);
    await moved.vault.ready();
    await moved.settings.set('_credentialSecret', undefined);
    const later = startProcess(folder, { local: { credentialSecret: 'chosen' } });
    should(later.vault.read('grant:1')).equal(secret);
    should(later.warnings).be.empty();
  });

  it('keeps what a changed secret locks, says what to do, and opens it again with the previous one', async () => {
    await startProcess(folder).vault.write('grant:1', 'old');
    await startProcess(folder).vault.write('grant:2', 'old');
    const local = { credentialSecret: 'b' };
    const changed = startProcess(folder, { local });
    should(changed.vault.read('grant:1')).be.undefined();
    should(changed.warnings.join()).match(
      /secret has changed.*ADVISOR_TEXTING_PREVIOUS_SECRET.*authorize again/,
    );
    await changed.vault.write('grant:1', 'new');
    const given = startProcess(folder, { local, variables: { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' } });
    should(given.vault.read('grant:1')).equal('new');
    should(given.vault.read('grant:2')).equal('old');
    await given.vault.ready();
    should(startProcess(folder, { local }).vault.read('grant:2')).equal('old');
  });

  it('takes the previous secret from settings.js as well', async () => {
    await startProcess(folder).vault.write('grant:1', 'old');
    const local = { credentialSecret: 'b', advisorTexting: { previousCredentialSecret: 'a' } };
    should(startProcess(folder, { local }).vault.read('grant:1')).equal('old');
  });

  it('has the older record again when the secret is changed back', async () => {
    await startProcess(folder).vault.write('grant:1', 'old');
    const locked = startProcess(folder, { local: { credentialSecret: 'b' } });
    await locked.vault.write('grant:1', 'new');
    should(startProcess(folder).vault.read('grant:1')).equal('old');
  });

  it('hashes as before when the secret is changed back', async () => {
    const hashedWith = async (key: string): Promise<string> => {
      const { vault } = startProcess(folder, { local: { credentialSecret: key } });
      await vault.ready();
      return vault.hash('+12025550123');
    };
    const before = await hashedWith('one');
    should(await hashedWith('two')).not.equal(before);
    should(await hashedWith('one')).equal(before);
  });

  it('without a secret keeps the key in a file for its owner only, with a warning', async () => {
    const { vault, warnings } = startProcess(folder, { local: { credentialSecret: false } });
    await vault.write('grant:1', secret);
    should(statSync(keyPath(folder)).mode & 0o777).equal(0o600);
    should(warnings.join()).match(/no credential secret.*Set credentialSecret/);
    should(startProcess(folder, { local: { credentialSecret: false } }).vault.read('grant:1')).equal(secret);
  });

  it('takes the key out of the file once there is a secret', async () => {
    await startProcess(folder, { local: { credentialSecret: false } }).vault.write('grant:1', secret);
    const { vault } = startProcess(folder);
    await vault.ready();
    should(existsSync(keyPath(folder))).be.false();
    should(startProcess(folder).vault.read('grant:1')).equal(secret);
  });

  for (const [what, options] of [
    ['on a full disk', { isFull: true }],
    ['with read-only settings', { local: { credentialSecret: 'a', readOnly: true } }],
  ] as const) {
    it(`leaves the key in the file until its wrapping is stored, which it is not ${what}`, async () => {
      await startProcess(folder, { local: { credentialSecret: false } }).vault.write('grant:1', secret);
      const { vault } = startProcess(folder, options);
      await vault.ready();
      await vault.ready();
      should(startProcess(folder, options).vault.read('grant:1')).equal(secret);
      should(existsSync(keyPath(folder))).be.true();
      await startProcess(folder).vault.ready();
      should(existsSync(keyPath(folder))).be.false();
      should(startProcess(folder).vault.read('grant:1')).equal(secret);
    });
  }

  it('takes the key out of the file when the disk has room again, without a further change', async () => {
    await startProcess(folder, { local: { credentialSecret: false } }).vault.write('grant:1', secret);
    const full = startProcess(folder, { isFull: true, retryAfter: 5 });
    await full.vault.ready();
    full.settings.isFull = false;
    while (existsSync(keyPath(folder))) await pause(5);
    should(startProcess(folder).vault.read('grant:1')).equal(secret);
  });

  it('says so and goes on where the key cannot be taken out of the file', async () => {
    await startProcess(folder, { local: { credentialSecret: false } }).vault.write('grant:1', secret);
    const key = readFileSync(keyPath(folder), 'utf8');
    const { vault, warnings } = startProcess(folder);
    const remove = mock.method(fs, 'rmSync', () => {
      throw new Error('EPERM');
    });
    try {
      await vault.ready();
    } finally {
      remove.mock.restore();
    }
    should(readFileSync(keyPath(folder), 'utf8')).equal(key);
    should(warnings.join()).match(/could not be removed: delete that file/);
    should(startProcess(folder).vault.read('grant:1')).equal(secret);
  });

  it('keeps the wrapping of the old secret where the key cannot be put into the file', async () => {
    await startProcess(folder).vault.write('grant:1', secret);
    const place = join(folder, 'advisor-texting', 'data-key.json.next');
    mkdirSync(place, { recursive: true });
    const variables = { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' };
    const given = startProcess(folder, { local: { credentialSecret: false }, variables });
    await given.vault.write('grant:2', secret);
    should(given.warnings.join()).match(/could not be written/);
    const later = startProcess(folder);
    should(['grant:1', 'grant:2'].map((name) => later.vault.read(name))).deepEqual([secret, secret]);
  });

  it('moves to the file when the secret is given up while the generated one is still there', async () => {
    const generated = startProcess(folder, { local: {} });
    await generated.settings.set('_credentialSecret', 'made by the runtime');
    await generated.vault.write('grant:1', secret);
    const local = { credentialSecret: false };
    await startProcess(folder, { local }).vault.ready();
    await startProcess(folder, { local }).settings.set('_credentialSecret', undefined);
    should(startProcess(folder, { local }).vault.read('grant:1')).equal(secret);
  });

  it('works in memory, with one warning, where nothing can be written', async () => {
    const { vault, warnings } = startProcess(folder, { local: { credentialSecret: 'a', readOnly: true } });
    await vault.write('grant:1', 1);
    await vault.write('grant:1', 2);
    should(vault.read('grant:1')).equal(2);
    should(warnings).have.length(1);
    should(warnings[0]).match(/cannot be written to disk/);
  });

  it('works in memory where the key file cannot be written', async () => {
    chmodSync(folder, 0o500);
    try {
      const { vault } = startProcess(folder, { local: { credentialSecret: false, readOnly: true } });
      await vault.write('grant:1', 1);
      should(vault.read('grant:1')).equal(1);
    } finally {
      chmodSync(folder, 0o700);
    }
  });

  it('works in memory where the runtime has no settings at all', async () => {
    const refuse = (): never => {
      throw new Error('Settings not available');
    };
    const vault = new Vault({
      shelf: settingsShelf({ get: refuse, set: refuse }),
      secrets: () => ({ current: undefined, candidates: [] }),
      clock: frozenClock(),
      warn: () => undefined,
    });
    await vault.write('grant:1', 1);
    should(vault.read('grant:1')).equal(1);
    should(vault.open(vault.seal(Buffer.from('x'), 'n'), 'n')?.toString()).equal('x');
  });

  it('shares a user directory with another process: neither overwrites what the other wrote', async () => {
    const one = startProcess(folder);
    const two = startProcess(folder);
    await one.vault.write('grant:1', 'by one');
    await two.vault.write('grant:2', 'by two');
    await one.vault.write('grant:3', 'by one');
    await two.vault.reread();
    should(two.vault.read('grant:3')).equal('by one');
    const later = startProcess(folder).vault;
    should(['grant:1', 'grant:2', 'grant:3'].map((name) => later.read(name))).deepEqual([
      'by one',
      'by two',
      'by one',
    ]);
  });

  it('loses nothing when two processes write at the same time', async () => {
    const processes = [startProcess(folder), startProcess(folder)];
    const names = Array.from({ length: 10 }, (_, index) => `grant:${String(index)}`);
    await processes[0]?.vault.ready();
    for (const name of names) {
      await Promise.all(processes.map(({ vault }, index) => vault.write(`${name}-${String(index)}`, name)));
      const { vault } = startProcess(folder);
      should([0, 1].map((index) => vault.read(`${name}-${String(index)}`))).deepEqual([name, name]);
    }
  });

  it('writes again what could not be written, without a further change', async () => {
    const full = startProcess(folder, { isFull: true, retryAfter: 5 });
    await full.vault.write('grant:1', secret);
    should(full.warnings.join()).match(/cannot be written to disk/);
    should(startProcess(folder).vault.read('grant:1')).be.undefined();
    full.settings.isFull = false;
    while (startProcess(folder).vault.read('grant:1') !== secret) await pause(5);
  });

  it('hashes personal keys the same way after a restart, and not guessably', async () => {
    const { vault } = startProcess(folder);
    await vault.ready();
    should(startProcess(folder).vault.hash('+12025550100')).equal(vault.hash('+12025550100'));
    should(startProcess(freshFolder()).vault.hash('+12025550100')).not.equal(vault.hash('+12025550100'));
  });
});
