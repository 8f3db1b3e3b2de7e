#!/usr/bin/env node
import { UsageError } from '../lib/usage-error';
import { help, readCommandLine } from './cli-options';
import { startSimulator, type Settings, type Simulator, type SimulatorOptions } from './';
import { environmentFor, profileOf } from './profiles';

const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

const printError = (text: string): void => {
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
};

const whyNot = (error: unknown, { port, host }: SimulatorOptions): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE')
    return `Port ${String(port)} is in use. Choose another with --port, or 0 for any free one.`;
  if (code === 'EACCES')
    return `You are not allowed to use port ${String(port)}. Choose one above 1023 with --port.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `This machine does not have the address ${host ?? ''}. Choose another with --host.`;
  return `The simulator cannot start: ${error instanceof Error ? error.message : String(error)}`;
};

/** What a client has to know about a service whose habits are not the usual ones. */
const foreignness = ({ habits }: Settings): string => {
  const profile = profileOf(habits);
  if (profile === 'usual') return '';
  const { corePrefix, textPrefix, names, deliveryDateUnit, country } = environmentFor(habits);
  return `
  profile        ${profile ?? 'a mixture of habits'}. Set in the environment:
                 path prefixes ${corePrefix}, ${textPrefix}; delivery date in ${deliveryDateUnit}${country === undefined ? '' : `; country ${country}`}
                 query names ${JSON.stringify(names)}
`;
};

const introduce = ({ url, baseUrl, authUrl, tokenUrl, credentials, settings }: Simulator): void => {
  print(`The simulator is running. Nobody is really texted.

  phones         ${url}/
  base address   ${baseUrl}
  authorization  ${authUrl}
  token          ${tokenUrl}
  control API    ${url}/control/state

  client id      ${credentials.clientId}
  client secret  ${credentials.clientSecret}
  API key        ${credentials.apiKey}
  redirect URIs  ${settings.redirectUris.join('\n                 ')}
${foreignness(settings)}
Press Ctrl-C to stop it.`);
};

const run = async (options: SimulatorOptions): Promise<void> => {
  let simulator: Simulator;
  try {
    simulator = await startSimulator({ ...options, warn: (message) => process.stderr.write(`${message}\n`) });
  } catch (error) {
    printError(whyNot(error, options));
    return;
  }
  introduce(simulator);
  const end = (): void => {
    void simulator.close();
  };
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
};

try {
  const options = readCommandLine(process.argv.slice(2));
  if (options === 'help') print(help);
  else void run(options);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  printError(`${error.message}\nSee: advisor-texting --help`);
}
