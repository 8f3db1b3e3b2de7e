import type { NodeSpec } from '../../../lib/runtime/spec';
import { spec as activity } from '../../../nodes/activity/spec';
import { spec as checkConsent } from '../../../nodes/check-consent/spec';
import { spec as contact } from '../../../nodes/contact/spec';
import { spec as content } from '../../../nodes/content/spec';
import { spec as doNotText } from '../../../nodes/do-not-text/spec';
import { spec as environment } from '../../../nodes/environment/spec';
import { spec as events } from '../../../nodes/events/spec';
import { spec as group } from '../../../nodes/group/spec';
import { spec as requestConsent } from '../../../nodes/request-consent/spec';
import { spec as sendText } from '../../../nodes/send-text/spec';

/** All node types of the package. */
export const specs: readonly NodeSpec[] = [
  environment,
  sendText,
  requestConsent,
  checkConsent,
  contact,
  group,
  content,
  doNotText,
  activity,
  events,
];

/** The properties and the number of outputs of each node type of the package. */
export const nodeTypes: ReadonlyMap<string, { readonly names: readonly string[]; readonly outputs: number }> =
  new Map(
    specs.map(({ type, fields, outputs }) => [
      type,
      {
        names: fields.flatMap(({ kind, name }) => (kind === 'typed' ? [name, `${name}Type`] : [name])),
        outputs: outputs.length,
      },
    ]),
  );
