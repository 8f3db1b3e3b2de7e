import fs, { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { DataKeys, keysInSettings, readSecrets } from '../../../lib/auth/data-keys';
import {
  FileSettings,
  freshFolder,
  readStored,
  removeFolders,
  type ProcessOptions,
} from '../../support/auth/setup';

const property = 'advisorTextingKeys';
const keyPath = (folder: string): string => join(folder, 'advisor-texting', 'data-key.json');
const noSecret = { local: { credentialSecret: false } };

describe('data keys', () => {
  let folder: string;
  beforeEach(() => {
    folder = freshFolder();
  });
  after(removeFolders);

  /** The keys of one start of Node-RED. */
  const start = (options: ProcessOptions = {}) => {
    const {
      local = { credentialSecret: 'a' },
      variables = {},
      isFull = false,
      retryAfter = 60_000,
    } = options;
    const settings = new FileSettings(folder, local);
    settings.isFull = isFull;
    const warnings: string[] = [];
    const keys = new DataKeys({
      holder: keysInSettings(settings),
      secrets: () => readSecrets(settings, variables),
      userDir: folder,
      retryAfter,
      warn: (message) => warnings.push(message),
    });
    const seal = async (text: string): Promise<Buffer> => {
      await keys.ready();
      return keys.seal(Buffer.from(text), 'name');
    };
    const open = (sealed: Buffer): string | undefined => keys.open(sealed, 'name')?.toString();
    return { settings, warnings, keys, seal, open };
  };

  it('decrypt after a restart what they encrypted, and nothing under another name', async () => {
    const sealed = await start().seal('text');
    should(start().open(sealed)).equal('text');
    should(start().keys.open(sealed, 'other')).be.undefined();
  });

  it('decrypt nothing in which any bit was flipped', async () => {
    const sealed = await start().seal('text');
    const { open } = start();
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      should(open(changed)).be.undefined();
    }
  });

  for (const damage of ['nonsense', 7, [], { keys: 'no' }, { keys: { a: 1 }, aside: [1] }]) {
    it(`start with a damaged setting (${JSON.stringify(damage)}), warn once and keep the damaged value`, async () => {
      await start().settings.set(property, damage);
      const { seal, warnings } = start();
      const sealed = await seal('new');
      should(warnings.join()).match(/damaged.*set aside/);
      const again = start();
      should(again.warnings).be.empty();
      should(again.open(sealed)).equal('new');
      should((readStored(folder)[property] as { aside: unknown[] }).aside.length).be.above(0);
    });
  }

  it('move to a credential secret that is set later, while the generated one still exists', async () => {
    const generated = start({ local: {} });
    await generated.settings.set('_credentialSecret', 'made by the runtime');
    const sealed = await generated.seal('text');
    should(existsSync(keyPath(folder))).be.false();
    const moved = start({ local: { credentialSecret: 'chosen' } });
    should(moved.open(sealed)).equal('text');
    await moved.keys.ready();
    await moved.settings.set('_credentialSecret', undefined);
    const later = start({ local: { credentialSecret: 'chosen' } });
    should(later.open(sealed)).equal('text');
    should(later.warnings).be.empty();
  });

  for (const [where, options] of [
    ['a variable', { local: { credentialSecret: 'b' }, variables: { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' } }],
    ['settings.js', { local: { credentialSecret: 'b', advisorTexting: { previousCredentialSecret: 'a' } } }],
  ] as const) {
    it(`are kept when a changed secret locks them, and decrypt again with the previous one from ${where}`, async () => {
      const old = await start().seal('old');
      const changed = start({ local: { credentialSecret: 'b' } });
      should(changed.open(old)).be.undefined();
      const recent = await changed.seal('new');
      const given = start(options);
      should([old, recent].map(given.open)).deepEqual(['old', 'new']);
      await given.keys.ready();
      should(start({ local: { credentialSecret: 'b' } }).open(old)).equal('old');
    });
  }

  it('hash personal keys identically after a restart and when the secret is changed back, and unguessably', async () => {
    const hashedWith = async (secret: string): Promise<string> => {
      const { keys } = start({ local: { credentialSecret: secret } });
      await keys.ready();
      return keys.hash('+12025550123');
    };
    const before = await hashedWith('one');
    should(await hashedWith('one')).equal(before);
    should(await hashedWith('two')).not.equal(before);
    should(await hashedWith('one')).equal(before);
    folder = freshFolder();
    should(await hashedWith('one')).not.equal(before);
  });

  it('without a secret are in a file that only its owner can read, with a warning', async () => {
    const { seal, warnings } = start(noSecret);
    const sealed = await seal('text');
    should(statSync(keyPath(folder)).mode & 0o777).equal(0o600);
    should(warnings.join()).match(/no credential secret.*Set credentialSecret/);
    should(start(noSecret).open(sealed)).equal('text');
  });

  it('leave the file once there is a secret', async () => {
    const sealed = await start(noSecret).seal('text');
    await start().keys.ready();
    should(existsSync(keyPath(folder))).be.false();
    should(start().open(sealed)).equal('text');
  });

  for (const [what, options] of [
    ['on a full disk', { isFull: true }],
    ['with read-only settings', { local: { credentialSecret: 'a', readOnly: true } }],
  ] as const) {
    it(`stay in the file while their wrapped form cannot be saved: ${what}`, async () => {
      const sealed = await start(noSecret).seal('text');
      const { keys } = start(options);
      await keys.ready();
      await keys.ready();
      should(start(options).open(sealed)).equal('text');
      should(existsSync(keyPath(folder))).be.true();
      await start().keys.ready();
      should(existsSync(keyPath(folder))).be.false();
      should(start().open(sealed)).equal('text');
    });
  }

  it('leave the file when the disk has room again, without another change', async () => {
    const sealed = await start(noSecret).seal('text');
    const full = start({ isFull: true, retryAfter: 5 });
    await full.keys.ready();
    full.settings.isFull = false;
    while (existsSync(keyPath(folder))) await pause(5);
    should(start().open(sealed)).equal('text');
  });

  it('warn and keep working when they cannot be removed from the file', async () => {
    const sealed = await start(noSecret).seal('text');
    const key = readFileSync(keyPath(folder), 'utf8');
    const remove = mock.method(fs, 'rmSync', () => {
      throw new Error('EPERM');
    });
    const { keys, warnings } = start();
    try {
      await keys.ready();
    } finally {
      remove.mock.restore();
    }
    should(readFileSync(keyPath(folder), 'utf8')).equal(key);
    should(warnings.join()).match(/could not be deleted: delete that file/);
    should(start().open(sealed)).equal('text');
  });

  it('keep the wrapping of the old secret when they cannot be written to the file', async () => {
    const sealed = await start().seal('text');
    mkdirSync(join(folder, 'advisor-texting', 'data-key.json.next'), { recursive: true });
    const variables = { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' };
    const given = start({ ...noSecret, variables });
    const more = await given.seal('more');
    should(given.warnings.join()).match(/could not be written/);
    should([sealed, more].map(start().open)).deepEqual(['text', 'more']);
  });

  it('move to the file when the secret is removed while the generated one still exists', async () => {
    const generated = start({ local: {} });
    await generated.settings.set('_credentialSecret', 'made by the runtime');
    const sealed = await generated.seal('text');
    await start(noSecret).keys.ready();
    await start(noSecret).settings.set('_credentialSecret', undefined);
    should(start(noSecret).open(sealed)).equal('text');
  });

  it('work in memory, with one warning, when nothing can be written', async () => {
    const { seal, open, warnings } = start({ local: { credentialSecret: 'a', readOnly: true } });
    should(open(await seal('one'))).equal('one');
    should(open(await seal('two'))).equal('two');
    should(warnings).have.length(1);
    should(warnings[0]).match(/cannot be written to disk/);
  });

  it('work in memory when the key file cannot be written', async () => {
    chmodSync(folder, 0o500);
    try {
      const { seal, open } = start({ local: { credentialSecret: false, readOnly: true } });
      should(open(await seal('one'))).equal('one');
    } finally {
      chmodSync(folder, 0o700);
    }
  });

  it('are put into the file as soon as it can be written, without another change', async () => {
    const place = join(folder, 'advisor-texting');
    fs.writeFileSync(place, '');
    const sealed = await start({ ...noSecret, retryAfter: 5 }).seal('text');
    should(start(noSecret).open(sealed)).be.undefined();
    fs.rmSync(place);
    while (!existsSync(keyPath(folder))) await pause(5);
    should(start(noSecret).open(sealed)).equal('text');
  });

  it('work in memory when the runtime has no settings at all', async () => {
    const refuse = (): never => {
      throw new Error('Settings not available');
    };
    const keys = new DataKeys({
      holder: keysInSettings({ get: refuse, set: refuse }),
      secrets: () => ({ current: undefined, candidates: [] }),
      warn: () => undefined,
    });
    await keys.ready();
    should(keys.open(keys.seal(Buffer.from('x'), 'n'), 'n')?.toString()).equal('x');
  });

  it('are shared by two processes on one user directory, and neither loses what the other wrote', async () => {
    const [one, two] = [start(), start()];
    const byOne = await one.seal('by one');
    const byTwo = await two.seal('by two');
    should([byOne, byTwo].map(start().open)).deepEqual(['by one', 'by two']);
    should(two.open(byOne)).equal('by one');
  });

  it('are saved again after a failure, without another change', async () => {
    const full = start({ isFull: true, retryAfter: 5 });
    const sealed = await full.seal('text');
    should(full.warnings.join()).match(/cannot be written to disk/);
    should(start().open(sealed)).be.undefined();
    full.settings.isFull = false;
    while (start().open(sealed) !== 'text') await pause(5);
  });
});
