import type { Form } from './red';

/** An application that signs in by itself does so for one advisor: there is nothing to say, unless it was said. */
export const hideOnlyAdvisor = (form: Form): void => {
  form.onChange(({ environment, advisor, advisorType }) => {
    const found = typeof environment === 'string' ? RED.nodes.node(environment) : null;
    const isOnly =
      found?.['grant'] === 'client_credentials' &&
      ['sandbox', 'production'].includes(String(found['service']));
    if (isOnly && advisor === '' && advisorType === 'str') form.row('advisor').hide();
  });
};
