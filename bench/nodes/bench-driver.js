'use strict';
const inspector = require('node:inspector');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { performance } = require('node:perf_hooks');
const { clearInterval, setInterval } = require('node:timers');
const { setImmediate: nextTurn, setTimeout: sleep } = require('node:timers/promises');

const phoneOf = (number) => `+1202${String(number % 10_000_000).padStart(7, '0')}`;
const text = 'Your appointment is confirmed for tomorrow at ten. Reply if you cannot make it.';

/** The collector continues to sweep in its own threads after it has returned. */
const collectGarbage = async () => {
  globalThis.gc?.();
  await sleep(300);
};

/**
 * CPU and wall time of some work, in milliseconds: including its own garbage, however little, but not that of earlier
 * work.
 */
const timed = async (work) => {
  await collectGarbage();
  const cpu = process.cpuUsage();
  const from = performance.now();
  await work();
  globalThis.gc?.({ type: 'minor' });
  const wall = performance.now() - from;
  const used = process.cpuUsage(cpu);
  return { wall, cpu: (used.user + used.system) / 1000 };
};

const profiled = async (file, work) => {
  if (!file) return work();
  const session = new inspector.Session();
  session.connect();
  const post = (method) =>
    new Promise((resolve, reject) =>
      session.post(method, (fault, result) => (fault ? reject(fault) : resolve(result))),
    );
  await post('Profiler.enable');
  await post('Profiler.start');
  const result = await work();
  const { profile } = await post('Profiler.stop');
  writeFileSync(file, JSON.stringify(profile));
  session.disconnect();
  return result;
};

/** Listeners for messages that reach a `bench-end`, by its name. */
const listeners = new Map();

/**
 * Passes each message that reaches an end to `take`, until that returns true; an arrival at `failed` fails the round.
 */
const arrivals = (end, take) =>
  new Promise((resolve, reject) => {
    const stop = () => {
      listeners.delete(end);
      listeners.delete('failed');
    };
    listeners.set('failed', (msg) => {
      stop();
      reject(new Error(`a message failed: ${JSON.stringify(msg.error ?? msg.payload)}`));
    });
    listeners.set(end, (msg) => {
      try {
        if (!take(msg)) return;
        stop();
        resolve();
      } catch (fault) {
        stop();
        reject(fault);
      }
    });
  });

const checkSent = ({ payload }) => {
  if (!Number.isInteger(payload?.messageId)) throw new Error(`not a sent text: ${JSON.stringify(payload)}`);
};

const bearer = (token) => ({
  authorization: `Bearer ${token}`,
  'x-api-key': 'bench-key',
  accept: 'application/json',
});

const bareText = async (pool, headers, number) => {
  const body = JSON.stringify({ phone: phoneOf(number), text });
  const answer = await pool.request({ method: 'POST', path: '/v1/text/messaging/messages', headers, body });
  const { successes } = await answer.body.json();
  checkSent({ payload: successes[0] });
};

/** Keeps so many in flight until all are started and done. */
const inParallel = async (width, count, work) => {
  let started = 0;
  const worker = async () => {
    while (started < count) await work(started++);
  };
  await Promise.all(Array.from({ length: width }, worker));
};

const orders = {
  /** So many texts, each in its own message, so many in flight. */
  async texts({ output, end, count, inFlight, profile }, send) {
    return profiled(profile, () =>
      timed(async () => {
        let started = 0;
        let left = count;
        const next = () => {
          const phone = phoneOf(started++);
          send(output, { phone, text, payload: { phone, text } });
        };
        const all = arrivals(end, (msg) => {
          checkSent(msg);
          if (started < count) next();
          return --left === 0;
        });
        while (started < Math.min(inFlight, count)) next();
        await all;
      }),
    );
  },

  /** So many texts in one message. */
  async list({ output, end, count, profile }, send) {
    const phone = Array.from({ length: count }, (_, index) => phoneOf(index));
    return profiled(profile, () =>
      timed(async () => {
        let left = count;
        const all = arrivals(end, (msg) => {
          checkSent(msg);
          return --left === 0;
        });
        send(output, { phone, text });
        await all;
      }),
    );
  },

  /** The minimum that sends a text: a pool, JSON, nothing else. */
  async bare({ url, token, count, inFlight }, _send, { pool }) {
    const headers = { ...bearer(token), 'content-type': 'application/json' };
    const to = pool(url, inFlight);
    return timed(() => inParallel(inFlight, count, (index) => bareText(to, headers, index)));
  },

  /** One text at a time, alternately with and without us. */
  async latency({ output, end, url, token, count }, send, { pool }) {
    const headers = { ...bearer(token), 'content-type': 'application/json' };
    const to = pool(url, 1);
    const ours = [];
    const bare = [];
    const sendBare = async (index) => {
      const started = performance.now();
      await bareText(to, headers, index);
      bare.push(performance.now() - started);
    };
    const sendOurs = async (index) => {
      const started = performance.now();
      const arrived = arrivals(end, (msg) => {
        checkSent(msg);
        ours.push(performance.now() - started);
        return true;
      });
      send(output, { phone: phoneOf(index), text });
      await arrived;
    };
    for (let index = 0; index < count; index++) {
      for (const one of index % 2 === 0 ? [sendBare, sendOurs] : [sendOurs, sendBare]) await one(index);
    }
    return { ours, bare };
  },

  /** Counts what a search emits, and its peak memory; measuring that takes time too. */
  async items({ output, end, count, times = 1, watched = false, profile }, send) {
    const rss = () => process.memoryUsage.rss();
    await collectGarbage();
    const idle = rss();
    let peak = idle;
    const watch = watched && setInterval(() => (peak = Math.max(peak, rss())), 10);
    try {
      const cost = await profiled(profile, () =>
        timed(async () => {
          for (let time = 0; time < times; time++) {
            let left = count;
            const all = arrivals(end, ({ payload }) => {
              if (!Number.isInteger(payload?.contactId)) throw new Error('not a contact');
              return --left === 0;
            });
            send(output, { payload: '' });
            await all;
          }
        }),
      );
      return { ...cost, idle, peak };
    } finally {
      if (watch) clearInterval(watch);
    }
  },

  async bareItems({ url, token, count, times, pageSize }, _send, { pool }) {
    const headers = bearer(token);
    const to = pool(url, 1);
    const stream = async () => {
      let seen = 0;
      for (let page = 1; seen < count; page++) {
        const path = `/v1/core/contact/contacts?page=${page}&pageSize=${pageSize}`;
        const answer = await to.request({ method: 'GET', path, headers });
        const { data } = await answer.body.json();
        for (const { contactId } of data) if (Number.isInteger(contactId)) seen += 1;
        if (data.length === 0) throw new Error('the pages ended early');
      }
    };
    return timed(async () => {
      for (let time = 0; time < times; time++) await stream();
    });
  },

  /** Consent status through the client alone. */
  async calls({ url, token, count, inFlight }, _send, { client }) {
    const service = client(url, token, inFlight);
    const options = { advisor: 'default', lane: 'polls', priority: 'poll' };
    const call = async (index) => {
      const { data } = await service.call('getConsent', { query: { phone: phoneOf(index) } }, options);
      if (data.state !== 'pending') throw new Error('not a consent status');
    };
    return timed(() => inParallel(inFlight, count, call));
  },

  /** Starts waits, one list per message, one message after the other. */
  async waits({ output, count, perMessage, profile }, send, { waiting, forget }) {
    forget();
    return profiled(profile, () =>
      timed(async () => {
        for (let from = 0; from < count; from += perMessage) {
          const length = Math.min(perMessage, count - from);
          send(output, { phone: Array.from({ length }, (_, index) => phoneOf(from + index)) });
          await nextTurn();
        }
        await waiting(count);
      }),
    );
  },

  /** Lists, one message after the other, `every` milliseconds; only rejected ones are reported. */
  async lists({ output, count, perMessage, first = 0, every = 0 }, send) {
    let refused;
    listeners.set('failed', ({ error }) => (refused = error?.message ?? 'no reason'));
    for (let from = 0; from < count; from += perMessage) {
      const length = Math.min(perMessage, count - from);
      send(output, { phone: Array.from({ length }, (_, index) => phoneOf(first + from + index)), text });
      await sleep(every);
      if (refused !== undefined) throw new Error(`a list was refused: ${refused}`);
    }
    listeners.delete('failed');
  },

  /** Ends all waits at once. */
  async reset({ output, end, count, profile }, send) {
    return profiled(profile, () =>
      timed(async () => {
        let left = count;
        const all = arrivals(end, ({ payload }) => {
          if (payload?.reason !== 'cancelled') throw new Error('not a cancelled wait');
          return --left === 0;
        });
        send(output, { reset: true });
        await all;
      }),
    );
  },

  flush: async ({ output }, send) => send(output, { flush: true }),

  collect: collectGarbage,

  /** The result of `timed`, for measurements from outside. */
  collectYoung: async () => globalThis.gc?.({ type: 'minor' }),

  async memory() {
    await collectGarbage();
    await collectGarbage();
    return { rss: process.memoryUsage.rss() };
  },

  /** Milliseconds since the process started: when this node was created, and when a status counted so many waits. */
  ready: async ({ count }, _send, { waiting, since }) => ({
    madeAt: performance.timeOrigin + since,
    made: since,
    waiting: count === 0 ? since : await waiting(count),
  }),
};

const toolsIn = (RED) => {
  const since = performance.now();
  const required = (name) => require(require.resolve(name, { paths: [RED.settings.userDir] }));
  const pools = new Map();
  const clients = new Map();
  const counted = new Map();
  const watchers = new Set();
  RED.events.on('node-status', ({ status }) => {
    const said = /([\d,.\s]+) waiting/.exec(status?.text ?? '')?.[1];
    if (said === undefined) return;
    counted.set(Number(said.replace(/\D/g, '')), performance.now());
    for (const watcher of watchers) watcher();
  });
  return {
    since,
    pool(url, connections) {
      const key = `${url} ${connections}`;
      if (!pools.has(key)) pools.set(key, new (required('undici').Pool)(url, { connections, pipelining: 1 }));
      return pools.get(key);
    },
    client(url, token, maxConcurrent) {
      const key = `${url} ${token} ${maxConcurrent}`;
      if (!clients.has(key)) {
        const { createClient } = required('@advisor-texting/node-red/dist/lib/service/client.js');
        const options = { baseUrl: `${url}/v1`, apiKey: 'bench-key', token: () => token, maxConcurrent };
        clients.set(key, createClient(options));
      }
      return clients.get(key);
    },
    /** Those that were counted so far may have ended. */
    forget: () => counted.clear(),
    /** When a status first counted so many waits. */
    waiting: (count) =>
      new Promise((resolve) => {
        const look = () => {
          if (!counted.has(count)) return;
          watchers.delete(look);
          resolve(counted.get(count));
        };
        watchers.add(look);
        look();
      }),
  };
};

/** Carries out the measuring side's commands inside Node-RED, and answers on its first output. */
module.exports = (RED) => {
  RED.nodes.registerType('bench-end', function (config) {
    RED.nodes.createNode(this, config);
    this.on('input', (msg, _send, done) => {
      listeners.get(config.name)?.(msg);
      done();
    });
  });
  RED.nodes.registerType('bench-driver', function (config) {
    RED.nodes.createNode(this, config);
    const tools = toolsIn(RED);
    const send = (output, msg) => {
      const outputs = Array.from({ length: output + 1 }, () => null);
      outputs[output] = msg;
      this.send(outputs);
    };
    this.on('input', (msg, _send, done) => {
      const { order, ...details } = msg.payload;
      const profile = details.profile && join(details.profile, `${order}-${Date.now()}.cpuprofile`);
      Promise.resolve(orders[order]({ ...details, profile }, send, tools)).then(
        (result) => send(0, { result }),
        (fault) => send(0, { fault: String(fault.stack ?? fault) }),
      );
      done();
    });
  });
};
