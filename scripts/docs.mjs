import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { register } from 'tsx/cjs/api';
import { at } from './build/folders.mjs';
import { errorsPage } from './docs/errors.mjs';
import { modulesPicture } from './docs/modules.mjs';
import { nodePages } from './docs/nodes.mjs';
import { openApi } from './docs/openapi.mjs';
import { apiPage } from './docs/page.mjs';
import { securityPage } from './docs/security.mjs';

/** Docs are made from the sources themselves, because a build of them may be old. */
const load = () => {
  const unregister = register();
  const require = createRequire(import.meta.url);
  try {
    return {
      ...require(at('lib', 'service', 'endpoints.ts')),
      ...require(at('lib', 'contract-values.ts')),
      schemas: require(at('lib', 'service', 'schemas.ts')),
      ...require(at('lib', 'service', 'errors.ts')),
      ...require(at('test', 'proof', 'threats.ts')),
      ...require(at('test', 'proof', 'defences.ts')),
      specs: readdirSync(at('nodes')).map((name) => require(at('nodes', name, 'spec.ts')).spec),
      z: require('zod').z,
      version: require(at('package.json')).version,
    };
  } finally {
    unregister();
  }
};

const source = load();
const document = openApi(source);
const pages = {
  'docs/openapi.json': `${JSON.stringify(document, null, 2)}\n`,
  'docs/api.md': apiPage(source, document),
  ...nodePages(source),
  'docs/errors.md': errorsPage(source),
  'docs/modules.svg': modulesPicture(),
  'SECURITY.md': securityPage(source),
};

const differing = Object.entries(pages).filter(
  ([path, text]) => !existsSync(at(path)) || readFileSync(at(path), 'utf8') !== text,
);

if (process.argv.includes('--check')) {
  for (const [path] of differing) console.error(`${path} is not what the sources say: run npm run docs.`);
  process.exitCode = differing.length === 0 ? 0 : 1;
} else {
  for (const [path, text] of differing) writeFileSync(at(path), text);
  console.log(
    differing.length === 0
      ? 'The docs were up to date.'
      : `Wrote ${differing.map(([path]) => path).join(', ')}.`,
  );
}
