import { serviceOfEnvironment } from '../../../lib/editor/badge';
import { notify } from '../../../lib/editor/dom';
import { nodesChoosing } from '../../../lib/editor/form';
import { environmentSays as say, locale } from '../../../lib/editor/locale';
import type { EditedNode, Form, Notice, Values } from '../../../lib/editor/red';
import { leavesEnvironment, sendersOf, usersOf } from '../../../lib/editor/flow';
import { isVariable } from '../../../lib/runtime/settings';
import { second } from '../../../lib/durations';
import { idOfExample } from './example-ids';
import { lossIn, unfinishedIn } from './removal';

/** These nodes have no input, and only pass on what happens elsewhere in the flow. */
const passive = ['link in', 'catch', 'status', 'complete'];

/** Whether a node sends messages without anybody pressing its button. */
const startsItself = ({ type, _def, repeat, crontab, once }: EditedNode): boolean => {
  if (type === 'inject') return [repeat, crontab, once].some(Boolean);
  return (_def as { inputs?: number } | undefined)?.inputs === 0 && !passive.includes(type);
};

/** The nodes that start a flow by themselves and lead to one of these. */
const startersOf = (nodes: readonly EditedNode[]): readonly EditedNode[] => {
  const found = new Set(nodes);
  for (const node of found)
    for (const { source } of sendersOf(node)) if (source['d'] !== true) found.add(source);
  return [...found].filter(startsItself);
};

/** Whether a contact or a group was chosen in a node: its id is that of the service. */
const holdsId = (node: EditedNode): boolean =>
  ['contactIdType', 'groupIdType', 'groupIdsType'].some((type) =>
    ['num', 'json'].includes(String(node[type])),
  );

/** The labels of all these nodes, each once. */
const namesOf = (nodes: readonly EditedNode[]): string =>
  new Intl.ListFormat(locale()).format(new Set(nodes.map((node) => RED.utils.getNodeLabel(node, node.type))));

/** Which nodes will text real people, at this service. */
const liveNodes = (service: unknown, users: readonly EditedNode[]): string => {
  const name = isVariable(service) ? String(service) : say(`option.service.${String(service)}`);
  return say('live.nodes', { service: name, nodes: namesOf(users) });
};

/** Whether another service is chosen that may text real people, for an environment that did not text them before. */
const goesLive = (before: unknown, { service }: Values): boolean =>
  before !== 'production' &&
  before !== service &&
  (service === 'sandbox' || service === 'production' || isVariable(service));

const blockedDone = '.red-ui-tray:last-child .red-ui-tray-toolbar .primary[aria-disabled=true]';

/** In Node-RED 5, a click beside a dialog saves it even while *Done* is disabled. */
export const obeyDisabledDone = (): void => {
  document.addEventListener(
    'click',
    (event) => {
      const done = $(blockedDone);
      if (done.length === 0 || !$(event.target as Element).is('#red-ui-editor-shade')) return;
      event.stopPropagation();
      done.trigger('click');
    },
    true,
  );
};

/** The service of each environment whose dialog was opened. */
const services = new Map<string, unknown>();

export const noteService = ({ id }: EditedNode, service: unknown): void => void services.set(id, service);

/** Milliseconds: many nodes may be imported at once. */
const gathering = 100;

/** Where the editor says that a node comes from when somebody has just chosen its type. */
const chosenTypes: readonly unknown[] = ['palette', 'typeSearch'];

/** Says when nodes will text real people and no dialog has asked: by an undo, an import, or another environment. */
export const warnOfGoingLive = (): void => {
  const notices = new Set<Notice>();
  const warn = (...words: readonly string[]): void =>
    void notices.add(notify(words.join(' '), 'warning', 20 * second));
  const closeAll = (): void => {
    for (const notice of notices) notice.close();
    notices.clear();
  };

  const warnOfUndo = async (node: EditedNode): Promise<void> => {
    const { service } = node;
    const users = usersOf(node).filter(({ d }) => d !== true);
    if (services.get(node.id) !== service) closeAll();
    const isLive = users.length > 0 && goesLive(services.get(node.id), { service });
    noteService(node, service);
    if (!isLive) return;
    const loss = lossIn(await unfinishedIn(node.id), (work) => say('pending.moved', { work }));
    warn(liveNodes(service, users), ...(loss === undefined ? [] : [loss]));
  };
  RED.events.on('nodes:change', (about) => {
    const node = about as EditedNode;
    if (services.has(node.id)) void warnOfUndo(node);
  });

  /** The nodes that were added or got another environment, with the service from which they come. */
  const arrived = new Map<string, unknown>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const arrives = (id: string, before: unknown): void => {
    arrived.set(id, before);
    clearTimeout(timer);
    timer = setTimeout(warnOfArrived, gathering);
  };
  const warnOfArrived = (): void => {
    const known = new Set(RED.nodes.originalFlow()?.map(({ id }) => id));
    const live = new Map<unknown, EditedNode[]>();
    for (const [id, before] of arrived) {
      const node = RED.nodes.node(id);
      const service = serviceOfEnvironment(node?.['environment']);
      const isNew = before !== undefined || !known.has(id);
      if (node && node['d'] !== true && isNew && goesLive(before, { service }))
        live.set(service, [...(live.get(service) ?? []), node]);
    }
    arrived.clear();
    for (const [service, nodes] of live) warn(liveNodes(service, nodes));
  };
  RED.events.on(leavesEnvironment, (about) => {
    const { id, environment, next } = about as { id: string; environment: unknown; next: unknown };
    const before = serviceOfEnvironment(environment);
    closeAll();
    if (before !== undefined && before !== serviceOfEnvironment(next)) arrives(id, before);
  });
  RED.events.on('nodes:add', (about, context) => {
    const { id, type } = about as EditedNode;
    const { source } = (context ?? {}) as { source?: unknown };
    if (type.startsWith('advisor-') && !chosenTypes.includes(source)) arrives(id, undefined);
  });
  RED.events.on('deploy', closeAll);
};

/** The editor gives an imported node the environment that already has the id, so that of an example stays a simulator. */
const keepSimulator = (form: Form): void => {
  form.input('service').prop('disabled', true);
  form.row('service').append($('<p>', { class: 'advisor-hint', text: say('live.example') }));
};

/** Before the nodes of a simulator text real people: names them, and keeps *Done* disabled until somebody agrees. */
export const askBeforeGoingLive = (form: Form): void => {
  const { node } = form;
  const users = [...new Set([...usersOf(node), ...nodesChoosing(node.id)])].filter(({ d }) => d !== true);
  const { service: before } = form.values();
  if (before === 'simulator' && idOfExample.test(node.id)) keepSimulator(form);
  if (users.length === 0) return;
  noteService(node, before);
  const starters = startersOf(users);
  const holders = users.filter(holdsId);
  const id = 'advisor-going-live';
  const nodes = $('<p>');
  const box = $('<input>', { type: 'checkbox', id });
  const note = $('<div>', { class: 'advisor-warning advisor-going-live', role: 'status' }).append(
    nodes,
    ...(starters.length > 0 ? [$('<p>', { text: say('live.starters', { nodes: namesOf(starters) }) })] : []),
    ...(before === 'simulator' ? [$('<p>', { text: say('live.list') })] : []),
    ...(holders.length > 0 ? [$('<p>', { text: say('live.ids', { nodes: namesOf(holders) }) })] : []),
    $('<label>', { for: id }).append(box, $('<span>', { text: say('live.agree') })),
  );
  form.root.find('.advisor-badge').after(note);
  const done = form.root.closest('.red-ui-tray').find('.red-ui-tray-toolbar .primary');
  form.onChange((values) => {
    const isAsked = goesLive(before, values);
    note.toggle(isAsked);
    if (isAsked) nodes.text(liveNodes(values['service'], users));
    else box.prop('checked', false);
    const isOpen = isAsked && !box.prop('checked');
    // The editor ignores clicks on a button with this class, and its keyboard shortcut.
    done.toggleClass('disabled', isOpen).attr('aria-disabled', String(isOpen));
  });
  done.on('click', () => {
    if (done.hasClass('disabled')) box.trigger('focus');
  });
};
