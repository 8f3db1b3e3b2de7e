import { rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { faultsIn, type Step } from './history';
import { freshUserDir } from '../support/installation';
import { type RealRed, startRed } from '../support/node-red';
import { Postgres } from '../support/postgres';
import {
  environmentId,
  numbers,
  randomFrom,
  Sandbox,
  type TimedTold,
  toldOf,
  twoNodes,
} from '../support/sandbox';

/** `npm run proof -- instances`: three Node-RED instances on one PostgreSQL, and what may happen to any of them. */

const given = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);
const seed = given('TEST_SEED', Math.floor(Math.random() * 2 ** 31));
const waitCount = given('INSTANCES_WAITS', 5000);
const textCount = given('INSTANCES_TEXTS', 10_000);
const faultCount = given('INSTANCES_FAULTS', 10);
const versions = (process.env['INSTANCES_VERSIONS'] ?? '4,5').split(',').map(Number) as (4 | 5)[];

const sends = ['sent', 'failed', 'needs consent'];
const ends = ['accepted', 'wait failed', 'not accepted'];
/** A lease lasts 15 seconds. */
const longerThanLease = 20_000;

for (const version of versions)
  describe(`three Node-RED ${version} on one PostgreSQL (TEST_SEED=${seed})`, function () {
    this.timeout(3_600_000);
    let server: Postgres;
    let on: Sandbox;
    const reds: RealRed[] = [];
    const userDirs: string[] = [];

    before(async () => {
      server = await Postgres.start();
      await server.addStandby();
      const withPg = (): string => {
        const userDir = freshUserDir();
        userDirs.push(userDir);
        symlinkSync(dirname(require.resolve('pg/package.json')), join(userDir, 'node_modules', 'pg'));
        return userDir;
      };
      const env = { DATABASE: server.url() };
      on = await Sandbox.start({
        version,
        userDir: withPg(),
        env,
        simulator: { contacts: waitCount, settings: { consentRequired: false } },
        environment: { store: 'postgres' },
        flows: twoNodes({ waiter: { pollEvery: 10 } }),
      });
      // So that something is in flight whenever a fault strikes.
      on.simulator.faults.add({ kind: 'slow', delay: 0.2, rate: 1, endpoint: 'sendMessage' });
      const [environment, ...nodes] = on.flows;
      const credentials = { ...(environment?.['credentials'] as object), storeUrl: '${DATABASE}' };
      const flows = [{ ...environment, credentials }, ...nodes] as typeof on.flows;
      await on.red.deploy(flows);
      reds.push(on.red);
      while (reds.length < 3) {
        const red = await startRed({
          version,
          userDir: withPg(),
          env,
          settings: { disableEditor: true },
          flows: [],
        });
        await red.deploy(flows);
        reds.push(red);
      }
    });
    after(async () => {
      for (const red of reds.slice(1)) await red.close();
      await on.close();
      await server.close();
      for (const userDir of userDirs) rmSync(userDir, { recursive: true, force: true });
    });

    const told = (ports: readonly string[]): Map<string, TimedTold[]> => {
      const all = new Map<string, TimedTold[]>();
      for (const red of reds)
        for (const [phone, outcomes] of toldOf(red, ports).timed)
          all.set(phone, [...(all.get(phone) ?? []), ...outcomes]);
      return all;
    };
    /** When each number was first accepted. */
    const acceptances = new Map<string, number>();
    const accept = (phone: string): void => {
      if (!acceptances.has(phone)) acceptances.set(phone, Date.now());
      on.simulator.accept(phone, 'default');
    };
    /**
     * What is wrong with everything that was emitted and received: everything is accepted, because an outcome of each
     * was waited for.
     */
    const history = (texts: readonly string[], waiting: readonly string[]): string[] => {
      const steps: Step[] = [];
      const add = (kind: 'send' | 'wait', phones: readonly string[], ports: readonly string[]): void => {
        const outcomes = told(ports);
        for (const phone of phones) {
          const of = { name: `${kind} ${phone}`, kind, phone };
          steps.push({ ...of, type: 'accepted', at: 0 });
          // One that was stopped before it emitted an outcome may do so after another has emitted it as repeated.
          const all = (outcomes.get(phone) ?? []).toSorted(
            (a, b) => Number(a.isRepeated) - Number(b.isRepeated),
          );
          for (const { port, code = '', isRepeated, at } of all) {
            const isGood = port === 'sent' || port === 'accepted';
            const type = isGood ? 'ok' : code === 'outcome_unknown' ? 'unknown' : 'failed';
            steps.push({ ...of, type, code, repeated: isRepeated, at });
          }
        }
      };
      add('send', texts, sends);
      add('wait', waiting, ends);
      const deeds = on
        .entries('sendMessage')
        .filter(({ processed }) => processed)
        .map(({ phone }) => ({
          kind: 'send' as const,
          name: `send ${String(phone)}`,
          phone: String(phone),
          at: 0,
          age: 0,
        }));
      return faultsIn({ steps, deeds, polls: [], acceptances, askEvery: 0, pollEvery: 0, starts: undefined });
    };
    const until = async (
      what: string,
      isSo: () => boolean,
      limit = 1_200_000,
      every = 1000,
    ): Promise<void> => {
      const end = performance.now() + limit;
      while (!isSo()) {
        if (performance.now() > end) throw new Error(`${what} did not come.\n${await situation()}`);
        await pause(every);
      }
    };
    /** What all of them have and say, to find out why something did not arrive. */
    const situation = async (): Promise<string> => {
      const asked = async (red: RealRed, path: string): Promise<string> => {
        const answer = await Promise.race([
          red.request('GET', `advisor-texting/${path}`).catch(String),
          pause(10_000, 'no answer'),
        ]);
        return `${path}: ${(typeof answer === 'string' ? answer : answer.text).slice(0, 500)}`;
      };
      const of = async (red: RealRed, at: number): Promise<string> =>
        [
          `instance ${at}`,
          await asked(red, 'health'),
          await asked(red, `${environmentId}/queue?pageSize=3`),
          await asked(red, `${environmentId}/waits?pageSize=1`),
          ...red.lines.slice(-15),
        ].join('\n  ');
      const leases = `select slot, holder, token, seq, until, busy, now() from advisor_texting.lease order by slot`;
      const busy = `select pid, state, wait_event_type, wait_event, now() - state_change, left(query, 80)
        from pg_stat_activity where application_name = 'advisor-texting'`;
      const instances = await Promise.all(reds.map(of));
      return [...instances, server.query(leases), server.query(busy)].join('\n');
    };

    /** Another takes over within so many seconds of its end. */
    const succession = async (within: number, end: () => Promise<void>): Promise<void> => {
      const tokens = (): Map<string, string> =>
        new Map(
          server
            .query(`select slot, token from advisor_texting.lease where slot > 0`)
            .trim()
            .split('\n')
            .map((row) => row.split('|') as [string, string]),
        );
      const before = tokens();
      await end();
      const began = performance.now();
      const isTaken = (): boolean => {
        const now = tokens();
        return [...before].some(([slot, token]) => now.get(slot) !== token);
      };
      await until('A successor', isTaken, 120_000, 100);
      const seconds = (performance.now() - began) / 1000;
      console.log(`        succeeded after ${seconds.toFixed(1)} s`);
      should(seconds).be.below(within);
    };

    const faults: Readonly<
      Record<string, (red: RealRed, random: (below: number) => number) => Promise<void>>
    > = {
      'kill -9, and started again at once': async (red) => {
        await red.kill9();
        await red.run();
      },
      'kill -9, and started again once it was succeeded': async (red) => {
        await succession(30, () => red.kill9());
        await red.run();
      },
      'a clean restart': async (red) => {
        await red.restart();
      },
      'a clean stop, and started again once it was succeeded': async (red) => {
        await succession(2, () => red.stop());
        await red.run();
      },
      'stopped for longer than a lease': async ({ pid }) => {
        if (pid === undefined) return;
        process.kill(pid, 'SIGSTOP');
        await pause(longerThanLease);
        process.kill(pid, 'SIGCONT');
      },
      'the database restarted': async (_red, random) => {
        await server.stop();
        await pause(random(3000));
        await server.run();
      },
      'the database away for longer than a lease': async () => {
        await server.stop();
        await pause(longerThanLease);
        await server.run();
      },
      'the database failed over to its standby': async () => {
        await server.failOver();
      },
      'all connections cut': async () => {
        server.query(`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()
            and backend_type = 'client backend'`);
      },
    };

    it(`${textCount} texts and ${waitCount} waits through ${faultCount} faults: nothing lost, no text twice`, async () => {
      const random = randomFrom(seed + version);
      const texts = numbers(textCount, 10_000);
      const waiting = numbers(waitCount);
      /** Hands a share over, and waits for a result: the service has seen one of it, or it was rejected. */
      const handOver = async (round: number): Promise<void> => {
        const share = <T>(all: readonly T[]): T[] =>
          all.slice((round * all.length) / (faultCount + 1), ((round + 1) * all.length) / (faultCount + 1));
        const [some, others] = [share(texts), share(waiting)];
        const red = reds[random(3)] ?? on.red;
        await red.send('send', { phone: some, text: 'Hello' });
        await red.send('wait', { phone: others });
        const isSeen = (endpoint: string, phones: readonly string[], ports: readonly string[]): boolean => {
          const meant = new Set(phones);
          const outcomes = told(ports);
          const entries = on.entries(endpoint);
          return (
            entries.some(({ phone }) => meant.has(String(phone))) || phones.some((each) => outcomes.has(each))
          );
        };
        await until('The first text of a list', () => isSeen('sendMessage', some, sends));
        await until('A poll', () => others.length === 0 || isSeen('getConsent', others, ends));
      };
      const kinds = Object.keys(faults);
      await handOver(0);
      for (let fault = 0; fault < faultCount; fault++) {
        for (const phone of waiting.slice(
          (fault * waitCount) / faultCount,
          ((fault + 0.5) * waitCount) / faultCount,
        ))
          accept(phone);
        await pause(random(2000));
        const [kind = '', at] = [kinds[random(kinds.length)], random(3)];
        console.log(`      ${kind} (${at})`);
        await faults[kind]?.(reds[at] ?? on.red, random);
        await handOver(fault + 1);
      }
      for (const phone of waiting) accept(phone);
      await until('The last outcome of a text', () => told(sends).size >= texts.length);
      await until('The end of the last wait', () => told(ends).size >= waiting.length);

      should(history(texts, waiting)).deepEqual([]);
      const codes: Record<string, number> = {};
      for (const [kind, ports] of Object.entries({ text: sends, wait: ends }))
        for (const all of told(ports).values())
          for (const { port, code = port, isRepeated } of all) {
            const name = `${kind}: ${code}${isRepeated ? ', repeated' : ''}`;
            codes[name] = (codes[name] ?? 0) + 1;
            // What came in while its instance was cut off for longer than its lease is not saved.
            should(['sent', 'accepted', 'outcome_unknown', 'network_error']).containEql(code);
          }
      console.log(`      ${JSON.stringify(codes)}`);
    });
  });
