import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname, join, resolve } from 'node:path';
import { answer } from './http';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** Scripts and styles from here only: names and texts on the page come from anybody. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/** The built page: beside this file in the package, in dist/ when run from the sources. */
const builtPage = (): string | undefined =>
  [resolve(__dirname, '..', 'dist', 'simulator', 'page'), join(__dirname, 'page')].find((directory) =>
    existsSync(join(directory, 'page.js')),
  );

const missing = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Simulator</title>
<h1>The phones page is not built</h1><p>Run <code>npm run build</code> and load this page again.
The simulator itself is running; its control API is at <code>control/state</code>.</p></html>
`;

const fileName = /^[\w-]+(\.[\w-]+)*\.(html|css|js|svg|png)$/;

/** Serves the phones page and its files; `path` is relative to where it is mounted. */
export const servePage = async (
  response: ServerResponse,
  path: string,
  given: string | undefined,
): Promise<void> => {
  const directory = given ?? builtPage();
  const name = path === '' ? 'index.html' : path;
  if (directory === undefined) {
    answer(response, path === '' ? 200 : 404, types['.html'] ?? '', missing);
    return;
  }
  const content = fileName.test(name)
    ? await readFile(join(directory, name)).catch(() => undefined)
    : undefined;
  if (content === undefined) {
    answer(response, 404, 'text/plain; charset=utf-8', 'There is no such page.\n');
    return;
  }
  response.writeHead(200, {
    'content-type': types[extname(name)] ?? 'application/octet-stream',
    'content-length': content.length,
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
  response.end(content);
};
