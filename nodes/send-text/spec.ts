import { commonFields, type NodeSpec, phoneFields, type When } from '../../lib/runtime/spec';

const scheduled: When = { schedule: ['at'] };

export const spec: NodeSpec = {
  type: 'advisor-send-text',
  category: 'advisor texting',
  color: '#8fcabf',
  icon: 'advisor-send-text.svg',
  inputs: 1,
  outputs: ['sent', 'failed', 'needsConsent'],
  // A dry run reads the consent, and so does a text that came back with consent and is refused for it again.
  uses: [{ endpoint: 'sendMessage' }, { endpoint: 'getConsent' }],
  fields: [
    ...commonFields,
    ...phoneFields(),
    {
      kind: 'typed',
      name: 'text',
      types: ['msg', 'str', 'flow', 'global', 'env', 'jsonata'],
      default: 'text',
      defaultType: 'msg',
      required: true,
      literal: 'template',
      lines: true,
    },
    { kind: 'choice', name: 'schedule', options: ['now', 'at'], default: 'now' },
    {
      kind: 'typed',
      name: 'deliveryDate',
      types: ['msg', 'str', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'deliveryDate',
      defaultType: 'msg',
      required: true,
      literal: 'date',
      when: scheduled,
    },
    {
      kind: 'typed',
      name: 'frequency',
      types: ['msg', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'frequency',
      defaultType: 'msg',
      literal: 'whole',
      when: scheduled,
      advanced: true,
    },
    {
      kind: 'choice',
      name: 'hours',
      options: ['environment', 'any'],
      default: 'environment',
      advanced: true,
    },
    {
      kind: 'typed',
      name: 'onceKey',
      types: ['off', 'text', 'msg', 'str', 'flow', 'global', 'env', 'jsonata'],
      default: '',
      defaultType: 'off',
      required: true,
      literal: 'template',
      advanced: true,
    },
    { kind: 'number', name: 'onceFor', default: 24, min: 0, advanced: true },
    { kind: 'number', name: 'maxSegments', default: 0, min: 0, whole: true, advanced: true },
  ],
};
