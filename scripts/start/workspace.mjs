import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const welcomeId = 'welcome000000000';

/** The widths of letters in the editor's font (Helvetica, Arial or one of the same widths), in thousandths. */
const widths = Object.entries({
  191: "'",
  222: 'ijl',
  278: ' !,./:;Ift',
  333: '()-r',
  355: '"',
  500: 'ckszvxyJ',
  611: 'FTZ',
  667: 'ABEKPSVXY&',
  722: 'CDHNRUw',
  778: 'GOQ',
  833: 'Mm',
  944: 'W',
});
const fontSize = 14;

const widthOf = (text) =>
  [...text].reduce(
    (sum, letter) => sum + Number(widths.find(([, letters]) => letters.includes(letter))?.[0] ?? 556),
    0,
  ) *
  (fontSize / 1000);

const leftSide = 60;

/** Node-RED makes a node as wide as its label needs, in steps of 20, and positions it by its centre. */
const comment = (id, y, name, info = '') => ({
  id,
  type: 'comment',
  z: welcomeId,
  name,
  info,
  x: leftSide + 10 * Math.ceil((widthOf(name) + 50) / 20),
  y,
  wires: [],
});

const phones = '[Open the phones](advisor-texting/simulator/)';

const welcome = (titles) => [
  {
    id: welcomeId,
    type: 'tab',
    label: 'Welcome',
    info: `Start here. The examples run on the built-in simulator: they text no real person as long as you leave their environments as they are.

**${phones}**: they show what each number receives, and have buttons to accept or decline.

Then choose a tab:

${titles.map((title) => `- ${title}`).join('\n')}`,
  },
  comment(
    'welcome000000001',
    60,
    'Welcome. The examples run on the built-in simulator: they text no real person.',
  ),
  comment(
    'welcome000000002',
    120,
    '1. Open the phones: the link is in the information sidebar, on the right.',
    `${phones}\n\nYou can also open them from any texting node: double-click it and press "Open the phones".`,
  ),
  comment(
    'welcome000000003',
    180,
    '2. Choose a tab above: each is an example. Press the button on its first node.',
  ),
  comment(
    'welcome000000004',
    240,
    '3. Watch the phones, the debug sidebar and the statuses under the nodes.',
  ),
  comment(
    'welcome000000005',
    300,
    '4. Build your own: drag "send text (SMS)" from the palette, category "advisor texting".',
  ),
];

const settings = `module.exports = {
  flowFile: 'flows.json',
  flowFilePretty: true,
  uiHost: '127.0.0.1',
  telemetry: { enabled: false, updateNotification: false },
  editorTheme: { tours: false, projects: { enabled: false } },
  logging: { console: { level: 'info', metrics: false, audit: false } },
};
`;

/** Node-RED's tips would cover the text of the welcome tab. */
const withoutTips = `${JSON.stringify({ _: { editor: { view: { 'view-show-tips': false } } } })}\n`;

const examplesOf = (root) =>
  readdirSync(join(root, 'examples'))
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => JSON.parse(readFileSync(join(root, 'examples', name), 'utf8')));

/** Makes one environment, with a clear name, of those that differ only in id and name. */
const withOneSimulator = (examples) => {
  const shared = { id: 'welcome000000009', name: 'Simulator' };
  const settingsOf = (environment) => JSON.stringify({ ...environment, ...shared });
  const environments = examples.flat().filter(({ type }) => type === 'advisor-environment');
  const usual = settingsOf(environments[0]);
  // An environment has its own failures and waits: an example that shows them keeps its own environment.
  const showsItsOwn = ({ type }) => type === 'advisor-do-not-text' || type === 'advisor-activity';
  const own = examples.filter((nodes) => nodes.some(showsItsOwn)).flat();
  const alike = environments.filter((each) => settingsOf(each) === usual && !own.includes(each));
  const ids = alike.map(({ id }) => `"${id}"`).join('|');
  const others = examples.flat().filter((node) => !alike.includes(node));
  const inPlace = JSON.stringify(others).replaceAll(new RegExp(ids, 'g'), `"${shared.id}"`);
  return [JSON.parse(usual), ...JSON.parse(inPlace)];
};

/** The welcome tab, and each example on its own tab. */
export const workspaceFlows = (root) => {
  const nodes = withOneSimulator(examplesOf(root));
  const titles = nodes.filter(({ type }) => type === 'tab').map(({ label }) => label);
  return [...welcome(titles), ...nodes];
};

const writeOnce = (path, text) => {
  if (existsSync(path)) return false;
  writeFileSync(path, text);
  return true;
};

/** Makes a user directory with this package and the examples on tabs; existing files are kept. */
export const layWorkspace = (root, data) => {
  const scope = join(data, 'node_modules', '@advisor-texting');
  mkdirSync(scope, { recursive: true });
  const link = join(scope, 'node-red');
  rmSync(link, { recursive: true, force: true });
  symlinkSync(root, link, 'junction');
  writeOnce(join(data, 'package.json'), '{ "name": "workspace", "private": true }\n');
  writeOnce(join(data, '.config.users.json'), withoutTips);
  writeFileSync(join(data, 'settings.js'), settings);
  return writeOnce(join(data, 'flows.json'), `${JSON.stringify(workspaceFlows(root), null, 2)}\n`);
};
