import { execFileSync } from 'node:child_process';
import fs, { chmodSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { StoreKey, keyHolderOf, readSecrets } from '../../../lib/auth/data-key';
import { sealingWith } from '../../../lib/state/sealing';
import { leaveOut } from '../../support/machine';
import {
  FileSettings,
  freshFolder,
  readStored,
  removeFolders,
  type ProcessOptions,
} from '../../support/auth/setup';
import { until } from '../../support/until';

const property = 'advisorTextingKeys';
const wrappedPath = (folder: string): string => join(folder, 'advisor-texting', 'wrapped-key.json');
const noSecret = { local: { credentialSecret: false } };

describe('the data key', () => {
  let folder: string;
  beforeEach(() => {
    folder = freshFolder();
    isNeeded = true;
  });
  after(removeFolders);

  /** Whether there are records that only the saved key can decrypt. */
  let isNeeded: boolean;
  /** The key of one start of Node-RED. */
  const start = (options: ProcessOptions & { readonly savesAfter?: number } = {}) => {
    const {
      local = { credentialSecret: 'a' },
      variables = {},
      isFull = false,
      retryAfter = 60_000,
      savesAfter = 0,
    } = options;
    const settings = new FileSettings(folder, local);
    settings.isFull = isFull;
    const warnings: string[] = [];
    const holder = keyHolderOf(settings);
    const key = new StoreKey({
      holder: {
        ...holder,
        write: async (...given) => {
          if (savesAfter > 0) await pause(savesAfter);
          return !settings.isFull && holder.write(...given);
        },
      },
      secrets: () => readSecrets(settings, variables),
      isNeeded: () => isNeeded,
      retryAfter,
      warn: (message) => warnings.push(message),
    });
    const seal = async (text: string): Promise<Buffer> => {
      await key.ready();
      return sealingWith(key).seal('work', Buffer.from('name'), text);
    };
    const open = (sealed: Buffer): unknown =>
      sealingWith(key).open('work', Buffer.from('name'), sealed)?.value;
    return { settings, warnings, key, seal, open };
  };

  it('decrypts after a restart what it encrypted, and nothing under another name', async () => {
    const sealed = await start().seal('text');
    should(start().open(sealed)).equal('text');
    should(sealingWith(start().key).open('work', Buffer.from('other'), sealed)).be.undefined();
  });

  it('decrypts nothing in which any bit was flipped', async () => {
    const sealed = await start().seal('text');
    const { open } = start();
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      should(open(changed)).be.undefined();
    }
  });

  for (const damage of ['nonsense', 7, [], { keys: 'no' }, { active: 'a', keys: { a: 1 } }])
    it(`is locked by a damaged setting (${JSON.stringify(damage)}), and replaced only if nothing needs it`, async () => {
      await start().settings.set(property, damage);
      const locked = start();
      await locked.key.ready();
      should(locked.key.key).be.undefined();
      should(readStored(folder)[property]).deepEqual(damage);
      isNeeded = false;
      const sealed = await start().seal('new');
      isNeeded = true;
      should(start().open(sealed)).equal('new');
    });

  it('moves to a credential secret that is set later, while the generated one still exists', async () => {
    const generated = start({ local: {} });
    await generated.settings.set('_credentialSecret', 'made by the runtime');
    const sealed = await generated.seal('text');
    const moved = start({ local: { credentialSecret: 'chosen' } });
    should(moved.open(sealed)).equal('text');
    await moved.key.ready();
    await moved.settings.set('_credentialSecret', undefined);
    const later = start({ local: { credentialSecret: 'chosen' } });
    should(later.open(sealed)).equal('text');
    should(later.warnings).be.empty();
  });

  for (const [where, options] of [
    ['a variable', { local: { credentialSecret: 'b' }, variables: { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' } }],
    ['settings.js', { local: { credentialSecret: 'b', advisorTexting: { previousCredentialSecret: 'a' } } }],
  ] as const) {
    it(`is kept when a changed secret locks it, and decrypts again with the previous one from ${where}`, async () => {
      const sealed = await start().seal('text');
      const changed = start({ local: { credentialSecret: 'b' } });
      await changed.key.ready();
      should(changed.key.key).be.undefined();
      const given = start(options);
      should(given.open(sealed)).equal('text');
      await given.key.ready();
      should(start({ local: { credentialSecret: 'b' } }).open(sealed)).equal('text');
    });
  }

  it('hashes personal data identically after a restart, and unguessably', async () => {
    const hashed = async (): Promise<string> => {
      const { key } = start();
      await key.ready();
      return sealingWith(key).hash('+12025550123').toString('hex');
    };
    const before = await hashed();
    should(await hashed()).equal(before);
    folder = freshFolder();
    should(await hashed()).not.equal(before);
  });

  it('without a secret is in a file that only its owner can read, with a warning', async () => {
    const { seal, warnings } = start(noSecret);
    const sealed = await seal('text');
    should(statSync(wrappedPath(folder)).mode & 0o777).equal(0o600);
    should(readStored(folder)).not.have.property(property);
    should(warnings.join()).match(/no credential secret.*Set credentialSecret/);
    should(start(noSecret).open(sealed)).equal('text');
  });

  it('is protected once there is a secret', async () => {
    const sealed = await start(noSecret).seal('text');
    await start().key.ready();
    should(start(noSecret).open(sealed)).be.undefined();
    should(start().open(sealed)).equal('text');
  });

  it('can be read while its new form cannot be saved', async () => {
    const sealed = await start(noSecret).seal('text');
    const { key } = start({ isFull: true });
    await key.ready();
    await key.ready();
    should(start({ isFull: true }).open(sealed)).equal('text');
    await start().key.ready();
    should(start(noSecret).open(sealed)).be.undefined();
    should(start().open(sealed)).equal('text');
  });

  it('is protected when the disk has room again, without another change', async () => {
    const sealed = await start(noSecret).seal('text');
    const full = start({ isFull: true, retryAfter: 5 });
    await full.key.ready();
    full.settings.isFull = false;
    await until(() => start(noSecret).open(sealed) === undefined);
    should(start().open(sealed)).equal('text');
  });

  it('keeps the wrapping of the old secret when it cannot be written to the file', async () => {
    const sealed = await start().seal('text');
    const variables = { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' };
    const given = start({ ...noSecret, variables, isFull: true });
    const more = await given.seal('more');
    should(given.warnings.join()).match(/cannot be written/);
    should([sealed, more].map(start().open)).deepEqual(['text', 'more']);
  });

  it('moves to the file when the secret is removed while the generated one still exists', async () => {
    const generated = start({ local: {} });
    await generated.settings.set('_credentialSecret', 'made by the runtime');
    const sealed = await generated.seal('text');
    await start(noSecret).key.ready();
    await start(noSecret).settings.set('_credentialSecret', undefined);
    should(start(noSecret).open(sealed)).equal('text');
  });

  it('works in memory, with one warning, when nothing can be written', async () => {
    const { seal, open, warnings } = start({ isFull: true });
    should(open(await seal('one'))).equal('one');
    should(open(await seal('two'))).equal('two');
    should(warnings).have.length(1);
    should(warnings[0]).match(/cannot be written to disk/);
  });

  it('works in memory when the key file cannot be written', async () => {
    chmodSync(folder, 0o500);
    try {
      const { seal, open } = start({ local: { credentialSecret: false, readOnly: true } });
      should(open(await seal('one'))).equal('one');
    } finally {
      chmodSync(folder, 0o700);
    }
  });

  it('replaces a pipe in the place of its file, which nobody would ever write to', async function () {
    if (process.platform === 'win32') leaveOut(this, 'pipes need another system');
    mkdirSync(join(folder, 'advisor-texting'));
    execFileSync('mkfifo', [wrappedPath(folder)]);
    isNeeded = false;
    const sealed = await start().seal('text');
    should(start().open(sealed)).equal('text');
  });

  it('is put into the file as soon as it can be written, without another change', async () => {
    const place = join(folder, 'advisor-texting');
    fs.writeFileSync(place, '');
    const { key, seal } = start({ ...noSecret, retryAfter: 5 });
    const sealed = await seal('text');
    should(start(noSecret).open(sealed)).be.undefined();
    fs.rmSync(place);
    await until(() => !key.isUnsaved);
    should(start(noSecret).open(sealed)).equal('text');
  });

  it('works in memory when the runtime has no settings at all', async () => {
    const refuse = (): never => {
      throw new Error('Settings not available');
    };
    const key = new StoreKey({
      holder: keyHolderOf({ get: refuse, set: refuse }),
      secrets: () => ({ current: '', candidates: [] }),
      isNeeded: () => false,
      warn: () => undefined,
    });
    await key.ready();
    const { seal, open } = sealingWith(key);
    should(open('work', Buffer.from('n'), seal('work', Buffer.from('n'), 'x'))?.value).equal('x');
  });

  it('is beside the store, where a later write to the settings by another process does not remove it', async () => {
    const other = start();
    const sealed = await start().seal('text');
    await other.settings.set('something', 'else');
    should(start().open(sealed)).equal('text');
  });

  it('survives the process even where the settings cannot be written', async () => {
    for (const credentialSecret of ['a', false] as const) {
      folder = freshFolder();
      const local = { credentialSecret, readOnly: true };
      const sealed = await start({ local }).seal('text');
      should(start({ local }).open(sealed)).equal('text');
    }
  });

  it('is in the settings too, where it is found if the file is lost', async () => {
    const sealed = await start().seal('text');
    fs.rmSync(wrappedPath(folder));
    should(start().open(sealed)).equal('text');
    const variables = { ADVISOR_TEXTING_PREVIOUS_SECRET: 'a' };
    await start({ local: { credentialSecret: 'b' }, variables }).key.ready();
    should(start({ local: { credentialSecret: 'b' } }).open(sealed)).equal('text');
  });

  it('is found in the settings if the file is damaged; without them it is locked, and replaced only if nothing needs it', async () => {
    const before = await start().seal('text');
    for (const damaged of ['{"version":1,"act', '{}']) {
      fs.writeFileSync(wrappedPath(folder), damaged);
      should(start().open(before)).equal('text');
    }
    await start().settings.set(property, undefined);
    const locked = start();
    await locked.key.ready();
    should(locked.key.key).be.undefined();
    isNeeded = false;
    const sealed = await start().seal('new');
    isNeeded = true;
    should(start().open(sealed)).equal('new');
  });

  for (const [what, options] of Object.entries({ '': {}, ', without a secret': noSecret }))
    it(`is the same for processes that make it at the same moment${what}`, async () => {
      // All find none, and save theirs one after the other.
      const processes = Array.from({ length: 5 }, (_, index) =>
        start({ ...options, savesAfter: 10 * index }),
      );
      const sealed = await Promise.all(processes.map(({ seal }, index) => seal(`by ${index}`)));
      const all = ['by 0', 'by 1', 'by 2', 'by 3', 'by 4'];
      for (const { open } of [...processes, start(options)]) should(sealed.map(open)).deepEqual(all);
    });

  it('is not taken for damaged when another process makes it just after it was looked for', async () => {
    const sealed = await start().seal('text');
    const made = wrappedPath(folder);
    fs.renameSync(made, `${made}.other`);
    const late = start();
    const look = mock.method(
      fs,
      'statSync',
      () => {
        fs.renameSync(`${made}.other`, made);
        throw new Error('ENOENT');
      },
      { times: 1 },
    );
    isNeeded = false;
    await late.key.ready();
    look.mock.restore();
    should(late.open(sealed)).equal('text');
    should(start().open(sealed)).equal('text');
  });

  it('is shared by two processes on one user directory', async () => {
    const [one, two] = [start(), start()];
    const byOne = await one.seal('by one');
    const byTwo = await two.seal('by two');
    should([byOne, byTwo].map(start().open)).deepEqual(['by one', 'by two']);
    should(two.open(byOne)).equal('by one');
  });

  it('is saved again after a failure, without another change', async () => {
    const full = start({ isFull: true, retryAfter: 5 });
    const sealed = await full.seal('text');
    should(full.warnings.join()).match(/cannot be written to disk/);
    should(start().open(sealed)).be.undefined();
    should(full.key.isUnsaved).be.true();
    full.settings.isFull = false;
    await until(() => !full.key.isUnsaved);
    should(start().open(sealed)).equal('text');
  });
});
