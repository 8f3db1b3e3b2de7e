const phones = 'a[href="advisor-texting/simulator/"]';

/** In the notes of a flow, where the editor allows no `target`, a link to the phones would take the editor's place. */
export const openPhonesApart = (): void => {
  document.addEventListener(
    'click',
    ({ target }) => {
      if (target instanceof Element) $(target).closest(phones).attr({ target: '_blank', rel: 'noopener' });
    },
    true,
  );
};
