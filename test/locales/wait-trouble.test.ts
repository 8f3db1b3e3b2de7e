import should from 'should';
import { warnOfWaits } from '../../lib/runtime/wait-trouble';
import type { RunningNode } from '../../lib/runtime/red';
import { wordsIn } from '../../lib/runtime/words';

describe('a warning about waits on disk', () => {
  const said = (language: string): unknown[] => {
    const warnings: unknown[] = [];
    const node = { warn: (text: unknown) => warnings.push(text) } as unknown as RunningNode;
    const warn = warnOfWaits({ node, words: wordsIn(language) });
    warn('unsettled', new Error('ENOSPC'));
    warn('notRemoved', new Error('ENOSPC'));
    warn('notPacked', 'closed');
    return warnings;
  };

  it('is said in the language of the node, with the reason and what to check', () => {
    const [unsettled, notRemoved, notPacked] = said('de');
    should(unsettled).match(/^Ein Warten .*\(ENOSPC\)\. .* Prüfen Sie, ob das Benutzerverzeichnis /);
    should(notRemoved).match(/^Beendetes Warten .*\(ENOSPC\)/);
    should(notPacked).match(/^Das Warten .*\(closed\)/);
    should(said('en')[0]).match(
      /^A wait for consent has ended, .*\(ENOSPC\).* Check that the user directory/,
    );
  });
});
