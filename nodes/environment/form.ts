import type { Request } from 'express';
import { splitScopes } from '../../lib/auth/token-endpoint';
import { isRecord } from '../../lib/kinds';
import { serviceError } from '../../lib/service/errors';
import type { Red } from '../../lib/runtime/red';
import type { EnvironmentValues } from './config';
import type { RunningEnvironment } from './environment';
import { Refused } from './reply';
import { findRunning } from './running';
import { savedNodes } from './saved-nodes';
import { spec } from './spec';
import { hiderOf, resolve, resolveValues, variablesIn, type VariableValue } from './variables';

/** The editor shows this in place of a secret, which it never gets. */
const unseen = '__PWRD__';
const secrets = spec.fields.flatMap((field) =>
  field.kind === 'credential' && field.secret ? field.name : [],
);

/** Where secrets are sent. */
const addresses = ['tokenUrl', 'baseUrl'] as const;
/** Where this machine, or a browser that follows our page, is sent. */
const destinations = ['baseUrl', 'authUrl', 'tokenUrl', 'redirectUri', 'proxy'];

const withoutDestinations = (form: EnvironmentValues): EnvironmentValues =>
  Object.fromEntries(Object.entries(form).filter(([name]) => !destinations.includes(name)));

export const originOf = (address: unknown): string | undefined =>
  typeof address === 'string' && URL.canParse(address) ? new URL(address).origin : undefined;

/** Flattens a node: a form is flat, but a node in the editor has its credentials apart. */
const flat = ({ credentials, ...form }: EnvironmentValues): EnvironmentValues =>
  isRecord(credentials) ? { ...credentials, ...form } : form;

const credentialsOf = (RED: Red, id: string): EnvironmentValues | undefined =>
  RED.nodes.getCredentials(id) as EnvironmentValues | undefined;

/** The strings that a setting consists of: scopes are a list, or one string with spaces between them; names are in a record. */
const textsIn = (name: string, value: unknown): readonly unknown[] => {
  if (typeof value === 'object' && value !== null) return Object.values(value);
  return name === 'scopes' && typeof value === 'string' ? splitScopes(value) : [value];
};

const literalsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(literalsIn) : [];
};

/** Parts of an answer that never contain a variable and are sent unchanged. */
const verbatim = new Set([
  // Our own keys, which the editor sends back.
  'advisor',
  'state',
  'check',
  // The address of a window or a link: it is made without variables.
  'url',
  // Records of the service.
  'data',
]);

/**
 * The environment that a request is about: the deployed one, and the form in the request. The user may not have the
 * right to deploy. So a variable is resolved only where the deployed environment has it in the same setting, or for a
 * user who could deploy a flow that reads it, and only such a user's form says where requests go.
 */
export class FormReader {
  /** The deployed environment; undefined when it does not run. */
  readonly running: RunningEnvironment | undefined;
  /** The deployed settings as they are written, with `${…}`; also those of a disabled environment, which does not run. */
  readonly written: EnvironmentValues;
  private readonly isDeployed: boolean;
  /** The credentials as they are written; empty when the id is that of another type of node. */
  private readonly stored: EnvironmentValues;
  private readonly variableValue: VariableValue;
  private used: EnvironmentValues;
  private form: EnvironmentValues = {};

  constructor(
    RED: Red,
    id: string,
    private readonly mayDeploy: boolean,
  ) {
    this.running = findRunning(RED, id);
    const node = savedNodes(RED).find((each) => each['id'] === id && each['type'] === spec.type);
    this.isDeployed = node !== undefined;
    this.stored = (node && credentialsOf(RED, id)) ?? {};
    this.written = { ...node, ...this.stored };
    this.used = this.written;
    this.variableValue = this.running?.variableValue ?? ((variable) => process.env[variable]);
  }

  /** The deployed environment. Throws when there is none, or when it does not run. */
  deployed(): RunningEnvironment {
    if (this.running) return this.running;
    if (this.isDeployed) throw new Refused(404, 'refused.notRunning');
    throw serviceError('not_configured', 'environment_undeployed');
  }

  /** The values that are deployed, also those of a disabled environment. */
  private get deployedValues(): EnvironmentValues {
    return this.running?.values ?? resolveValues(this.written, this.variableValue);
  }

  /** The origin to which the deployed environment sends its secrets. */
  deployedOrigin(name: (typeof addresses)[number]): string | undefined {
    return originOf(this.deployedValues[name]);
  }

  /** The values of the form, only for display: they include stored secrets wherever the form points to. */
  look(given: EnvironmentValues): EnvironmentValues {
    this.form = flat(given);
    const hidden = secrets.filter((name) => this.form[name] === unseen);
    const kept = Object.fromEntries(hidden.map((name) => [name, this.stored[name] ?? '']));
    this.used = { ...this.written, ...this.form, ...kept };
    const filled: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(this.form)) filled[name] = this.resolved(name, value);
    const written = 'proxy' in this.form ? { proxyAsWritten: this.form['proxy'] } : {};
    return {
      ...this.deployedValues,
      ...filled,
      ...written,
      ...resolveValues(kept, this.variableValue),
    };
  }

  /**
   * The values to send requests with: those of the form if the request has one (the environment may have changes that
   * are not deployed), else the deployed ones. They go to the places in the form for a user who may deploy, else to the
   * deployed ones. Throws `not_configured` when there are neither, and when a form would send stored secrets to another
   * place.
   */
  use(given: unknown): EnvironmentValues {
    if (!isRecord(given)) return this.deployed().values;
    if (!this.mayDeploy && !this.isDeployed) throw serviceError('not_configured', 'environment_undeployed');
    const values = this.look(this.mayDeploy ? given : withoutDestinations(flat(given)));
    const withheld = this.withheld();
    if (withheld.length > 0)
      throw serviceError('not_configured', 'variables_withheld', { variables: withheld });
    if (this.isMoved(values) && this.isOurs(values)) throw serviceError('not_configured', 'secrets_again');
    return values;
  }

  /** The answer without the values of variables: nobody gets them from here, not even users who may read them. */
  hide(answer: unknown): unknown {
    const literals = literalsIn(this.form);
    // A value in the form itself stays: hiding it would reveal that a variable has the same value.
    const hider = hiderOf(this.resolvedHere(), this.variableValue, (spelling) =>
      literals.some((literal) => literal.includes(spelling)),
    );
    const hideIn = (value: unknown): unknown => {
      if (typeof value === 'string') return hider(value);
      if (Array.isArray(value)) return value.map(hideIn);
      if (!isRecord(value)) return value;
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
    return this.mayDeploy || textsIn(name, this.written[name]).includes(text);
  }

  private resolved(name: string, value: unknown): unknown {
    if (variablesIn(value).length === 0) return value;
    const resolvedText = (text: unknown): unknown =>
      this.mayResolve(name, text) ? resolve(text, this.variableValue) : text;
    if (isRecord(value))
      return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, resolvedText(text)]));
    const texts = textsIn(name, value).map(resolvedText);
    return Array.isArray(value) ? texts : texts.length === 1 ? texts[0] : texts.join(' ');
  }

  /** Variables of the form that are not resolved for this user. */
  private withheld(): string[] {
    const texts = Object.entries(this.form).flatMap(([name, value]) =>
      textsIn(name, value).filter((text) => !this.mayResolve(name, text)),
    );
    return [...new Set(variablesIn(texts))];
  }

  private resolvedHere(): EnvironmentValues {
    const entries = Object.entries(this.used);
    return Object.fromEntries(
      entries.map(([name, value]) => [
        name,
        textsIn(name, value).filter((text) => this.mayResolve(name, text)),
      ]),
    );
  }

  /** Whether the form points to a different server than the deployed environment. */
  private isMoved(values: EnvironmentValues): boolean {
    return addresses.some((name) => {
      const place = this.deployedOrigin(name);
      return place !== undefined && place !== originOf(values[name]);
    });
  }

  /**
   * Whether the values contain secrets that the form only refers to: a user may give away only what the form itself
   * contains.
   */
  private isOurs(values: EnvironmentValues): boolean {
    return secrets.some((name) => Boolean(values[name]) && values[name] !== this.form[name]);
  }
}

/** A request to a route, with the environment that it is about. */
export interface RouteRequest {
  readonly id: string;
  readonly form: FormReader;
  readonly request: Request;
  /** Whether the user may change things: numbers are shown in full to nobody else. */
  readonly mayWrite: boolean;
}
