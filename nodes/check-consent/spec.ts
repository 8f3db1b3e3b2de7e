import { commonFields, type NodeSpec, phoneField, type When } from '../../lib/runtime/spec';

const waiting: When = { mode: ['wait'] };

export const spec: NodeSpec = {
  type: 'advisor-check-consent',
  category: 'advisor texting',
  color: '#8fcabf',
  icon: 'advisor-check-consent.svg',
  inputs: 1,
  outputs: ['accepted', 'failed', 'notAccepted'],
  uses: ['getConsent'],
  fields: [
    ...commonFields,
    { kind: 'choice', name: 'by', options: ['phone', 'memberId'], default: 'phone' },
    { ...phoneField, when: { by: ['phone'] } },
    {
      kind: 'typed',
      name: 'memberId',
      types: ['msg', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'memberId',
      defaultType: 'msg',
      required: true,
      literal: 'whole',
      when: { by: ['memberId'] },
    },
    { kind: 'choice', name: 'mode', options: ['once', 'wait'], default: 'once' },
    { kind: 'number', name: 'pollEvery', default: 30, min: 0.1, when: waiting },
    { kind: 'number', name: 'pollFor', default: 300, min: 0, when: waiting },
    { kind: 'number', name: 'thenEvery', default: 300, min: 0.1, when: waiting },
    { kind: 'number', name: 'giveUpAfter', default: 86400, min: 0.1, when: waiting },
  ],
};
