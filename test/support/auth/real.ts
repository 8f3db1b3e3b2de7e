import type { FlowNode, RealRed } from '../node-red';
import type { Simulator } from '../../../simulator';
import { decide } from './setup';

/** Each password is the name; hashed as cheaply as bcrypt allows. */
export const adminAuth = {
  type: 'credentials',
  users: [
    {
      username: 'admin',
      password: '$2b$04$G3vAuk1Zj/kAOGMiB15aRe76bReYbms2Wsavggmu6QQ7p.RE1fYBi',
      permissions: '*',
    },
  ],
};

export const environmentId = 'e1e1e1e1e1e1e1e1';

/** An environment whose sandbox is a separate simulator, and a flow that sends through it. */
export const sandboxFlow = (red: RealRed, simulator: Simulator, changes: object = {}): FlowNode[] => [
  { id: 'f1f1f1f1f1f1f1f1', type: 'tab', label: 'Test' },
  {
    id: environmentId,
    type: 'advisor-environment',
    name: 'Sandbox',
    service: 'sandbox',
    baseUrl: simulator.baseUrl,
    authUrl: simulator.authUrl,
    tokenUrl: simulator.tokenUrl,
    redirectUri: `${red.adminUrl}/advisor-texting/callback`,
    grant: 'authorization_code',
    scopes: ['offline_access', 'text.messaging.write', 'text.messaging.read', 'core.contacts.read'],
    credentials: simulator.credentials,
    ...changes,
  },
  {
    id: 'a1a1a1a1a1a1a1a1',
    type: 'test-port',
    z: 'f1f1f1f1f1f1f1f1',
    name: 'in',
    wires: [['b1b1b1b1b1b1b1b1']],
  },
  {
    id: 'b1b1b1b1b1b1b1b1',
    type: 'advisor-send-text',
    z: 'f1f1f1f1f1f1f1f1',
    environment: environmentId,
    wires: [['c1c1c1c1c1c1c1c1'], ['d1d1d1d1d1d1d1d1'], ['d1d1d1d1d1d1d1d1']],
  },
  { id: 'c1c1c1c1c1c1c1c1', type: 'test-port', z: 'f1f1f1f1f1f1f1f1', name: 'sent', wires: [] },
  { id: 'd1d1d1d1d1d1d1d1', type: 'test-port', z: 'f1f1f1f1f1f1f1f1', name: 'not sent', wires: [] },
];

/** Resolves when the new flows run. */
export const deployOn = async (red: RealRed, flows: readonly FlowNode[]): Promise<void> => {
  const from = red.lines.length;
  await red.deploy(flows);
  await red.logged(/Started (modified )?(flows|nodes)/, { from });
};

export const route = (path: string): string => `advisor-texting/${environmentId}/${path}`;

export interface Page {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** As a browser without a login would open it. */
export const open = async (url: URL | string, headers: Record<string, string> = {}): Promise<Page> => {
  const answer = await fetch(url, { redirect: 'manual', headers });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
};

export const begin = async (red: RealRed, advisor = 'default', form?: object): Promise<string> => {
  const answer = await red.request('POST', route('authorize'), { advisor, ...(form ? { form } : {}) });
  if (answer.status !== 200) throw new Error(answer.text);
  return (answer.json as { url: string }).url;
};

/** What our own page gives a browser: the authorization page, and a cookie. */
export const enter = async (url: string): Promise<{ address: string; cookie: string }> => {
  const page = await open(url);
  const [cookie = ''] = (page.headers.get('set-cookie') ?? '').split(';');
  return { address: page.headers.get('location') ?? '', cookie };
};

/** What an advisor decides, starting from our own page; returns the redirect and its cookie. */
export const decideFrom = async (
  url: string,
  person = 'Alice',
  decision = 'approve',
): Promise<{ back: URL; cookie: string }> => {
  const { address, cookie } = await enter(url);
  return { back: await decide(address, person, decision), cookie };
};

/** The whole flow in one browser. */
export const authorizeOn = async (
  red: RealRed,
  advisor = 'default',
  person = 'Alice',
  form?: object,
): Promise<Page> => {
  const { back, cookie } = await decideFrom(await begin(red, advisor, form), person);
  return open(back, { cookie });
};

export interface Listed {
  readonly advisor: string;
  readonly state: string;
  readonly identity: string | null;
  readonly scopes: string[];
  readonly missingScopes: string[];
  readonly expiresAt: number | null;
  readonly refreshedAt: number | null;
}

export const advisorsOf = async (red: RealRed): Promise<Listed[]> =>
  (await red.request('GET', route('advisors'))).json as Listed[];
