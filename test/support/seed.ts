import fc from 'fast-check';
import { seedFrom } from './extent';

/** The same cases on every machine, so that runs are reproducible; `npm run proof -- models` draws others. */
fc.configureGlobal({ seed: seedFrom('MODEL_SEED') });
