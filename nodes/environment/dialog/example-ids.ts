/**
 * The ids of the environments of examples. The editor gives an imported node the environment that already has the id: if
 * that had gone live, an example that is imported later would text real people.
 */
export const idOfExample = /^(?:ex\w\denv0+|r\d\denv)$/;
