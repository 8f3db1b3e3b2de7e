import { refuse } from '../../lib/runtime/messages';
import type { Red } from '../../lib/runtime/red';
import type { Values } from './config';
import { findRunning } from './running';
import { resolveValues, type Lookup } from './variables';

/** What the editor shows in place of a secret it was never given. */
const unseen = '__PWRD__';
const secrets = ['clientSecret', 'apiKey', 'refreshToken'];

const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const originOf = (address: unknown): string | undefined =>
  typeof address === 'string' && URL.canParse(address) ? new URL(address).origin : undefined;

/** A form is flat; a node as the editor keeps it has its credentials apart. */
const flat = ({ credentials, ...form }: Values): Values =>
  isValues(credentials) ? { ...credentials, ...form } : form;

const lookupOf = (RED: Red, id: string): Lookup =>
  findRunning(RED, id)?.lookup ?? ((variable) => process.env[variable]);

/** Where the deployed environment, also one that is disabled and so does not run, sends what it keeps. */
export const deployedOrigin = (RED: Red, id: string, name: 'baseUrl' | 'tokenUrl'): string | undefined => {
  const running = findRunning(RED, id);
  if (running) return originOf(running.values[name]);
  const found: Values[] = [];
  RED.nodes.eachNode((node) => {
    if (node.id === id) found.push({ ...node });
  });
  return originOf(resolveValues(found[0] ?? {}, lookupOf(RED, id))[name]);
};

/** The values as a form would have them, to look at: wherever the form points, stored secrets are among them. */
export const formValues = (RED: Red, id: string, given: Values): Values => {
  const form = flat(given);
  const lookup = lookupOf(RED, id);
  const stored = resolveValues((RED.nodes.getCredentials(id) as Values | undefined) ?? {}, lookup);
  const shown = resolveValues({ ...findRunning(RED, id)?.values, ...form }, lookup);
  const hidden = secrets.filter((name) => form[name] === unseen);
  return { ...shown, ...Object.fromEntries(hidden.map((name) => [name, stored[name] ?? ''])) };
};

/**
 * The values of an environment, to send requests with: those in the form where the editor sends them (it may not be
 * deployed yet, or hold changes), else those deployed. Throws `not_configured` when there are neither, and when a secret
 * that was saved for one place would go to another on the word of a form.
 */
export const valuesOf = (RED: Red, id: string, given: unknown): Values => {
  if (!isValues(given)) {
    const running = findRunning(RED, id);
    if (running) return running.values;
    throw refuse('not_configured', 'environment_undeployed');
  }
  const form = flat(given);
  const values = formValues(RED, id, form);
  // Whoever sends the form may give away what it holds, and nothing that it only refers to.
  const areOurs = secrets.some((name) => Boolean(values[name]) && values[name] !== form[name]);
  const isMoved = (['tokenUrl', 'baseUrl'] as const).some((name) => {
    const place = deployedOrigin(RED, id, name);
    return place !== undefined && place !== originOf(values[name]);
  });
  if (areOurs && isMoved) throw refuse('not_configured', 'secrets_again');
  return values;
};
