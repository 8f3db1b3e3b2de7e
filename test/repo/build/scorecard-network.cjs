'use strict';
const Module = require('node:module');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

/** Preloaded into node-red-dev: answers its requests. Versions are those of the lock file. */
const root = join(module.path, '..', '..', '..');
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const locked = (name) => packages[`node_modules/${name}`];

/** As the catalogue lists them: a few popular ones. */
const catalogue = {
  modules: [
    { id: 'node-red-dashboard', types: ['ui_button', 'ui_text'] },
    { id: 'node-red-node-email', types: ['e-mail', 'e-mail in'] },
    { id: 'node-red-contrib-twilio', types: ['twilio-api', 'twilio out'] },
  ],
};

const nodeRed = () => {
  const [latest, maintenance] = ['node-red', 'node-red-4'].map(locked);
  return {
    'dist-tags': { latest: latest.version, 'maintenance-4': maintenance.version },
    versions: { [latest.version]: { engines: latest.engines } },
  };
};

const answers = {
  'https://catalogue.nodered.org/catalogue.json': () => catalogue,
  'https://registry.npmjs.org/node-red': nodeRed,
};

/** Newer than in the lock file: undici 8 needs Node 22.19, and this must run on Node 20 too. */
const newer = { undici: '8.12.4' };

const stubs = {
  axios: {
    get: (url) =>
      answers[url]
        ? Promise.resolve({ data: answers[url]() })
        : Promise.reject(new Error(`No answer is prepared for ${url}.`)),
  },
  'npm-remote-ls': {
    config() {},
    ls: (_name, _version, _flat, done) => {
      const production = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
      done(production.map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`));
    },
  },
  'package-json': (name) => {
    const version = newer[name] ?? locked(name).version;
    return Promise.resolve({ 'dist-tags': { latest: version }, versions: { [version]: {} } });
  },
};

const load = Module._load;
Module._load = (request, ...rest) => stubs[request] ?? load(request, ...rest);
