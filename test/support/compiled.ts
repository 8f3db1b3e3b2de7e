import { join } from 'node:path';

/** What Node is given before a script of ours, so that it runs as it is compiled for the tests. */
export const asCompiled = ['--require', join(__dirname, 'typescript.cjs')] as const;
