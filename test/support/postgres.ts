import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Where Debian, Ubuntu and Fedora put the programs of the server. */
const binaries = (): string => {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const found = [
    ...versions.map((version) => join(debian, version, 'bin')),
    '/usr/bin',
    '/usr/local/bin',
  ].find((folder) => existsSync(join(folder, 'initdb')));
  if (found === undefined) throw new Error('PostgreSQL is not installed: sudo apt-get install postgresql');
  return found;
};

/** The server refuses to run for root. */
const identity = (): { uid?: number; gid?: number } => {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
};

/** A PostgreSQL of the test's own, on a socket in a temporary folder. */
export class Postgres {
  readonly folder = mkdtempSync(join(tmpdir(), 'advisor-pg-'));
  readonly #bin = binaries();
  readonly #who = identity();
  #server: ChildProcess | undefined;

  static async start(): Promise<Postgres> {
    const server = new Postgres();
    if (server.#who.uid !== undefined) chownSync(server.folder, server.#who.uid, server.#who.gid ?? 0);
    chmodSync(server.folder, 0o755);
    server.#run('initdb', [
      '-D',
      server.#data,
      '-A',
      'trust',
      '-U',
      'test',
      '-E',
      'UTF8',
      '--no-locale',
      '-N',
    ]);
    await server.run();
    return server;
  }

  get #data(): string {
    return join(this.folder, 'data');
  }

  /** Of a database in it. */
  url(database = 'postgres'): string {
    return `postgres://test@localhost/${database}?host=${encodeURIComponent(this.folder)}`;
  }

  /** A database of a test's own. */
  async database(name: string): Promise<string> {
    this.query(`create database ${name}`);
    return this.url(name);
  }

  query(statement: string, database = 'postgres'): string {
    return this.#run('psql', ['-h', this.folder, '-U', 'test', '-d', database, '-Atc', statement]);
  }

  async run(): Promise<void> {
    this.#server = spawn(
      join(this.#bin, 'postgres'),
      ['-D', this.#data, '-k', this.folder, '-c', 'listen_addresses=', '-c', 'fsync=off'],
      { ...this.#who, cwd: this.folder, stdio: 'ignore' },
    );
    for (;;) {
      try {
        this.#run('pg_isready', ['-h', this.folder]);
        this.query('select 1');
        return;
      } catch {
        await pause(50);
      }
    }
  }

  /** At once, as when its machine fails. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const ended = new Promise((resolve) => server.once('close', resolve));
    server.kill('SIGQUIT');
    await ended;
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #run(program: string, args: readonly string[]): string {
    return execFileSync(join(this.#bin, program), args, {
      ...this.#who,
      cwd: this.folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }
}
