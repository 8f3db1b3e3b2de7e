import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import files from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import should from 'should';
import { fileLease } from '../../lib/auth/lease';
import { freshFolder, removeFolders } from './support';

const held = Symbol('held');

describe('lease', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = freshFolder();
    path = join(folder, 'advisor-texting', 'x.lease');
    mkdirSync(join(folder, 'advisor-texting'));
  });
  after(removeFolders);

  const take = async (): Promise<string | typeof held> =>
    Promise.race([
      fileLease(folder)('x', async () => 'taken'),
      new Promise<typeof held>((resolve) => setTimeout(resolve, 300, held)),
    ]);
  const leave = (holder: object): void => {
    writeFileSync(path, JSON.stringify({ pid: process.pid, host: hostname(), ...holder }));
  };

  it('is waited for while its holder lives', async () => {
    leave({ since: performance.timeOrigin });
    should(await take()).equal(held);
    await files.rm(path);
  });

  it('is taken from a process that is gone, though this one has its number', async () => {
    leave({ since: performance.timeOrigin - 1000 });
    should(await take()).equal('taken');
    should(existsSync(path)).be.false();
  });

  it('is not waited for without end when the clock was set back after it was taken', async () => {
    leave({ host: 'another' });
    const tomorrow = new Date(Date.now() + 86_400_000);
    await files.utimes(path, tomorrow, tomorrow);
    should(await fileLease(folder)('x', async () => 'taken', 100)).equal('taken');
  });

  it('keeps nobody from working where an abandoned one cannot be removed', async () => {
    leave({ since: 0 });
    const fault = Object.assign(new Error('read-only'), { code: 'EROFS' });
    const rename = mock.method(files, 'rename', () => Promise.reject(fault));
    try {
      should(await take()).equal('taken');
    } finally {
      rename.mock.restore();
    }
  });

  it('is held, and given up, where there is no room to write who holds it', async () => {
    const opened = await files.open(path, 'w');
    const write = mock.method(Object.getPrototypeOf(opened) as typeof opened, 'writeFile', () =>
      Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })),
    );
    await opened.close();
    await files.rm(path);
    try {
      should(await take()).equal('taken');
      should(await take()).equal('taken');
    } finally {
      write.mock.restore();
    }
    should(existsSync(path)).be.false();
  });
});
