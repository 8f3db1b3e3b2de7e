import type { Request } from 'express';
import { splitScopes } from '../../lib/auth/grants';
import { nodeError } from '../../lib/runtime/errors';
import type { Red } from '../../lib/runtime/red';
import type { Values } from './config';
import type { RunningEnvironment } from './environment';
import { findRunning } from './running';
import { spec } from './spec';
import { hiderOf, resolve, resolveValues, variablesIn, type Lookup } from './variables';

/** What the editor shows in place of a secret it was never given. */
const unseen = '__PWRD__';
const secrets = spec.fields.flatMap((field) =>
  field.kind === 'credential' && field.secret ? field.name : [],
);

const addresses = ['tokenUrl', 'baseUrl'] as const;

const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const originOf = (address: unknown): string | undefined =>
  typeof address === 'string' && URL.canParse(address) ? new URL(address).origin : undefined;

/** A form is flat; a node as the editor keeps it has its credentials apart. */
const flat = ({ credentials, ...form }: Values): Values =>
  isValues(credentials) ? { ...credentials, ...form } : form;

const credentialsOf = (RED: Red, id: string): Values | undefined =>
  RED.nodes.getCredentials(id) as Values | undefined;

/** The texts that a setting consists of: scopes are a list, or one text with blanks between them. */
const textsOf = (name: string, value: unknown): readonly unknown[] => {
  if (Array.isArray(value)) return value as unknown[];
  return name === 'scopes' && typeof value === 'string' ? splitScopes(value) : [value];
};

const literalsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(literalsIn) : [];
};

/** Parts of an answer that are told as they are. */
const verbatim = new Set([
  // Keys of ours, which the editor sends back.
  'advisor',
  'state',
  'check',
  // Where a window or an advisor is to go: it is made without variables.
  'url',
  // Records of the service.
  'data',
]);

/**
 * An environment as one request may use it: what is deployed, and the form it came with. Whoever asks may not be the
 * one who deploys, so a variable is resolved only where the deployed environment refers to it in the same setting, or
 * for someone who could deploy a flow that reads it.
 */
export class FormReader {
  private readonly runningEnvironment: RunningEnvironment | undefined;
  /** What is deployed, also when it is disabled and so does not run, as it is written: with `${…}` in it. */
  readonly written: Values;
  /** Credentials as they are written. Of no other kind of node, whatever id the request names. */
  private readonly stored: Values;
  private readonly lookup: Lookup;
  private used: Values;
  private form: Values = {};

  constructor(
    RED: Red,
    id: string,
    private readonly mayDeploy: boolean,
  ) {
    this.runningEnvironment = findRunning(RED, id);
    const nodes: Values[] = [];
    RED.nodes.eachNode((node) => {
      if (node.id === id && node.type === spec.type) nodes.push({ ...node });
    });
    const [node] = nodes;
    this.stored = (node && credentialsOf(RED, id)) ?? {};
    this.written = { ...node, ...this.stored };
    this.used = this.written;
    this.lookup = this.runningEnvironment?.lookup ?? ((variable) => process.env[variable]);
  }

  /** The environment that is deployed. Throws `not_configured` when there is none. */
  deployed(): RunningEnvironment {
    if (this.runningEnvironment) return this.runningEnvironment;
    throw nodeError('not_configured', 'environment_undeployed');
  }

  get running(): RunningEnvironment | undefined {
    return this.runningEnvironment;
  }

  /** Where the deployed environment sends what it keeps. */
  deployedOrigin(name: (typeof addresses)[number]): string | undefined {
    const values = this.runningEnvironment?.values ?? resolveValues(this.written, this.lookup);
    return originOf(values[name]);
  }

  /** The values as a form would have them, to look at: wherever the form points, stored secrets are among them. */
  look(given: Values): Values {
    this.form = flat(given);
    const hidden = secrets.filter((name) => this.form[name] === unseen);
    const kept = Object.fromEntries(hidden.map((name) => [name, this.stored[name] ?? '']));
    this.used = { ...this.written, ...this.form, ...kept };
    const filled: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(this.form)) filled[name] = this.resolved(name, value);
    const written = 'proxy' in this.form ? { proxyAsWritten: this.form['proxy'] } : {};
    return { ...this.runningEnvironment?.values, ...filled, ...written, ...resolveValues(kept, this.lookup) };
  }

  /**
   * The values to send requests with: those in the form where the editor sends one (the environment may not be deployed
   * yet, or hold changes), else those deployed. Throws `not_configured` when there are neither, and when what was saved
   * for one place would go to another on the word of a form.
   */
  use(given: unknown): Values {
    if (!isValues(given)) return this.deployed().values;
    const values = this.look(given);
    const withheld = this.withheld();
    if (withheld.length > 0) throw nodeError('not_configured', 'variables_withheld', { variables: withheld });
    if (this.isMoved(values) && this.isOurs(values)) throw nodeError('not_configured', 'secrets_again');
    return values;
  }

  /** An answer without the values of variables: not even who may read them has to get them from here. */
  hide(answer: unknown): unknown {
    const literals = literalsIn(this.form);
    // What the form itself says is no news. Hiding it where it equals a variable would be.
    const hider = hiderOf(this.resolvedHere(), this.lookup, (spelling) =>
      literals.some((literal) => literal.includes(spelling)),
    );
    const hideIn = (value: unknown): unknown => {
      if (typeof value === 'string') return hider(value);
      if (Array.isArray(value)) return value.map(hideIn);
      if (!isValues(value)) return value;
      const entries = Object.entries(value);
      return Object.fromEntries(
        entries.map(([name, part]) => [name, verbatim.has(name) ? part : hideIn(part)]),
      );
    };
    return hideIn(answer);
  }

  /** Whether a setting, as this request uses it, comes from a variable. */
  hasVariable(setting: string): boolean {
    return variablesIn(this.used[setting]).length > 0;
  }

  private mayResolve(name: string, text: unknown): boolean {
    return this.mayDeploy || textsOf(name, this.written[name]).includes(text);
  }

  private resolved(name: string, value: unknown): unknown {
    if (variablesIn(value).length === 0) return value;
    const texts = textsOf(name, value).map((text) =>
      this.mayResolve(name, text) ? resolve(text, this.lookup) : text,
    );
    return Array.isArray(value) ? texts : texts.length === 1 ? texts[0] : texts.join(' ');
  }

  /** Variables of the form that stay as they are written. */
  private withheld(): string[] {
    const texts = Object.entries(this.form).flatMap(([name, value]) =>
      textsOf(name, value).filter((text) => !this.mayResolve(name, text)),
    );
    return [...new Set(variablesIn(texts))];
  }

  private resolvedHere(): Values {
    const entries = Object.entries(this.used);
    return Object.fromEntries(
      entries.map(([name, value]) => [
        name,
        textsOf(name, value).filter((text) => this.mayResolve(name, text)),
      ]),
    );
  }

  /** Whether the form points somewhere else than what is deployed. */
  private isMoved(values: Values): boolean {
    return addresses.some((name) => {
      const place = this.deployedOrigin(name);
      // Who may deploy may point an environment that had no address yet to any.
      return place === undefined && this.mayDeploy ? false : place !== originOf(values[name]);
    });
  }

  /** Whoever sends the form may give away what it holds, and nothing that it only refers to. */
  private isOurs(values: Values): boolean {
    if (secrets.some((name) => Boolean(values[name]) && values[name] !== this.form[name])) return true;
    return !this.mayDeploy && variablesIn(Object.values(this.used)).length > 0;
  }
}

/** A request to a route, and what it may know of the environment that it names. */
export interface RouteRequest {
  readonly id: string;
  readonly form: FormReader;
  readonly request: Request;
  /** Whether whoever asks has the permission to change things: numbers are shown to nobody else. */
  readonly mayWrite: boolean;
}
