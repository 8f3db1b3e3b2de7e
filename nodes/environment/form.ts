import { refuse } from '../../lib/runtime/messages';
import type { Red } from '../../lib/runtime/red';
import type { Values } from './config';
import { findRunning } from './running';
import { resolveValues } from './variables';

/** What the editor shows in place of a secret it was never given. */
const unseen = '__PWRD__';
const secrets = ['clientSecret', 'apiKey', 'refreshToken'];

const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const originOf = (address: unknown): string | undefined =>
  typeof address === 'string' && URL.canParse(address) ? new URL(address).origin : undefined;

/** A form is flat; a node as the editor keeps it has its credentials apart. */
const flat = ({ credentials, ...form }: Values): Values =>
  isValues(credentials) ? { ...credentials, ...form } : form;

/**
 * The values of an environment: those in the form where the editor sends them (it may not be deployed yet, or hold
 * changes), else those deployed. Throws `not_configured` when there are neither.
 */
export const valuesOf = (RED: Red, id: string, given: unknown): Values => {
  const running = findRunning(RED, id);
  if (!isValues(given)) {
    if (running) return running.values;
    throw refuse('not_configured', 'environment_undeployed');
  }
  const form = flat(given);
  const lookup = running?.lookup ?? ((variable: string) => process.env[variable]);
  const stored = resolveValues((RED.nodes.getCredentials(id) as Values | undefined) ?? {}, lookup);
  const shown = resolveValues({ ...running?.values, ...form }, lookup);
  const kept = secrets.filter((name) => form[name] === unseen);
  const filled = { ...shown, ...Object.fromEntries(kept.map((name) => [name, stored[name] ?? ''])) };
  // A secret that was saved for one place must not be sent to another on the word of a form.
  const isMoved = ['tokenUrl', 'baseUrl'].some((name) => {
    const place = originOf(running?.values[name]);
    return place !== undefined && place !== originOf((filled as Values)[name]);
  });
  if (kept.length > 0 && isMoved) throw refuse('not_configured', 'secrets_again');
  return filled;
};
