/** The topic on which every editor hears where something has changed, but not what. */
export const changedTopic = 'advisor-texting/changed';

export interface ChangeNews {
  /** One more than that of the news before: an editor that sees a gap has missed some. */
  readonly number: number;
  /** The ids of the environments in which something may have changed. */
  readonly environments: readonly string[];
}
