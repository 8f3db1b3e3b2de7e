import { closeSharedEditor } from '../support/editor/shared';
import { versions } from '../support/extent';
import { dialogs } from './forms/dialogs';
import { mistakes } from './forms/mistakes';
import { nodes } from './forms/nodes';
import { office } from './forms/office';
import { pickers } from './forms/pickers';

for (const version of versions)
  for (const tests of [nodes, pickers, dialogs, mistakes, office]) tests(version);

after(closeSharedEditor);
