import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname, join, resolve } from 'node:path';
import { answer, escapeHtml, plainText } from './http';
import { sayFrom, type Catalogue, type KeyOf } from './wording';
import type { SimulatorWords } from './words';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** Scripts and styles only from this server: names and texts on the page may come from anybody. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/** The built page: beside this file in the package, in dist/ when run from the sources. */
const builtPage = (): string | undefined =>
  [resolve(__dirname, '..', 'dist', 'simulator', 'page'), join(__dirname, 'page')].find((directory) =>
    existsSync(join(directory, 'page.js')),
  );

/** The page in the reader's language: its own words in place, and those of its script beside them. */
const pageInWords = (html: string, { language, catalogue: { page } }: SimulatorWords): string => {
  const say = sayFrom(page);
  const valueOf = (name: string): string => {
    if (name === 'language') return language;
    return name === 'words' ? JSON.stringify(page) : say(name as KeyOf<Catalogue['page']>);
  };
  return html.replaceAll(/\{\{([\w.-]+)\}\}/g, (_, name: string) => escapeHtml(valueOf(name)));
};

const notBuilt = ({ language, say }: SimulatorWords): string =>
  `<!doctype html><html lang="${language}"><meta charset="utf-8"><title>${escapeHtml(say('page.title'))}</title>
<p>${escapeHtml(say('control.notBuilt'))}</p></html>
`;

const fileName = /^[\w-]+(\.[\w-]+)*\.(html|css|js|svg|png)$/;

/** Serves the phones page and its files; `path` is relative to its mount. */
export const servePage = async (
  response: ServerResponse,
  path: string,
  given: string | undefined,
  words: SimulatorWords,
): Promise<void> => {
  const directory = given ?? builtPage();
  const name = path === '' ? 'index.html' : path;
  if (directory === undefined) {
    answer(response, path === '' ? 200 : 404, types['.html'] ?? '', notBuilt(words));
    return;
  }
  const file = fileName.test(name) ? await readFile(join(directory, name)).catch(() => undefined) : undefined;
  if (file === undefined) {
    answer(response, 404, plainText, `${words.say('control.noSuchPage')}\n`);
    return;
  }
  const isPage = name === 'index.html';
  const content = isPage ? Buffer.from(pageInWords(file.toString('utf8'), words)) : file;
  response.writeHead(200, {
    'content-type': types[extname(name)] ?? 'application/octet-stream',
    'content-length': content.length,
    ...(isPage ? { 'content-language': words.language, vary: 'accept-language' } : {}),
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
  response.end(content);
};
