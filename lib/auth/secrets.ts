import type { RuntimeSettings } from './shelf';

/** The secrets a data key may be wrapped with. */
export interface Secrets {
  /** The one to wrap with; undefined where the runtime has none, and the key goes to a file. */
  readonly current: string | undefined;
  /** All that may open an older wrapping, likeliest first. */
  readonly candidates: readonly string[];
}

export const previousSecretVariable = 'ADVISOR_TEXTING_PREVIOUS_SECRET';

const settingOf = (settings: RuntimeSettings, name: string): unknown => {
  try {
    return settings.get(name);
  } catch {
    return undefined;
  }
};

const isSecret = (value: unknown): value is string => typeof value === 'string' && value !== '';

/**
 * `_credentialSecret` is the one the runtime made for itself. It is still there when our nodes are registered, even if
 * the user has just set `credentialSecret`: that is when the data key moves from the one to the other.
 */
export const readSecrets = (settings: RuntimeSettings, variables: NodeJS.ProcessEnv): Secrets => {
  const chosen = settingOf(settings, 'credentialSecret');
  const generated = settingOf(settings, '_credentialSecret');
  const own = settingOf(settings, 'advisorTexting');
  const previous =
    typeof own === 'object' && own !== null
      ? (own as Readonly<Record<string, unknown>>)['previousCredentialSecret']
      : undefined;
  return {
    current: chosen === false ? undefined : [chosen, generated].find(isSecret),
    candidates: [chosen, generated, variables[previousSecretVariable], previous].filter(isSecret),
  };
};
