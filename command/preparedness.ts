import { statfsSync } from 'node:fs';
import { isLoopback } from '../lib/addresses';
import { recommended } from '../lib/consent/pace';
import { offsetAt, offsetName, ownTimeZone } from '../lib/runtime/dates';
import { plainSettings } from '../lib/runtime/inputs';
import { wrongSetting } from '../lib/runtime/settings';
import type { NodeSpec } from '../lib/runtime/spec';
import type { MessageValues, ServiceError } from '../lib/service/errors';
import type { Finding, Verdict } from '../lib/check/rehearsal';
import { spec as checkConsent } from '../nodes/check-consent/spec';
import { faultInValues, serviceOf, type EnvironmentValues } from '../nodes/environment/config';
import { nodeId, nodeName, runningIn, specOf, type SavedNode } from '../nodes/environment/saved-nodes';
import { spec as environment } from '../nodes/environment/spec';
import { spec as requestConsent } from '../nodes/request-consent/spec';
import { spec as sendText } from '../nodes/send-text/spec';
import { isEnvironment, type SettingsFile } from './installation';
import { second } from '../lib/durations';

export interface Prepared {
  readonly userDir: string;
  /** Undefined if `settings.js` does not exist or cannot be run. */
  readonly settings: SettingsFile | undefined;
  /** All nodes of the flow file. */
  readonly nodes: readonly SavedNode[];
  /** The environment for production, with its variables resolved. */
  readonly values: EnvironmentValues;
  /** Names or ids of other environments whose nodes are meant to stay there. */
  readonly also: readonly string[];
}

const finding = (check: string, ok: Verdict, key: string, values: MessageValues = {}): Finding => ({
  check,
  ok,
  key: `check.${key}`,
  values,
});

const secretFinding = (settings: SettingsFile): Finding => {
  if (settings.credentialSecret === false) return finding('credentialSecret', false, 'secretOff');
  return settings.credentialSecret === undefined
    ? finding('credentialSecret', false, 'secretGenerated')
    : finding('credentialSecret', true, 'secret');
};

/** Permissions with which somebody can text. */
const sufficient: readonly unknown[] = ['*', 'write', '*.write', 'flows.write', 'advisor-texting.write'];

const loginFinding = ({ hasEditor, hasLogin, uiHost, withoutLogin }: SettingsFile): Finding => {
  if (!hasEditor) return finding('adminAuth', true, 'loginNoEditor');
  if (hasLogin)
    return [withoutLogin].flat().some((permission) => sufficient.includes(permission))
      ? finding('adminAuth', false, 'loginDefault')
      : finding('adminAuth', true, 'login');
  return uiHost !== undefined && isLoopback(uiHost)
    ? finding('adminAuth', null, 'loginLocal')
    : finding('adminAuth', false, 'loginNone');
};

/** Network file systems, by their magic numbers in Linux (statfs(2)). */
const networks: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'SMB',
  0xfe534d42: 'SMB',
  0x01021997: '9P',
  0x00c36400: 'Ceph',
  0x5346414f: 'AFS',
};
/** A file system in user space, which may be of any kind. */
const fuse = 0x65735546;

const diskFinding = (userDir: string, values: EnvironmentValues): Finding => {
  if (plainSettings(environment, values).text('store') === 'postgres')
    return finding('userDir', true, 'diskUnneeded');
  const type = process.platform === 'linux' ? statfsSync(userDir).type : fuse;
  const network = networks[type];
  if (network !== undefined)
    return finding('userDir', false, 'diskNetwork', { kind: network, setting: { setting: 'store' } });
  return type === fuse ? finding('userDir', null, 'diskUnclear') : finding('userDir', true, 'disk');
};

/** The fault of one setting, independent of the others. */
export const faultInSetting = (values: EnvironmentValues, name: string): ServiceError | undefined =>
  faultInValues({ service: values['service'], [name]: values[name] });

/** Settings that have a separate line. */
export const toldApart: readonly string[] = [
  'timeZone',
  'deliveryDateUnit',
  'consentPattern',
  'requestsPerSecond',
  'journal',
  'repeatSends',
  'store',
  'storeUrl',
];

const environmentFindings = (values: EnvironmentValues, nodes: readonly SavedNode[]): Finding[] => {
  const { number, flag, text } = plainSettings(environment, values);
  const doesSchedule = nodes.some(
    (node) =>
      node['type'] === sendText.type && node['environment'] === nodeId(values) && node['schedule'] === 'at',
  );
  const zone = text('timeZone');
  const zoneOfProcess = ownTimeZone() || offsetName(offsetAt('', Date.now()));
  const needsZone = doesSchedule || text('textFrom') !== '';
  const limit = number('requestsPerSecond');
  const setting = (name: string): MessageValues => ({ setting: { setting: name } });
  const zoneFinding = (): Finding => {
    if (zone !== '') return finding('timeZone', true, 'zone', { zone });
    return needsZone
      ? finding('timeZone', false, 'zoneMissing', { zone: zoneOfProcess, ...setting('timeZone') })
      : finding('timeZone', true, 'zoneUnneeded');
  };
  const [from, until] = [text('textFrom'), text('textUntil')];
  const findings = [
    from === ''
      ? finding('textHours', null, 'hoursNone', setting('textHours'))
      : finding('textHours', true, 'hours', { from, until }),
    zoneFinding(),
    doesSchedule
      ? finding('deliveryDateUnit', null, 'unitUnclear', { unit: text('deliveryDateUnit') })
      : finding('deliveryDateUnit', true, 'unitUnneeded'),
    finding('consentPattern', null, 'consentWords', setting('consentPattern')),
    limit > 0
      ? finding('requestsPerSecond', true, 'limit', { count: limit })
      : finding('requestsPerSecond', null, 'limitNone', setting('requestsPerSecond')),
    flag('journal')
      ? finding('journal', true, 'journal')
      : finding('journal', false, 'journalOff', setting('journal')),
    text('repeatSends') === 'always'
      ? finding('repeatSends', false, 'repeatsAlways', setting('repeatSends'))
      : finding('repeatSends', true, 'repeats'),
  ];
  return findings.map((finding) => {
    const problem = faultInSetting(values, finding.check)?.problem;
    return problem ? { check: finding.check, ok: false, key: '', problem } : finding;
  });
};

/** The number of names that fit into a line. */
const mostNames = 5;

const namesOf = (nodes: readonly SavedNode[], all: readonly SavedNode[]): MessageValues => ({
  nodes: [
    ...nodes.slice(0, mostNames).map((node) => nodeName(node, all)),
    ...(nodes.length > mostNames ? ['…'] : []),
  ],
});

/** Whether an error of a node is caught: by a Catch node of its flow, or of the flow that uses its subflow. */
const isCaught = (node: SavedNode, nodes: readonly SavedNode[]): boolean => {
  const isNear = (other: SavedNode): boolean => other['z'] === node['z'];
  const covers = ({ scope, g }: SavedNode): boolean => {
    if (Array.isArray(scope)) return scope.includes(nodeId(node));
    return scope === 'group' ? g === node['g'] : true;
  };
  if (nodes.some((other) => other['type'] === 'catch' && isNear(other) && covers(other))) return true;
  return nodes.some((other) => other['type'] === `subflow:${String(node['z'])}` && isCaught(other, nodes));
};

const isHeard = (node: SavedNode, nodes: readonly SavedNode[]): boolean => {
  const { wires } = node;
  const targets = Array.isArray(wires) ? (wires as unknown[])[1] : undefined;
  const isWired = Array.isArray(targets) && targets.some((id) => nodes.some((each) => nodeId(each) === id));
  return isWired || isCaught(node, nodes);
};

/** Whether a node polls faster, or for longer, than the contract recommends (*Limits*). */
const isImpatient = (node: SavedNode): boolean => {
  const { text, number } = plainSettings(checkConsent, node);
  const ms = (name: string): number => number(name) * second;
  return (
    text('mode') === 'wait' &&
    (ms('pollEvery') < recommended.pollEvery ||
      ms('pollFor') > recommended.pollFor ||
      ms('thenEvery') < recommended.thenEvery ||
      ms('giveUpAfter') > recommended.giveUpAfter)
  );
};

/** Whether a node asks people more often than it does by default. */
const isInsistent = (node: SavedNode): boolean => {
  const usual = plainSettings(requestConsent, {});
  const { number } = plainSettings(requestConsent, node);
  const limit = number('limit');
  return number('every') < usual.number('every') || limit === 0 || limit > usual.number('limit');
};

const flowFindings = ({ nodes: all, values, also }: Prepared): Finding[] => {
  const nodes = runningIn(all);
  const named = (some: readonly SavedNode[]): MessageValues => namesOf(some, all);
  const ours = nodes.filter((node) => specOf(node) !== undefined && !isEnvironment(node));
  const environments = nodes.filter(isEnvironment);
  const uses = (id: string) => (node: SavedNode) => node['environment'] === id;
  const homeless = ours.filter((node) => !environments.some((each) => uses(nodeId(each))(node)));
  const others = environments.filter(
    (each) =>
      nodeId(each) !== nodeId(values) && !also.includes(nodeId(each)) && !also.includes(String(each['name'])),
  );
  const usersOf = (some: readonly SavedNode[]): SavedNode[] =>
    ours.filter((node) => some.some((each) => uses(nodeId(each))(node)));
  const simulated = usersOf(others.filter((each) => serviceOf(each) === 'simulator'));
  const elsewhere = others.filter((each) => usersOf([each]).length > 0);
  const here = ours.filter(uses(nodeId(values)));
  const of = (spec: NodeSpec): SavedNode[] => here.filter(({ type }) => type === spec.type);
  const wrong = here.flatMap((node) => {
    const field = wrongSetting(specOf(node)?.fields ?? [], node)?.field.name;
    return field === undefined ? [] : [{ node, field }];
  });
  const impatient = of(checkConsent).filter(isImpatient);
  const insistent = of(requestConsent).filter(isInsistent);
  const unheard = here.filter((node) => (specOf(node)?.outputs.length ?? 0) > 1 && !isHeard(node, nodes));
  const place = (): Finding => {
    if (homeless.length > 0) return finding('environment', false, 'environmentNone', named(homeless));
    if (here.length === 0) return finding('environment', false, 'environmentUnused');
    const nameOf = (each: SavedNode): unknown => [each['name'], nodeId(each)].find(Boolean);
    const names = elsewhere.map((each) => JSON.stringify(nameOf(each))).join(' --also ');
    if (simulated.length > 0)
      return finding('environment', false, 'environmentSimulator', { ...named(simulated), names });
    return elsewhere.length > 0
      ? finding('environment', 'untried', 'environmentOthers', { ...named(usersOf(elsewhere)), names })
      : finding('environment', true, 'environmentAll');
  };
  return [
    place(),
    wrong.length > 0
      ? finding('nodeSettings', false, 'settingsWrong', {
          nodes: wrong.slice(0, mostNames).map(({ node, field }) => `${nodeName(node, all)} (${field})`),
        })
      : finding('nodeSettings', true, 'settingsRight', { count: here.length }),
    impatient.length > 0
      ? finding('polls', false, 'pollsFast', named(impatient))
      : finding('polls', true, 'polls'),
    insistent.length > 0
      ? finding('consentRequests', false, 'asksLoose', named(insistent))
      : finding('consentRequests', true, 'asks'),
    unheard.length > 0
      ? finding('failedOutputs', false, 'failuresUnheard', named(unheard))
      : finding('failedOutputs', true, 'failuresHeard'),
  ];
};

/** The named environment, else the only one that is not on the simulator. */
export const environmentsMeant = (
  nodes: readonly SavedNode[],
  wanted: string | undefined,
): EnvironmentValues[] => {
  const running = runningIn(nodes).filter(isEnvironment);
  return wanted === undefined
    ? running.filter((each) => serviceOf(each) !== 'simulator')
    : running.filter((each) => each['id'] === wanted || each['name'] === wanted);
};

/** Whether a machine and its flows are ready for production. Nothing is changed, and no request is made. */
export const checkPreparedness = (prepared: Prepared): Finding[] => {
  const { settings, userDir, values, nodes } = prepared;
  const unread = (check: string): Finding =>
    finding(check, 'untried', 'settingsUnread', { directory: userDir });
  return [
    settings ? secretFinding(settings) : unread('credentialSecret'),
    settings ? loginFinding(settings) : unread('adminAuth'),
    diskFinding(userDir, values),
    ...environmentFindings(values, runningIn(nodes)),
    ...flowFindings(prepared),
  ];
};
