import { recommended } from '../../lib/consent/pace';
import { commonFields, type NodeSpec, phoneFields, type When } from '../../lib/runtime/spec';
import { second } from '../../lib/durations';

const waiting: When = { mode: ['wait'] };
/** The recommended pace in seconds, as the form has it (contract, *Limits*). */
const recommendedPace = {
  pollEvery: recommended.pollEvery / second,
  pollFor: recommended.pollFor / second,
  thenEvery: recommended.thenEvery / second,
  giveUpAfter: recommended.giveUpAfter / second,
};

export const spec: NodeSpec = {
  type: 'advisor-check-consent',
  category: 'advisor texting',
  color: '#8fcabf',
  icon: 'advisor-check-consent.svg',
  inputs: 1,
  outputs: ['accepted', 'failed', 'notAccepted'],
  uses: [{ endpoint: 'getConsent' }],
  fields: [
    ...commonFields,
    { kind: 'choice', name: 'by', options: ['phone', 'memberId'], default: 'phone' },
    ...phoneFields({ by: ['phone'] }),
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
    { kind: 'number', name: 'pollEvery', default: recommendedPace.pollEvery, min: 0.1, when: waiting },
    { kind: 'number', name: 'pollFor', default: recommendedPace.pollFor, min: 0, when: waiting },
    { kind: 'number', name: 'thenEvery', default: recommendedPace.thenEvery, min: 0.1, when: waiting },
    { kind: 'number', name: 'giveUpAfter', default: recommendedPace.giveUpAfter, min: 0.1, when: waiting },
  ],
};
