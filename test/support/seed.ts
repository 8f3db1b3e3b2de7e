import fc from 'fast-check';
import { seed } from './extent';

/** The same cases on every machine, so that runs are reproducible; `npm run proof -- models` draws others. */
fc.configureGlobal({ seed });
