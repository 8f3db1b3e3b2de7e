import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../installation';

/** Everything in this repository that people read. */
export const pagesOfDocs = (): string[] => [
  ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'].map((name) => join(root, name)),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(root, 'docs', name)),
];
