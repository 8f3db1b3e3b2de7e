import { z } from 'zod';
import { defaultPageSize, paging } from '../contract/rules';
import { endpoint } from './endpoint';

const contentTypes = ['All', 'WebContent', 'Emails', 'SocialPosts', 'Print', 'DownloadContent'] as const;

type ContentType = Exclude<(typeof contentTypes)[number], 'All'>;

interface ContentItem {
  readonly title: string;
  readonly url: string;
  readonly type: ContentType;
}

const titles: Readonly<Record<ContentType, readonly string[]>> = {
  WebContent: [
    'Five questions to ask before you retire',
    'How inflation changes a retirement budget',
    'Market volatility: what history tells us',
    'College savings plans compared',
    'What happens to debt when somebody dies',
    'Roth or traditional: which account first?',
    'Health costs in retirement',
    'A first budget for a first job',
    'Estate planning in an afternoon',
    'When to start Social Security',
  ],
  Emails: [
    'Happy birthday from our office',
    'Your annual review is coming up',
    'Quarterly market summary',
    'Welcome to our practice',
    'Tax season checklist',
    'A note on recent market volatility',
  ],
  SocialPosts: [
    'Retirement tip of the week',
    'Meet the team',
    'Three habits of patient investors',
    'Diversification in one picture',
    'Did you review your beneficiaries?',
  ],
  Print: [
    'Retirement income guide',
    'Client birthday card',
    'Seminar invitation: estate planning',
    'Holiday greeting card',
  ],
  DownloadContent: [
    'Household budget worksheet',
    'Retirement readiness checklist',
    'Glossary of investment terms',
    'Tax deadlines calendar',
    'Emergency contact sheet',
  ],
};

const slug = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

const library: readonly ContentItem[] = (Object.entries(titles) as [ContentType, readonly string[]][])
  .flatMap(([type, list]) =>
    list.map((title) => ({
      title,
      type,
      url: `https://content.example.com/${type.toLowerCase()}/${slug(title)}`,
    })),
  )
  .sort((one, other) => (one.title.toLowerCase() < other.title.toLowerCase() ? -1 : 1));

/** Every word of the search must be in the title. */
export const searchContent = endpoint({
  method: 'GET',
  path: '/core/content/library/search',
  scope: 'core.content.read',
  query: z.object({
    contentType: z.enum(contentTypes).optional(),
    searchText: z.string().max(150).optional(),
    ...paging,
  }),
  search: 'content',
  handle({ query }) {
    const { contentType = 'All', searchText = '', page = 1, pageSize = defaultPageSize } = query;
    const words = searchText.toLowerCase().split(/\s+/);
    const found = library.filter(
      ({ type, title }) =>
        (contentType === 'All' || type === contentType) &&
        words.every((word) => title.toLowerCase().includes(word)),
    );
    const data = found
      .slice((page - 1) * pageSize, page * pageSize)
      .map(({ title, url }) => ({ title, url }));
    const pageInfo = { page, pageSize, totalRecord: found.length, sortDirection: 'asc', sortBy: 'title' };
    return { body: { data, pageInfo }, outcome: 'ok' };
  },
});
