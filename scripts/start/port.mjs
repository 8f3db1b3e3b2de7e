import { createServer } from 'node:net';

const isFree = (port) =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });

/** The preferred port, or the first free one after it. */
export const freePort = async (wanted) => {
  for (let port = wanted; port < Math.min(wanted + 100, 65536); port++) if (await isFree(port)) return port;
  throw new Error(`No port from ${wanted} on is free: choose another with PORT=… npm start`);
};
