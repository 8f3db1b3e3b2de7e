import { operationScopes } from '../../lib/contract-values';
import type { NodeSpec, When } from '../../lib/runtime/spec';

/** These settings are not needed for the simulator. */
const real: When = { service: ['sandbox', 'production'] };
const byCode: When = { ...real, grant: ['authorization_code'] };

export const scopes = [...operationScopes, 'offline_access'] as const;

/**
 * The scopes of a new environment, by how it signs in: the contract shows client credentials for texting alone
 * (*Authentication*, 2).
 */
export const usualScopes: Readonly<Record<'authorization_code' | 'client_credentials', readonly string[]>> = {
  authorization_code: scopes,
  client_credentials: operationScopes.filter((scope) => scope.startsWith('text.')),
};

export const spec: NodeSpec = {
  type: 'advisor-environment',
  category: 'config',
  color: '#a9d8cf',
  icon: 'advisor-environment.svg',
  inputs: 0,
  outputs: [],
  uses: [],
  fields: [
    {
      kind: 'choice',
      name: 'service',
      options: ['simulator', 'sandbox', 'production'],
      default: 'simulator',
      variable: true,
    },
    { kind: 'text', name: 'name', default: '' },
    { kind: 'text', name: 'baseUrl', default: '', required: true, format: 'url', when: real },
    {
      kind: 'choice',
      name: 'grant',
      options: ['authorization_code', 'client_credentials'],
      default: 'authorization_code',
      when: real,
    },
    { kind: 'text', name: 'authUrl', default: '', required: true, format: 'url', when: byCode },
    { kind: 'text', name: 'tokenUrl', default: '', required: true, format: 'url', when: real },
    { kind: 'text', name: 'redirectUri', default: '', required: true, format: 'url', when: byCode },
    { kind: 'credential', name: 'clientId', secret: false, required: true, when: real },
    { kind: 'credential', name: 'clientSecret', secret: true, required: true, when: real },
    { kind: 'credential', name: 'apiKey', secret: true, required: true, when: real },
    { kind: 'ticks', name: 'scopes', options: scopes, default: scopes, when: real },
    { kind: 'text', name: 'country', default: '', format: 'country', section: 'recipients' },
    { kind: 'text', name: 'timeZone', default: '', format: 'time_zone', section: 'recipients' },
    { kind: 'text', name: 'textFrom', default: '', format: 'time', section: 'recipients' },
    {
      kind: 'text',
      name: 'textUntil',
      default: '',
      format: 'time',
      endOf: 'textFrom',
      section: 'recipients',
    },
    {
      kind: 'choice',
      name: 'outsideHours',
      options: ['hold', 'fail'],
      default: 'hold',
      section: 'recipients',
    },
    { kind: 'text', name: 'corePrefix', default: 'core', format: 'prefix', advanced: true },
    { kind: 'text', name: 'textPrefix', default: 'text', format: 'prefix', advanced: true },
    { kind: 'number', name: 'maxConcurrent', default: 16, min: 1, whole: true, advanced: true },
    { kind: 'number', name: 'requestsPerSecond', default: 0, min: 0, advanced: true },
    { kind: 'number', name: 'timeout', default: 30, min: 0.1, advanced: true },
    { kind: 'number', name: 'retries', default: 4, min: 0, whole: true, advanced: true },
    {
      kind: 'choice',
      name: 'repeatSends',
      options: ['never', 'contract', 'always'],
      default: 'contract',
      advanced: true,
    },
    { kind: 'flag', name: 'journal', default: true, advanced: true },
    {
      kind: 'number',
      name: 'resumeWithin',
      default: 3600,
      min: 0,
      when: { journal: [true] },
      advanced: true,
    },
    { kind: 'choice', name: 'deliveryDateUnit', options: ['ms', 's'], default: 'ms', advanced: true },
    { kind: 'json', name: 'names', default: {}, advanced: true },
    { kind: 'text', name: 'consentPattern', default: '', format: 'pattern', advanced: true },
    { kind: 'text', name: 'proxy', default: '', format: 'proxy', when: real, advanced: true },
    { kind: 'credential', name: 'refreshToken', secret: true, when: byCode, advanced: true },
    {
      kind: 'choice',
      name: 'store',
      options: ['embedded', 'postgres'],
      default: 'embedded',
      when: real,
      advanced: true,
    },
    {
      kind: 'credential',
      name: 'storeUrl',
      secret: true,
      required: true,
      when: { ...real, store: ['postgres'] },
      advanced: true,
    },
  ],
};
