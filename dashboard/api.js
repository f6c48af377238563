// Requests to the API of the instance.

/** An answer that is a problem (RFC 9457), or no answer at all. */
export class Problem extends Error {
  constructor(detail, status, key) {
    super(detail);
    this.status = status;
    this.key = key;
  }
}

const PATIENCE_MS = 8000;

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(`v1/${path}`, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch {
    throw new Problem('The run has ended or does not answer.', 0);
  }
  let body = null;
  try {
    body = await response.json();
  } catch {
    // The status says enough.
  }
  if (!response.ok) {
    throw new Problem(body?.detail ?? `The run answered with status ${response.status}.`, response.status, body?.key);
  }
  return body;
}

const segment = encodeURIComponent;

export const api = {
  instance: () => ask('instance'),
  summary: () => ask('summary'),
  topology: () => ask('topology'),
  description: () => ask('openapi.json'),
  events: (after) => ask(`events?after=${after}`),
  object: (kind, name) => ask(`${kind}/${segment(name)}`),
  objects(kind, { name = '', sort = '', from = 0, count = 50 } = {}) {
    const query = new URLSearchParams({ from, count });
    if (name) query.set('name', name);
    if (sort) query.set('sort', sort);
    return ask(`${kind}?${query}`);
  },
  forwarders: (router) => ask(`routers/${segment(router)}/forwarders`),
  change: (kind, name, settings) =>
    ask(`${kind}/${segment(name)}`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(settings),
    }),
};
