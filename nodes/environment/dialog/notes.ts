/** The phones, and the two pages that examples serve. */
const pages = ['advisor-texting/simulator/', 'new-contact', 'address-book']
  .map((path) => `a[href="${path}"]`)
  .join(', ');

/** In the notes of a flow, where the editor allows no `target`, a link to a page of ours would take the editor's place. */
export const openPagesApart = (): void => {
  document.addEventListener(
    'click',
    ({ target }) => {
      if (target instanceof Element) $(target).closest(pages).attr({ target: '_blank', rel: 'noopener' });
    },
    true,
  );
};
