import should from 'should';
import { type ServiceCode, serviceCodes } from '../../../lib/service/errors';
import type { Answer } from './service';

/** A problem body with every field the contract requires, and the status and retryable of its code. */
export const shouldBeProblem = (
  answer: Answer,
  code: ServiceCode,
  status: number = serviceCodes[code].status,
): void => {
  should(answer.status).equal(status, answer.text);
  should(answer.type).equal('application/problem+json');
  const { body } = answer;
  should(body['code']).equal(code);
  should(body['status']).equal(status);
  should(body['retryable']).equal(serviceCodes[code].retryable);
  for (const field of ['type', 'title', 'detail', 'instance', 'traceId']) {
    should(body[field]).be.a.String().and.not.empty();
  }
  should(URL.canParse(String(body['type']))).be.true();
};
