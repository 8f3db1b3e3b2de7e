import type { Page } from 'playwright-core';
import type { Version } from '../installation';
import type { FlowNode } from '../node-red';
import { startEditor, type StartedEditor } from './setup';

let shared: { readonly version: Version; readonly editor: StartedEditor } | undefined;

export const closeSharedEditor = async (): Promise<void> => {
  await shared?.editor.close();
  shared = undefined;
};

/** Shows what runs instead of what the page had. A page without a version is not told of deploys. */
const exchange = async ({ red, page }: StartedEditor, flows: FlowNode[]): Promise<void> => {
  await page.evaluate(`RED.nodes.clear(), RED.history.clear()`);
  await red.deploy(flows);
  await page.evaluate(`$.getJSON('flows').then(({ rev, flows }) => {
    RED.nodes.version(rev);
    RED.nodes.import(flows);
    RED.nodes.dirty(false);
    RED.view.redraw(true);
  })`);
  await page.locator('.red-ui-flow-node').first().waitFor();
};

/** What the tests of a suite use, from its `before` on. */
export let editor: StartedEditor;
export let page: Page;

/** A suite in the one editor of a file, with its own flows and its own errors. */
export const inSharedEditor =
  (title: string, flows: FlowNode[], tests: (version: Version) => void) =>
  (version: Version): void => {
    describe(`${title} Node-RED ${version.toString()}`, function () {
      this.timeout(180_000);

      before(async () => {
        if (shared?.version === version) await exchange(shared.editor, flows);
        else {
          await closeSharedEditor();
          shared = { version, editor: await startEditor(version, flows) };
        }
        const started = shared.editor;
        const before = started.errors.length;
        page = started.page;
        editor = {
          ...started,
          get errors() {
            return started.errors.slice(before);
          },
        };
      });

      tests(version);
    });
  };
