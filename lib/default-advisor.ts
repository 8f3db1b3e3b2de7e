/** The key of the only advisor: on the simulator, and where an application signs in with its own credentials. */
export const defaultAdvisor = 'default';
