import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import should from 'should';
import { asCompiled } from '../../support/compiled';
import { readCommandLine } from '../../../simulator/cli-options';

const run = (...args: string[]) =>
  spawn(process.execPath, [...asCompiled, join(__dirname, '..', '..', '..', 'simulator', 'cli.ts'), ...args]);

const finished = async (
  child: ReturnType<typeof run>,
): Promise<{ code: unknown; out: string; err: string }> => {
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const [code] = (await once(child, 'close')) as [unknown];
  return { code, out, err };
};

describe('the command line', () => {
  it('runs the simulator, prints its address and credentials, and stops on Ctrl-C', async () => {
    const child = run('simulator', '--port', '0', '--seed', 'contacts=25', '--api-key', 'k1');
    const ending = finished(child);
    let said = '';
    while (!said.includes('Ctrl-C')) said += String(((await once(child.stdout, 'data')) as [Buffer])[0]);
    const base = /base address\s+(\S+)/.exec(said)?.[1] ?? '';
    const tokenUrl = /token\s+(\S+)/.exec(said)?.[1] ?? '';
    const granted = await fetch(tokenUrl, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: /client id\s+(\S+)/.exec(said)?.[1] ?? '',
        client_secret: /client secret\s+(\S+)/.exec(said)?.[1] ?? '',
      }),
    });
    const { access_token: token } = (await granted.json()) as { access_token: string };
    const answer = await fetch(`${base}/core/contact/contacts`, {
      headers: { authorization: `Bearer ${token}`, 'x-api-key': 'k1' },
    });
    should(((await answer.json()) as { pageInfo: { totalRecord: number } }).pageInfo.totalRecord).equal(25);
    child.kill('SIGINT');
    should((await ending).code).equal(0);
  });

  it('says which port is taken and what to do', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await once(blocker, 'listening');
    const { port } = blocker.address() as AddressInfo;
    const { code, err } = await finished(run('simulator', '--port', String(port)));
    blocker.close();
    should(code).equal(1);
    should(err).match(new RegExp(`Port ${String(port)} is in use.*--port`));
  });

  it('shows its help, and a wrong flag as one line with a hint', async () => {
    const [help, wrong] = await Promise.all([
      finished(run('--help')),
      finished(run('simulator', '--nonsense')),
    ]);
    should([help.code, wrong.code]).eql([0, 1]);
    should(help.out).match(/--seed contacts=N/);
    should(wrong.err).match(/^Unknown option '--nonsense'\.\nSee: advisor-texting --help\n$/);
  });

  it('simulates another service with --profile, less the habits named, and says what a client must set', async () => {
    const child = run('simulator', '--port', '0', '--profile', 'foreign', '--habit', 'corePrefix=book');
    const ending = finished(child);
    let said = '';
    while (!said.includes('Ctrl-C')) said += String(((await once(child.stdout, 'data')) as [Buffer])[0]);
    should(said).match(/path prefixes book, sms; delivery date in s; country US\n.*"page":"pageNumber"/);
    const url = /control API\s+(\S+)\/state/.exec(said)?.[1] ?? '';
    const settings = (await (await fetch(`${url}/settings`)).json()) as Record<string, unknown>;
    should(settings['profile']).equal(null);
    should(settings['habits']).containEql({ corePrefix: 'book', ids: 'strings' });
    child.kill('SIGINT');
    should((await ending).code).equal(0);
  });

  const bad: readonly [string[], RegExp][] = [
    [['nonsense'], /no command "nonsense".*simulator, check, bundle/],
    [['simulator', '--port', 'x'], /--port takes a whole number/],
    [['simulator', '--port', '70000'], /up to 65535/],
    [['simulator', '--seed', 'people=5'], /contacts=N/],
    [['simulator', '--seed', 'contacts=many'], /whole number/],
    [['simulator', '--token-lifetime', 'x'], /--token-lifetime/],
    [['simulator', '--redirect-uri', 'http://example.com/'], /redirect URI/],
    [
      ['simulator', '--profile', 'strange'],
      /no profile "strange". Profiles: usual, emptyTexts, nationalNumbers, foreign/,
    ],
    [['simulator', '--habit', 'mood=bad'], /not "mood=bad". Names: .*contactDelay/],
    [['simulator', '--habit', 'ids'], /NAME=VALUE/],
    [['simulator', '--habit', 'ids=letters'], /ids takes numbers or strings or large, not "letters"/],
    [['simulator', '--habit', 'contactDelay=soon'], /whole number/],
    [['simulator', '--habit', 'names=page'], /JSON/],
    [['simulator', '--habit', 'names={"pages":"p"}'], /Unrecognized key: "pages"/],
    [['simulator', '--habit', 'names={"page":"limit","pageSize":"limit"}'], /its own name/],
    [['simulator', '--habit', 'corePrefix=a/b'], /without slashes/],
  ];
  for (const [args, message] of bad) {
    it(`rejects ${args.join(' ')}`, () => {
      should(() => readCommandLine(args)).throw(message);
    });
  }

  it('reads every flag', () => {
    const args =
      'simulator --port 0 --host 0.0.0.0 --data f --rotate --token-lifetime 5 --redirect-uri loopback --random-seed 3';
    should(readCommandLine(args.split(' '))).containDeep({
      port: 0,
      host: '0.0.0.0',
      data: 'f',
      settings: { rotateRefreshTokens: true, accessTokenLifetime: 5, redirectUris: ['loopback'] },
      randomSeed: 3,
    });
  });
});
