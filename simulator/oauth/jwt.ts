import { createHmac, timingSafeEqual } from 'node:crypto';

const header = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url');

const signature = (content: string, key: string): Buffer =>
  createHmac('sha256', key).update(content).digest();

export const sign = (claims: object, key: string): string => {
  const content = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${content}.${signature(content, key).toString('base64url')}`;
};

/** The claims, if this key has signed them. */
export const verified = (token: string, key: string): unknown => {
  const end = token.lastIndexOf('.');
  const content = token.slice(0, Math.max(0, end));
  const given = Buffer.from(token.slice(end + 1), 'base64url');
  const expected = signature(content, key);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return JSON.parse(
    Buffer.from(content.slice(content.indexOf('.') + 1), 'base64url').toString('utf8'),
  ) as unknown;
};
