import type { Page } from 'playwright-core';
import { boxOf, chooseType, enter } from './canvas';

type States = Readonly<Record<string, (page: Page) => Promise<void>>>;

const choose = async (page: Page, field: string, option: string): Promise<void> => {
  await page.locator(`#node-input-${field}`).selectOption(option);
};

const openAdvanced = (page: Page): Promise<void> => page.locator('.advisor-advanced > summary').click();

const isWrong = (page: Page, field: string): Promise<void> =>
  page.locator(`[data-field=${field}] .advisor-error:not(:empty)`).waitFor();

const openPicker = async (page: Page, field: string): Promise<void> => {
  const row = page.locator(`[data-field=${field}]`);
  await row.locator('.advisor-icon-button').click();
  await row.locator('.advisor-options button').nth(1).waitFor();
  await row.locator('.advisor-options button').first().focus();
};

/** What a dialog looks like after somebody used it: each continues from the previous one. */
export const statesOf: Readonly<Record<string, States>> = {
  'send-text': {
    'scheduled, with expressions, advanced open': async (page) => {
      await chooseType(page, 'phone', 'json');
      await enter(page, 'text', 'jsonata', 'payload.words');
      await choose(page, 'schedule', 'at');
      await openAdvanced(page);
      await enter(page, 'frequency', 'num', '2');
    },
    'literals, and what is wrong about them': async (page) => {
      await enter(page, 'phone', 'str', 'grace');
      await enter(page, 'text', 'str', 'Hi 😀');
      await chooseType(page, 'deliveryDate', 'str');
      await choose(page, 'environment', 'real');
      for (const field of ['environment', 'phone', 'deliveryDate']) await isWrong(page, field);
    },
  },
  'request-consent': {
    'an expression and a number that are wrong': async (page) => {
      await enter(page, 'phone', 'jsonata', '$(');
      await page.locator('#node-input-every').fill('x');
      for (const field of ['phone', 'every']) await isWrong(page, field);
    },
  },
  'check-consent': {
    'a pace of one’s own': async (page) => {
      await chooseType(page, 'phone', 'json');
      await choose(page, 'mode', 'wait');
      await choose(page, 'pace', 'custom');
      await page.locator('#node-input-pollEvery').fill('0');
      for (const field of ['phone', 'pollEvery']) await isWrong(page, field);
    },
    'by an id': async (page) => {
      await choose(page, 'by', 'memberId');
      await enter(page, 'memberId', 'num', 'x');
      await isWrong(page, 'memberId');
    },
  },
  contact: {
    'field by field': async (page) => {
      await choose(page, 'operation', 'save');
      await chooseType(page, 'contact', 'fields');
      await boxOf(page, 'fields-entry-firstName').fill('Ann');
      await enter(page, 'fields-entry-lastName', 'jsonata', 'payload.name');
      await enter(page, 'fields-entry-gender', 'env', 'GENDER');
    },
    'as JSON that is wrong': async (page) => {
      await choose(page, 'operation', 'create');
      await enter(page, 'contact', 'json', '{');
      await isWrong(page, 'contact');
    },
    'chosen from a list': async (page) => {
      await choose(page, 'operation', 'get');
      await openPicker(page, 'contactId');
    },
    'a search in an order': async (page) => {
      await choose(page, 'operation', 'search');
      await choose(page, 'sortBy', 'email');
      await page.locator('#node-input-pageSize').fill('900');
      await isWrong(page, 'pageSize');
    },
  },
  group: {
    'several chosen from a list, advanced open': async (page) => {
      await choose(page, 'operation', 'setGroups');
      await openPicker(page, 'groupIds');
      await page.locator('[data-field=groupIds] .advisor-options button').first().click();
      await chooseType(page, 'contactId', 'json');
      await openAdvanced(page);
    },
  },
  content: {
    'an expression, and a list': async (page) => {
      await chooseType(page, 'search', 'jsonata');
      await openPicker(page, 'search');
    },
  },
  real: {
    'advanced open, much wrong': async (page) => {
      await openAdvanced(page);
      for (const [field, value] of Object.entries({ baseUrl: 'x', timeout: 'x', consentPattern: '(' })) {
        await page.locator(`#node-config-input-${field}`).fill(value);
        await isWrong(page, field);
      }
    },
    'signing in by itself, the service from a variable': async (page) => {
      await page.locator('#node-config-input-grant').selectOption('client_credentials');
      await page.locator('#node-config-input-service').selectOption({ index: 3 });
      await page.locator('#node-config-input-service-variable').fill('SERVICE');
    },
  },
};
