import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded } from '../../../lib/state/embedded';
import { createMemoryStore } from '../../../lib/state/memory';
import { sealerOf } from '../../support/state/sealer';
import { testEngine } from '../../support/state/engine-suite';

testEngine('memory', async () => ({ open: async () => createMemoryStore(), dispose: async () => undefined }));

testEngine('embedded', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'advisor-store-'));
  const open = (word = 'test') =>
    openEmbedded({
      directory,
      sealer: sealerOf(word, '0123456789abcdef'),
      warn: (text) => word === 'test' && assert.fail(text),
    });
  return {
    open,
    reopen: async (store, word) => {
      await store.close();
      return open(word);
    },
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  };
});
