// Requests to the API of the instance.

import { present } from './token.js';

/** An answer that is a problem (RFC 9457), or no answer at all. */
export class Problem extends Error {
  /** The token that was sent; null if none was. */
  token = null;

  constructor(detail, status) {
    super(detail);
    this.status = status;
  }
}

const PATIENCE_MS = 8000;
const SILENT = 'The run has ended or does not answer.';

async function send(path, options = {}, token = present()) {
  const headers = { ...options.headers, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) };
  try {
    return await fetch(`v1/${path}`, { ...options, headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch {
    throw new Problem(SILENT, 0);
  }
}

async function ask(path, options) {
  const token = present();
  const response = await send(path, options, token);
  let body = null;
  try {
    body = await response.json();
  } catch {
    // Of a refusal the status says enough.
    if (response.ok) throw new Problem(SILENT, 0);
  }
  if (!response.ok) {
    const detail = body?.detail ?? `The run answered with status ${response.status}.`;
    // A token of another scope would do.
    const other = response.status === 403 && token !== null ? '; forget it above to use another' : '';
    throw Object.assign(new Problem(detail + other, response.status), { token });
  }
  return body;
}

/** Shows an answer as text in a tab of its own: a link could not send the token. */
async function open(path) {
  const text = await (await send(path)).text();
  window.open(URL.createObjectURL(new Blob([text], { type: 'text/plain' })));
}

const segment = encodeURIComponent;

/** Whether a name is a pattern, of which the instance answers all that match. */
export const isPattern = (name) => /[*?]/.test(name);

/** What to ask for, as parameters. */
function parameters({ name = '', sort = '', from = 0, count = 50 }) {
  const query = new URLSearchParams({ from, count });
  if (name) query.set('name', name);
  if (sort) query.set('sort', sort);
  return query;
}

export const api = {
  open,
  instance: () => ask('instance'),
  summary: () => ask('summary'),
  /** The graph; of a query of links, what these join. */
  topology: (query) => ask(query ? `topology?${parameters(query)}` : 'topology'),
  description: () => ask('openapi.json'),
  events: (after, planned) => ask(`events?${new URLSearchParams({ after, planned })}`),
  objects: (kind, query) => ask(`${kind}?${parameters(query)}`),
  /** One object, and the time at which it was counted. */
  async one(kind, name) {
    // A name with such a sign in it would be a pattern.
    if (isPattern(name)) return { object: await ask(`${kind}/${segment(name)}`), at: 0 };
    const { objects, counted_ns: at } = await ask(`${kind}?${parameters({ name, count: 1 })}`);
    return { object: objects[0], at };
  },
  forwarders: (router) => ask(`routers/${segment(router)}/forwarders`),
  change: (kind, name, settings) =>
    ask(`${kind}/${segment(name)}`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(settings),
    }),
};
