import { commonFields, type NodeSpec, phoneFields } from '../../lib/runtime/spec';

export const spec: NodeSpec = {
  type: 'advisor-request-consent',
  category: 'advisor texting',
  color: '#8fcabf',
  icon: 'advisor-request-consent.svg',
  inputs: 1,
  outputs: ['asked', 'failed'],
  uses: [{ endpoint: 'requestConsent' }, { endpoint: 'getConsent' }],
  fields: [
    ...commonFields,
    ...phoneFields(),
    { kind: 'number', name: 'every', default: 24, min: 0 },
    { kind: 'number', name: 'limit', default: 3, min: 0, whole: true },
    {
      kind: 'choice',
      name: 'hours',
      options: ['environment', 'any'],
      default: 'environment',
      advanced: true,
    },
  ],
};
