import { errorMaker, type ErrorKey, type MessageValues, type ServiceError } from '../service/errors';
import { wordFor } from './language';

export const nodeError = errorMaker(wordFor('en-US'));

export const invalidInput = (key: ErrorKey, values: MessageValues = {}): ServiceError =>
  nodeError('invalid_input', key, values);
