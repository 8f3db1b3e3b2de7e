import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { digest, once } from './installation';

/** The server refuses to run as root. */
const identity = (): { uid?: number; gid?: number } => {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
};

/** A PostgreSQL for one test, on a socket in a temporary folder. */
export class Postgres {
  readonly folder = mkdtempSync(join(tmpdir(), 'advisor-pg-'));
  private readonly who = identity();
  private server: ChildProcess | undefined;
  private inUse = 'data';
  private standby: { readonly server: ChildProcess; readonly data: string } | undefined;
  private standbys = 0;

  /** `isDurable`: as in production, what is committed survives a power cut. */
  static async start({ isDurable = false } = {}): Promise<Postgres> {
    const { findPostgres } = await import('../../scripts/programs.mjs');
    const bin = findPostgres();
    if (bin === undefined) throw new Error('PostgreSQL is not installed on this machine.');
    const server = new Postgres(bin, isDurable ? 'on' : 'off');
    server.own(server.folder);
    chmodSync(server.folder, 0o755);
    // The first makes what all others copy.
    const cluster = once(`cluster-${digest([bin, String(server.who.uid)])}`, (making) => {
      server.own(making);
      const options = ['-A', 'trust', '-U', 'test', '-E', 'UTF8', '--no-locale', '-N'];
      server.execute('initdb', ['-D', join(making, 'data'), ...options]);
    });
    execFileSync('cp', ['-a', join(cluster, 'data'), server.data]);
    await server.run();
    return server;
  }

  private own(folder: string): void {
    if (this.who.uid !== undefined) chownSync(folder, this.who.uid, this.who.gid ?? 0);
  }

  private constructor(
    private readonly bin: string,
    private readonly fsync: 'on' | 'off',
  ) {}

  private get data(): string {
    return join(this.folder, this.inUse);
  }

  /** The address of one of its databases. */
  url(database = 'postgres'): string {
    return `postgres://test@localhost/${database}?host=${encodeURIComponent(this.folder)}`;
  }

  /** A database for one test. */
  async database(name: string): Promise<string> {
    this.query(`create database ${name}`);
    return this.url(name);
  }

  query(statement: string, database = 'postgres'): string {
    return this.execute('psql', ['-h', this.folder, '-U', 'test', '-d', database, '-Atc', statement]);
  }

  async run(): Promise<void> {
    this.server = this.spawn(this.data, this.folder);
    await this.until(() => this.query('select 1') !== '');
  }

  /** From now on, commits are replicated to another server. */
  async addStandby(): Promise<void> {
    this.standbys += 1;
    const name = `standby${this.standbys}`;
    const data = join(this.folder, name);
    this.query(`alter system set synchronous_standby_names = ''`);
    this.query(`select pg_reload_conf()`);
    this.execute('pg_basebackup', [
      '-h',
      this.folder,
      '-U',
      'test',
      '-D',
      data,
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
    ]);
    // Nobody else looks for its socket there.
    this.standby = { server: this.spawn(data, data), data: name };
    this.query(`alter system set synchronous_standby_names = '*'`);
    this.query(`select pg_reload_conf()`);
    const isInSync = `select count(*) from pg_stat_replication where state = 'streaming' and sync_state = 'sync'`;
    await this.until(() => this.query(isInSync).trim() === '1');
  }

  /** The server fails, and its standby replaces it, at the same address, with a standby of its own. */
  async failOver(): Promise<void> {
    const standby = this.standby;
    if (!standby) throw new Error('There is no standby.');
    await this.stop();
    this.inUse = standby.data;
    await this.end(standby.server, 'SIGQUIT');
    rmSync(join(this.data, 'standby.signal'));
    this.standby = undefined;
    appendFileSync(join(this.data, 'postgresql.auto.conf'), `synchronous_standby_names = ''\n`);
    await this.run();
    await this.addStandby();
  }

  private spawn(data: string, socket: string): ChildProcess {
    return spawn(
      join(this.bin, 'postgres'),
      ['-D', data, '-k', socket, '-c', 'listen_addresses=', '-c', `fsync=${this.fsync}`],
      { ...this.who, cwd: this.folder, stdio: 'ignore' },
    );
  }

  private async until(isSo: () => boolean): Promise<void> {
    for (;;) {
      try {
        if (isSo()) return;
      } catch {
        // It is not running yet.
      }
      await pause(50);
    }
  }

  /** Immediately, as when its machine fails. */
  async stop(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    if (server) await this.end(server, 'SIGQUIT');
  }

  private async end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    const ended = new Promise((resolve) => server.once('close', resolve));
    server.kill(signal);
    await ended;
  }

  async close(): Promise<void> {
    await this.stop();
    if (this.standby) await this.end(this.standby.server, 'SIGQUIT');
    rmSync(this.folder, { recursive: true, force: true });
  }

  private execute(program: string, args: readonly string[]): string {
    return execFileSync(join(this.bin, program), args, {
      ...this.who,
      cwd: this.folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }
}
