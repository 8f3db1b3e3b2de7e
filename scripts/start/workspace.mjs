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

const comment = (id, y, name, info) => ({
  id,
  type: 'comment',
  z: welcomeId,
  name,
  info,
  x: 380,
  y,
  wires: [],
});

const welcome = (titles) => [
  {
    id: welcomeId,
    type: 'tab',
    label: 'Welcome',
    info: 'Start here. Each of the other tabs is an example that runs on the built-in simulator: nobody is really texted.',
  },
  comment(
    'welcome000000001',
    80,
    '👋 Welcome. Nothing here texts a real person: it all runs on the simulator.',
    '',
  ),
  comment(
    'welcome000000002',
    140,
    '1. Open the phones: double-click any advisor node, open its environment, press "Open the phones".',
    'The phones page shows what arrives at each number, and has buttons to accept or decline.',
  ),
  comment('welcome000000003', 200, '2. Choose a tab above and press the button of its first node.', ''),
  comment('welcome000000004', 260, '3. Watch the debug sidebar, the node statuses and the phones.', ''),
  comment(
    'welcome000000005',
    320,
    '4. Then build your own: drag "send text (SMS)" from the palette, under "advisor texting".',
    titles.map((title) => `- ${title}`).join('\n'),
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
  writeFileSync(join(data, 'settings.js'), settings);
  const examples = examplesOf(root);
  const flows = [...welcome(examples.map(({ title }) => title)), ...examples.flatMap(({ nodes }) => nodes)];
  return writeOnce(join(data, 'flows.json'), `${JSON.stringify(flows, null, 2)}\n`);
};
