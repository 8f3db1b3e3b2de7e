import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ensureProgram } from './packages.mjs';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The folders, besides those in PATH, into which installers put Chromium. */
const usualPlaces = (env) => {
  const windows = [env.ProgramFiles, env['ProgramFiles(x86)'], env.LOCALAPPDATA]
    .filter((folder) => folder !== undefined)
    .flatMap((folder) => [
      join(folder, 'Google', 'Chrome', 'Application', 'chrome.exe'),
      join(folder, 'Chromium', 'Application', 'chrome.exe'),
      join(folder, 'Microsoft', 'Edge', 'Application', 'msedge.exe'),
    ]);
  return [
    ...names.map((name) => `/usr/bin/${name}`),
    '/snap/bin/chromium',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ...windows,
  ];
};

/** The path of a Chromium on this machine, or undefined. */
export const findChromium = (env = process.env, exists = existsSync) => {
  if (env.CHROMIUM_PATH) {
    if (exists(env.CHROMIUM_PATH)) return env.CHROMIUM_PATH;
    throw new Error(
      `CHROMIUM_PATH is ${env.CHROMIUM_PATH}, but there is no such file. Correct it or unset it.`,
    );
  }
  const onPath = (env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .flatMap((folder) => names.map((name) => join(folder, name)));
  return [...usualPlaces(env), ...onPath].find((path) => exists(path));
};

const howToGetIt = [
  'The browser tests need Chromium or Chrome, and none was found on this machine.',
  '  Debian:   sudo apt-get update && sudo apt-get install chromium',
  '  Ubuntu:   sudo snap install chromium',
  '  Fedora:   sudo dnf install chromium',
  '  macOS:    brew install --cask chromium',
  '  Windows:  winget install Google.Chrome',
  'If it is somewhere unusual, set CHROMIUM_PATH to its full path.',
].join('\n');

/** The path of a Chromium. Installs one where that needs no confirmation, else says what is missing. */
export const ensureChromium = () =>
  ensureProgram({
    name: 'Chromium',
    purpose: 'the browser tests',
    find: () => findChromium(),
    packages: ['chromium', 'fonts-liberation'],
    howToGetIt,
  });
