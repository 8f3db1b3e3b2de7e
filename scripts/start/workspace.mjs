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

/** In pixels, as the editor's font has them; close enough to line up the left sides. */
const widthOf = (text) =>
  [...text].reduce(
    (sum, letter) => sum + (/[ijl.,:;'"()I ]/.test(letter) ? 3.7 : /[mwMW]/.test(letter) ? 10.5 : 7.1),
    0,
  );

/** Node-RED places a node by its middle. */
const comment = (id, y, name, info = '') => ({
  id,
  type: 'comment',
  z: welcomeId,
  name,
  info,
  x: 60 + Math.round((46 + widthOf(name)) / 2),
  y,
  wires: [],
});

const phones = '[Open the phones](advisor-texting/simulator/)';

const welcome = (titles) => [
  {
    id: welcomeId,
    type: 'tab',
    label: 'Welcome',
    info: `Start here. Nothing in this workspace texts a real person: it all runs on the built-in simulator.

**${phones}**: they show what arrives at each number, and have buttons to accept or decline.

Then choose a tab:

${titles.map((title) => `- ${title}`).join('\n')}`,
  },
  comment(
    'welcome000000001',
    60,
    'Welcome. Nothing here texts a real person: it all runs on the built-in simulator.',
  ),
  comment(
    'welcome000000002',
    120,
    '1. Open the phones: the link is in the information sidebar, on the right.',
    `${phones}\n\nYou also find them in every environment: double-click an advisor node, open its environment, press "Open the phones".`,
  ),
  comment(
    'welcome000000003',
    180,
    '2. Choose a tab above: each is an example. Press the button of its first node.',
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

/** Node-RED's tips would cover the words of the welcome tab. */
const withoutTips = `${JSON.stringify({ _: { editor: { view: { 'view-show-tips': false } } } })}\n`;

const examplesOf = (root) =>
  readdirSync(join(root, 'examples'))
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => ({
      title: name.replace(/\.json$/, ''),
      nodes: JSON.parse(readFileSync(join(root, 'examples', name), 'utf8')),
    }));

const writeOnce = (path, text) => {
  if (existsSync(path)) return false;
  writeFileSync(path, text);
  return true;
};

/** A user directory with this package in it and the examples on tabs; what is there already is kept. */
export const layWorkspace = (root, data) => {
  const scope = join(data, 'node_modules', '@advisor-texting');
  mkdirSync(scope, { recursive: true });
  const link = join(scope, 'node-red');
  rmSync(link, { recursive: true, force: true });
  symlinkSync(root, link, 'junction');
  writeOnce(join(data, 'package.json'), '{ "name": "workspace", "private": true }\n');
  writeOnce(join(data, '.config.users.json'), withoutTips);
  writeFileSync(join(data, 'settings.js'), settings);
  const examples = examplesOf(root);
  const flows = [...welcome(examples.map(({ title }) => title)), ...examples.flatMap(({ nodes }) => nodes)];
  return writeOnce(join(data, 'flows.json'), `${JSON.stringify(flows, null, 2)}\n`);
};
