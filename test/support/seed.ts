import fc from 'fast-check';

/** The same cases on every machine, so that a run ends the same way everywhere; `npm run models` draws others. */
fc.configureGlobal({ seed: Number(process.env.MODEL_SEED ?? 1) });
