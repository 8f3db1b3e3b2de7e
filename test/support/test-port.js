'use strict';
const inspector = require('node:inspector');

/** Messages may contain requests, responses and cycles: those are replaced by their names. */
const plain = (value) => {
  const path = [];
  return JSON.parse(
    JSON.stringify(value, function (key, part) {
      while (path.length > 0 && path[path.length - 1] !== this) path.pop();
      if (typeof part === 'function' || (key !== '' && ['req', 'res'].includes(key))) return `[${key}]`;
      if (part instanceof Error) return { message: part.message, code: part.code };
      if (typeof part === 'object' && part !== null) {
        if (path.includes(part)) return '[circular]';
        path.push(part);
      }
      return part;
    }),
  );
};

/** Every script that this process has parsed, CommonJS and ES modules alike. */
const scripts = () => {
  const session = new inspector.Session();
  const urls = [];
  session.connect();
  session.on('Debugger.scriptParsed', ({ params }) => urls.push(params.url));
  session.post('Debugger.enable');
  session.disconnect();
  return urls;
};

const answers = {
  scripts,
  memory: () => process.memoryUsage(),
  cpu: () => process.cpuUsage(),
  resources: () => process.getActiveResourcesInfo(),
};

/** How tests reach a running flow: messages that arrive are sent to the test, and messages of the test are sent on. */
module.exports = (RED) => {
  const ports = new Map();
  RED.nodes.registerType('test-port', function (config) {
    RED.nodes.createNode(this, config);
    ports.set(this.id, this);
    this.on('input', (msg, _send, done) => {
      process.send?.({ port: config.name || this.id, msg: plain(msg) });
      done();
    });
    this.on('close', () => ports.delete(this.id));
  });
  process.on('message', ({ id, port, msg, ask }) => {
    if (ask) process.send({ id, answer: answers[ask]() });
    else {
      const node = ports.get(port) ?? [...ports.values()].find((one) => one.name === port);
      node?.send(msg);
      process.send({ id, answer: node !== undefined });
    }
  });
};
