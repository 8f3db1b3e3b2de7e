/** Whether a host is this machine, by name or by address; a URL has brackets around an address of IPv6. */
export const isLoopback = (hostname: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/.test(hostname);

/** Whether secrets and texts may be sent to an address: encrypted, or to this machine. */
export const isConfidential = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
