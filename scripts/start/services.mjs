import { readFileSync } from 'node:fs';

/** The flows in the runtime's file; undefined when they cannot be read. */
export const flowsIn = (file) => {
  try {
    const content = JSON.parse(readFileSync(file, 'utf8'));
    return Array.isArray(content) ? content : content.flows;
  } catch {
    return undefined;
  }
};

/** Whether a flow, a group, a subflow or the whole of the flows sets the variable: that takes precedence over the process. */
const isSetInFlows = (flows, variable) =>
  flows.some(({ env }) => Array.isArray(env) && env.some(({ name }) => name === variable));

const serviceOf = (flows, written, variables) => {
  const names = [...written.matchAll(/\$\{([^}]+)\}/g)].map(([, name]) => name);
  if (names.some((name) => isSetInFlows(flows, name))) return undefined;
  return written.replaceAll(/\$\{([^}]+)\}/g, (whole, name) => variables[name] ?? whole);
};

const whereTo = (flows, { service = 'simulator' }, variables) => {
  const written = String(service);
  const found = serviceOf(flows, written, variables);
  const by = found === written ? '' : ` (${written})`;
  if (found === undefined) return `the service that ${written} names in the flows, which may be the real one`;
  if (found === 'production') return `production${by}: real people are texted`;
  if (found === 'sandbox') return `sandbox${by}: the service decides who is really texted`;
  if (found === 'simulator') return `simulator${by}`;
  return written.includes('${')
    ? `nothing, because ${written} is ${found === written ? 'not set' : 'none of the three services'}`
    : 'nothing: this service does not exist';
};

/** Whether a node, or a property of a subflow, may use the environment: a variable can name any of them. */
const mayBeUsed = (flows, { id }) =>
  flows.some(
    (node) =>
      node.id !== id &&
      (String(node.environment).includes('${') || JSON.stringify(node).includes(JSON.stringify(id))),
  );

/** A sentence about who may really be texted by these flows. Disabled and unused environments text nobody. */
export const whoIsTexted = (flows, variables) => {
  if (!Array.isArray(flows))
    return 'The flows could not be read: check their environments before you send anything.';
  const environments = flows.filter(
    (node) => node.type === 'advisor-environment' && node.d !== true && mayBeUsed(flows, node),
  );
  if (environments.length === 0) return 'No node in these flows uses an environment: nobody is texted.';
  const places = environments.map((node) => [node.name || node.id, whereTo(flows, node, variables)]);
  const others = places.filter(([, place]) => !/^simulator/.test(place));
  if (others.length === 0) return 'Everything here runs on the simulator: nobody is really texted.';
  const lines = others.map(([name, place]) => `    "${name}" leads to ${place}.`);
  return ['Not everything here runs on the simulator:', ...lines].join('\n');
};
