import type { Page } from 'playwright-core';

export interface Stage {
  readonly page: Page;
  readonly url: string;
}

export interface Picture {
  readonly name: string;
  readonly open: readonly string[];
  readonly of: string;
  readonly shows: readonly string[];
}

export const openStage: (
  browser: { open(options: object): Promise<{ page: Page }> },
  red: { readonly url: string },
  colorScheme: 'light' | 'dark',
) => Promise<Stage>;
export const begin: (stage: Stage) => Promise<void>;
export const show: (stage: Stage, picture: Picture, look?: (page: Page) => Promise<void>) => Promise<void>;
