import should from 'should';
import type { Locator, Page } from 'playwright-core';
import {
  closeEnvironment,
  closeNode,
  openEditor,
  openEnvironment,
  openNode,
} from '../../support/editor/setup';
import { problemReply } from '../../support/service/setup';
import { launchBrowser, type TestBrowser } from '../../support/browser';
import { visible } from '../../../lib/visible';
import { closeAll } from '../../support/closing';
import { type FlowNode, type RealRed, startRed } from '../../support/node-red';
import { type Reply, startServer } from '../../support/server';
import { officeOn } from '../../support/security/flow';

/** It ends with a terminal code and a direction override. */
const hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u001b[2J\u202e';
const shown = visible(hostile);
const record = {
  contactId: 1,
  fullName: hostile,
  email: hostile,
  groupId: 4,
  name: hostile,
  title: hostile,
  url: 'javascript:window.hacked=1',
};

const node = (id: string, type: string, more: object): FlowNode => ({
  id,
  type,
  z: 'tab',
  x: 200,
  y: 100,
  environment: 'office',
  wires: [],
  ...more,
});

const flowsOn = (service: string): FlowNode[] => [
  { id: 'tab', type: 'tab', label: 'Test' },
  {
    ...officeOn(service, 'http://127.0.0.1:1/advisor-texting/callback'),
    credentials: {
      clientId: 'client',
      clientSecret: 'secret-of-tests',
      apiKey: 'key-of-tests',
      refreshToken: 'seed',
    },
  },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', wires: [['send']] },
  node('send', 'advisor-send-text', { name: hostile }),
  node('contact', 'advisor-contact', { operation: 'get', y: 200 }),
  node('group', 'advisor-group', { operation: 'setGroups', y: 300 }),
  node('content', 'advisor-content', { y: 400 }),
];

describe('hostile data and errors in a real browser', function () {
  this.timeout(180_000);
  let red: RealRed;
  let browser: TestBrowser;
  let page: Page;
  let answer: Reply;

  before(async () => {
    const claims = Buffer.from(JSON.stringify({ sub: hostile, name: hostile })).toString('base64url');
    const tokens = {
      access_token: 'access-token-of-tests',
      refresh_token: 'refresh-token-of-tests',
      id_token: `e30.${claims}.x`,
    };
    const service = await startServer(({ url }) => (url === '/token' ? { body: tokens } : answer));
    [red, browser] = await Promise.all([startRed({ version: 5 }), launchBrowser()]);
    await red.deploy(flowsOn(service.url));
    ({ page } = await openEditor(red, browser));
  });
  after(async () => {
    await browser.close();
    await red.close();
    await closeAll();
  });
  afterEach(async () => {
    should(await page.evaluate('window.hacked')).be.undefined();
  });

  const picker = (field: string): Locator => page.locator(`[data-field=${field}]`);
  const showsIn = async (id: string, field: string, list: (picker: Locator) => Locator): Promise<void> => {
    await openNode(page, id);
    await picker(field).locator('.advisor-icon-button').click();
    await list(picker(field)).filter({ hasText: shown }).first().waitFor();
    await page.keyboard.press('Escape');
    await closeNode(page, 'cancel');
  };

  for (const [id, field] of [
    ['contact', 'contactId'],
    ['group', 'groupIds'],
    ['content', 'search'],
  ] as const) {
    it(`are text in a picker (${id})`, async () => {
      answer = { body: { data: [record], pageInfo: { page: 1, pageSize: 20, totalRecord: 1 } } };
      await showsIn(id, field, (list) => list.getByRole('listitem'));
    });
  }

  it('are text where a list says why it is empty', async () => {
    answer = problemReply('invalid_request', { detail: hostile });
    await showsIn('contact', 'contactId', (list) => list.getByRole('status'));
  });

  it('are text in the dialog of the environment: who signed in, and the results of a connection test', async () => {
    // A page of contacts and a contact in one: the connection test shows how its dates are written.
    const contact = { ...record, birthDate: hostile, groupIds: [] };
    const pageInfo = { page: 1, pageSize: 20, totalRecord: 1 };
    answer = { body: { ...contact, state: 'none', data: [contact], pageInfo } };
    await openEnvironment(page, 'office');
    const card = page.locator('.advisor-card').first();
    await card.getByText(`Signed in as ${shown}`).waitFor();
    await card.getByRole('button', { name: 'Test connection', exact: true }).click();
    const results = card.locator('.advisor-results > li');
    await results.filter({ hasText: 'birthDate <img src=x onerror="window.hacked=#' }).waitFor();
    should(await results.count()).equal(6);
    should(await card.locator('img, script').count()).equal(0);
    await closeEnvironment(page, 'cancel');
  });

  it('are text in the sidebar, which shows uncaught errors', async () => {
    answer = problemReply('invalid_request', { code: hostile });
    await page.evaluate("RED.sidebar.show('debug')");
    await red.send('in', { phone: '+12025550123', text: hostile });
    await page.locator('.red-ui-debug-msg').filter({ hasText: 'The service answered' }).first().waitFor();
  });

  it('are not on the page that the authorization redirects to', async () => {
    const query = new URLSearchParams({ error: hostile, error_description: hostile, state: hostile });
    const back = await page.context().newPage();
    await back.goto(`${red.adminUrl}/advisor-texting/callback?${query.toString()}`);
    should(await back.content()).not.containEql('hacked');
    should(await back.evaluate('window.hacked')).be.undefined();
    await back.close();
  });
});
