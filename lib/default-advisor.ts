/** The key of the only advisor, where nothing names one: on the simulator, and where an application signs in by itself. */
export const defaultAdvisor = 'default';
