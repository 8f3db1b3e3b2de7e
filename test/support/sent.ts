/** The service's answer to a text that it has accepted. */
export const sent = { successes: [{ messageId: 7, memberId: 9 }], failures: [] };
