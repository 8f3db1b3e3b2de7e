import type { Form } from './red';

/** With client credentials the application has one advisor, so the field is hidden, unless something is filled in. */
export const hideOnlyAdvisor = (form: Form): void => {
  form.onChange(({ environment, advisor, advisorType }) => {
    const found = typeof environment === 'string' ? RED.nodes.node(environment) : null;
    const isOnly =
      found?.['grant'] === 'client_credentials' &&
      ['sandbox', 'production'].includes(String(found['service']));
    if (isOnly && advisor === '' && advisorType === 'str') form.row('advisor').hide();
  });
};
