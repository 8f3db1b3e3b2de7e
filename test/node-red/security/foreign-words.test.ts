import { EventEmitter } from 'node:events';
import type { RequestHandler, Response } from 'express';
import should from 'should';
import { hideNumbers, logOf } from '../../../lib/runtime/log';
import { ownWords, plainCode } from '../../../lib/runtime/errors';
import { serviceError } from '../../../lib/service/errors';
import { register } from '../../../lib/runtime/register';
import { createStatus, look } from '../../../lib/runtime/status';
import { routes } from '../../../nodes/environment/routes';
import { wordsIn } from '../../../lib/runtime/language';
import { languages } from '../../../lib/languages';
import { visible } from '../../../lib/visible';
import { problemReply } from '../../support/service/setup';
import { closeAll } from '../../support/closing';
import {
  adminAuth,
  adminPassword,
  startRed,
  type Answer,
  type FlowNode,
  type RealRed,
} from '../../support/node-red';
import { type Scripted, startServer } from '../../support/server';
import { officeOn } from '../../support/security/flow';
import { mountedRoutes, openPaths } from '../../support/security/routes';

const forged = '17 Nov 17:05:20 - [info] forged';
/** Line feeds, terminal codes in both forms, Unicode separators, direction overrides. */
const control = `\r\n${forged}\u001b[2J\u009b31m\u0085\u2028\u2029\u202e\u2066\u0000`;
/** The same number as people and programs write it. */
const notations = [
  '+12025550114',
  '+1 (202) 555-0114',
  '(202) 555-0114',
  '202-555-0114',
  '202.555.0114',
  '0012025550114',
  '12025550114',
  '+1 ２０２ ５５５ ０１１４',
  '+1\u00ad202\u2060555\u200b0114',
  '%2B12025550114',
];
const name = 'Zebulon Quux';
const trace = 'trace-of-the-service';
const said = `${name} has ${notations.join(' and ')}${control}`;

const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

describe('external text', () => {
  it('is escaped where it is invisible, and otherwise unchanged', () => {
    should(visible(control)).not.match(unseen);
    should(visible(control)).startWith(
      `\\r\\n${forged}\\u001b[2J\\u009b31m\\u0085\\u2028\\u2029\\u202e\\u2066`,
    );
    for (const plain of ['Zoë 👩‍👩‍👧 שלום', 'a\\nb', '日本語']) should(visible(plain)).equal(plain);
    should(visible('a\nb\u001b', '\n')).equal('a\nb\\u001b');
    // JSON stays JSON.
    should(JSON.parse(visible(JSON.stringify({ control })))).deepEqual({ control });
  });

  it('is one line in the log, in a status and in a sentence of every language', () => {
    const lines: string[] = [];
    const put = (line: string): void => void lines.push(line);
    const log = logOf({ log: { info: put, warn: put, error: put } } as never);
    for (const level of ['info', 'warn', 'error'] as const) log[level](`Failed: ${said}`);
    const shown = { status: ({ text }: { text: string }) => put(text) };
    const status = createStatus(shown, { say: () => control }, undefined);
    status.markUnsaved();
    status.show(() => look('red', 'ring', said));
    status.close();
    const { problem } = serviceError('not_found', 'advisor_unauthorized', {
      advisor: said,
      environment: said,
    });
    for (const language of languages) lines.push(wordsIn(language).problem(problem));
    // As an older version has stored it.
    lines.push(wordsIn('en-US').problem({ code: 'x', message: said, retryable: false, attempts: 0 }));
    should(lines).have.length(5 + languages.length);
    for (const line of lines) should(line).containEql('forged').and.not.match(unseen);
  });

  it('is one line in the log where a node cannot be made, or the package cannot be loaded', async () => {
    const lines: string[] = [];
    const log = { error: (said: Error | string) => void lines.push(String(said)) };
    const fail = (): never => {
      throw new Error(said);
    };
    const types: ((this: object, config: object) => void)[] = [];
    const nodes = {
      createNode: () => undefined,
      registerType: (_: string, type: (typeof types)[number]) => void types.push(type),
      eachNode: () => undefined,
    };
    const handlers: RequestHandler[] = [];
    const get = (_: string, handler: RequestHandler): void => void handlers.push(handler);
    const app = { get, use: () => undefined };
    const RED = {
      nodes,
      log,
      httpNode: app,
      httpAdmin: app,
      events: new EventEmitter(),
      settings: {},
    } as never;
    register(RED, { type: 'test', credentials: {} } as never, fail);
    types[0]?.call({ ...log, status: () => undefined, on: () => undefined }, {});
    routes(RED, fail);
    const response = { sendStatus: () => undefined } as unknown as Response;
    for (const handler of handlers) await handler({} as never, response, () => undefined);
    should(handlers).have.length(6);
    should(lines).have.length(1 + handlers.length);
    for (const line of lines) should(line).containEql('forged').and.not.match(unseen);
  });

  it('shows four digits of a number in the log, however it is written', () => {
    for (const written of notations) {
      const hidden = hideNumbers(`Call ${written} now`);
      const digits = hidden.normalize('NFKC').replaceAll(/\D/g, '');
      should([written, digits.includes('50114')]).deepEqual([written, false]);
      should(hidden).match(/…\p{Nd}{4} now$/u);
    }
    for (const kept of ['127.0.0.1:1880', '192.168.100.200', '2026-11-17 17:05:20', 'HTTP 503', 'id 4711'])
      should(hideNumbers(kept)).equal(kept);
  });

  it('is left out of what a reader sees, and our own words stay', () => {
    const { problem } = serviceError('rejected', 'rejected', { said });
    const own = ownWords(problem);
    should(own?.message).match(/^The service refused this recipient: “…”/);
    should(wordsIn('de').problem(own ?? problem)).containEql('…');
    should(JSON.stringify(own)).not.containEql(name);
    should(ownWords({ code: 'x', wording: { key: 'of a later version', values: {} } })).be.undefined();
    should(['invalid_request', 'Ada', '12025550114', 'a\nb'].map(plainCode)).deepEqual([
      'invalid_request',
      'other',
      'other',
      'other',
    ]);
  });
});

describe("the service's words, on a real Node-RED", function () {
  this.timeout(120_000);
  let red: RealRed;
  let service: Scripted;
  const tokens = new Map<string, string | undefined>();
  const password = adminAuth.users[0]?.password;

  /** What the service answers to every request. */
  const answers = {
    refused: problemReply('invalid_request', { detail: said, traceId: trace }),
    coded: problemReply('invalid_request', { code: `${name}${control}`, detail: said, traceId: trace }),
    rejected: { body: { successes: [], failures: [said] } },
    shape: { body: { [said]: said, successes: said, state: { said }, data: said, id: said } },
  };
  let answer: (typeof answers)[keyof typeof answers] = answers.refused;

  const node = (id: string, type: string, more: object = {}): FlowNode[] => [
    { id: `in-${id}`, type: 'test-port', z: 'tab', name: id, wires: [[id]] },
    { id, type, z: 'tab', environment: 'office', wires: [], ...more },
  ];

  before(async () => {
    const claims = Buffer.from(JSON.stringify({ sub: said, name: said })).toString('base64url');
    const issued = {
      access_token: 'access-token',
      refresh_token: 'refresh-token',
      id_token: `e30.${claims}.x`,
    };
    service = await startServer(({ url }) => (url === '/token' ? { body: issued } : answer));
    red = await startRed({
      version: 5,
      settings: {
        // Errors are logged with their stacks.
        verbose: true,
        logging: { console: { level: 'trace', metrics: true, audit: true } },
        adminAuth: {
          type: 'credentials',
          users: [
            { username: 'viewer', password, permissions: 'advisor-texting.read' },
            { username: 'clerk', password, permissions: ['read', 'advisor-texting.write'] },
            { username: 'admin', password, permissions: '*' },
          ],
        },
      },
    });
    for (const user of ['viewer', 'clerk', 'admin']) {
      await red.login(user, adminPassword);
      tokens.set(user, red.token);
    }
    const credentials = { clientId: 'client', clientSecret: 'secret-of-tests', apiKey: 'key-of-tests' };
    await red.deploy([
      { id: 'tab', type: 'tab', label: 'Test' },
      {
        ...officeOn(service.url, 'http://127.0.0.1:1/advisor-texting/callback'),
        credentials: { ...credentials, refreshToken: 'seed' },
      },
      ...node('send', 'advisor-send-text'),
      ...node('look', 'advisor-check-consent', { mode: 'once' }),
      ...node('join', 'advisor-group', { operation: 'addContact' }),
      { id: 'status', type: 'status', z: 'tab', scope: null, wires: [['told']] },
      { id: 'told', type: 'test-port', z: 'tab', name: 'told', wires: [] },
      ...node('wired', 'advisor-send-text', { wires: [['out'], ['out'], ['out']] }),
      { id: 'out', type: 'test-port', z: 'tab', name: 'out', wires: [] },
    ]);
    let errors = 0;
    const pass = async (to: string, msg: Record<string, unknown>): Promise<void> => {
      await red.send(to, msg);
      errors += 1;
      const logged = (): number => red.lines.filter((line) => line.includes('[error] [advisor-')).length;
      await red.until(() => logged() >= errors || undefined, 'an error in the log', 20_000);
    };
    const message = { phone: '+12025550114', text: `Hi ${control}`, contactId: 1, groupId: said };
    for (const each of Object.values(answers)) {
      answer = each;
      for (const to of ['send', 'look', 'join']) await pass(to, message);
    }
    await pass('send', { ...message, advisor: `ann${control}` });
    await pass('send', { ...message, phone: said });
    answer = answers.coded;
    await red.send('wired', message);
    await red.messages('out', 1);
  });
  after(async () => {
    await red.close();
    await closeAll();
  });

  const ask = (user: string, method: string, path: string, body?: unknown): Promise<Answer> => {
    red.token = tokens.get(user);
    return red.request(method, `advisor-texting/office/${path}`, body);
  };

  it('forge no line in the log, and show no number in it', async () => {
    await ask('clerk', 'POST', 'link', { advisor: `${said.slice(0, 20)}${control}` });
    await ask('clerk', 'POST', 'test', { advisor: control });
    await red.logged(/advisor-texting\.link/);
    should(red.log).containEql('forged');
    for (const line of red.lines) {
      should(line).not.match(unseen);
      should(line).not.startWith(forged);
      for (const written of notations) should(line).not.containEql(written);
    }
  });

  it('are one line in each status and each of our messages', () => {
    const told = red.arrived.filter(({ port }) => port === 'told').map(({ msg }) => msg);
    const statuses = told.flatMap((msg) => ('status' in msg ? [msg['status'] as { text?: string }] : []));
    should(statuses.length).be.above(3);
    for (const { text = '' } of statuses) should(text).not.match(unseen);
    const [out] = red.arrived.filter(({ port }) => port === 'out').map(({ msg }) => msg);
    const { message, detail } = out?.['error'] as { message: string; detail: string };
    should(message).containEql('forged').and.not.match(unseen);
    // The flow gets the service's words unchanged.
    should(detail).equal(said);
  });

  it('are shown to users who may write; a reader sees code and time', async () => {
    const secrets = [...notations, name, trace];
    const reading = mountedRoutes()
      .filter(({ method, path }) => method === 'GET' && path.includes('/:env/') && !openPaths.includes(path))
      .map(({ path }) => path.replace('/advisor-texting/:env/', ''))
      // Who has authorized is shown to readers by design.
      .filter((path) => path !== 'advisors');
    should(reading).containEql('failures').and.containEql('bundle').and.containEql('lookup/:what');
    for (const [how, each] of Object.entries(answers)) {
      answer = each;
      for (const path of reading) {
        const { text } = await ask('viewer', 'GET', path.replace(':what', 'groups'));
        for (const secret of secrets)
          should([how, path, secret, text.includes(secret)]).deepEqual([how, path, secret, false]);
      }
    }
    interface Failures {
      readonly data: Record<string, unknown>[];
      readonly advice: (string | null)[];
      readonly codes: Record<string, string>;
    }
    const seen = (await ask('viewer', 'GET', 'failures')).json as Failures;
    const whole = (await ask('clerk', 'GET', 'failures')).json as Failures;
    should(seen.data.map(({ at }) => at)).deepEqual(whole.data.map(({ at }) => at));
    for (const { detail, traceId, phone } of seen.data) {
      should([detail, traceId]).deepEqual([null, null]);
      should(phone).match(/^…\p{Nd}{0,4}$/u);
    }
    should(new Set(seen.data.map(({ code }) => code)))
      .containEql('invalid_request')
      .and.containEql('other');
    should(seen.advice.join()).match(/The service refused the request: …/);
    should(whole.data.map(({ detail }) => detail)).containEql(said);
    should(whole.data.map(({ traceId }) => traceId)).containEql(trace);
    should(whole.advice.join()).containEql(name);
    const { text } = await ask('clerk', 'GET', 'bundle');
    should(text).containEql(trace).and.not.containEql(name);
  });
});
