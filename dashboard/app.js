// The dashboard: asks the instance each second for what is shown, and no more.

import { api } from './api.js';
import { Charts } from './charts.js';
import { byId, el, mark, say } from './dom.js';
import { bytes, clock, count, rate } from './format.js';
import { History } from './history.js';
import { Links } from './links.js';
import { Panel } from './panel.js';
import { Routers } from './routers.js';
import { Timeline } from './timeline.js';
import { Gate, hasToken } from './token.js';
import { Topology } from './topology.js';

/** Time between two looks. */
const PERIOD_MS = 1000;
/** Most routers that are asked for, and asked about their programs. */
const MOST_ROUTERS = 100;
const MOST_WITH_PROGRAMS = 12;

const history = new History();
const charts = new Charts();
const timeline = new Timeline();
const routers = new Routers();
const topology = new Topology(select);
const links = new Links(lookSoon, select);
const panel = new Panel((object) => shown(object));
const gate = new Gate(tokenChanged);

const state = { selected: null, page: null, summary: null, before: null, timer: 0, looking: false, again: false, known: false, locked: false };

function select(name) {
  state.selected = name;
  const url = new URL(location.href);
  url.hash = encodeURIComponent(name);
  window.history.replaceState(null, '', url);
  lookSoon();
}

/** Shows an object that was just changed, before the next look. */
function shown(object) {
  if (object.name === state.selected) panel.show(object, history.of(object.name)?.now);
}

/** Looks with another token, or finds that there is none. */
function tokenChanged() {
  state.known = false;
  lookSoon();
}

/** Looks at once, or once more when the look that goes on has ended. */
function lookSoon() {
  if (state.looking) state.again = true;
  else schedule(0);
}

function schedule(ms) {
  clearTimeout(state.timer);
  state.timer = setTimeout(look, ms);
}

async function look() {
  state.looking = true;
  state.again = false;
  try {
    if (!state.known) await begin();
    await refresh();
    byId('trouble').hidden = true;
    gate.pass();
  } catch (problem) {
    failed(problem);
  } finally {
    state.looking = false;
    // Without a token there is nothing to ask for.
    if (!document.hidden && (state.again || !state.locked)) schedule(state.again ? 0 : PERIOD_MS);
  }
}

function failed(problem) {
  state.locked = problem.status === 401;
  byId('trouble').hidden = state.locked;
  if (state.locked) gate.ask();
  else say(byId('trouble'), `${problem.message} Trying again.`);
  mark(byId('light'), 'data-state', 'unknown');
  say(byId('verdict'), state.locked ? 'No access' : 'No connection');
  say(byId('cause'), '');
  if (!problem.status) state.known = false;
}

/** What does not change while it runs. */
async function begin() {
  const [instance, graph, document_] = await Promise.all([api.instance(), api.topology(), api.description()]);
  say(byId('name'), instance.name);
  say(byId('version'), `Longwire ${instance.version}`);
  document.title = `${instance.name} · Longwire`;
  topology.set(graph);
  panel.describe(document_);
  state.known = true;
}

/** The graph again, when there are other objects. */
async function followObjects(summary) {
  const objects = JSON.stringify(summary.objects);
  if (state.objects && state.objects !== objects) topology.set(await api.topology());
  state.objects = objects;
}

async function refresh() {
  const query = links.query;
  const [summary, page, events] = await Promise.all([
    api.summary(),
    api.objects('links', query),
    api.events(timeline.after),
  ]);
  await followObjects(summary);
  const at = page.counted_ns ?? summary.elapsed_ns;
  page.objects.forEach((object) => history.add(at, object));
  state.selected ??= page.objects[0]?.name ?? null;
  const graph = await ofGraph(page);
  const chosen = await ofSelected(page, graph);
  totals(summary);
  verdict(summary.fidelity);
  links.show(page, history, state.selected);
  topology.show(page.objects.map((object) => object.name));
  graph.forEach((object) => topology.update(object, history.of(object.name)?.now, state.selected));
  timeline.take(events);
  timeline.show(summary.elapsed_ns);
  if (chosen) {
    panel.show(chosen, history.of(chosen.name)?.now);
    charts.show(history.of(chosen.name)?.samples ?? []);
  }
  await ofRouters(summary);
}

/** The links of the graph: those of the table, or all if it shows all. */
async function ofGraph(page) {
  if (!topology.isWhole || page.objects.length === page.total) return page.objects;
  const all = await api.objects('links', { count: 120 });
  all.objects.forEach((object) => history.add(all.counted_ns, object));
  return all.objects;
}

async function ofSelected(page, graph) {
  if (!state.selected) {
    panel.nothing('There are no links.');
    return null;
  }
  const known = [...page.objects, ...graph].find((object) => object.name === state.selected);
  if (known) return known;
  try {
    const object = await api.object('links', state.selected);
    history.add(page.counted_ns, object);
    return object;
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    panel.nothing(problem.message);
    state.selected = null;
    return null;
  }
}

async function ofRouters(summary) {
  if (!summary.objects.routers) return;
  const found = await api.objects('routers', { count: MOST_ROUTERS });
  const programs = new Map();
  if (summary.objects.forwarders) {
    const asked = found.objects.slice(0, MOST_WITH_PROGRAMS);
    const answers = await Promise.all(asked.map((router) => api.forwarders(router.name)));
    asked.forEach((router, index) => programs.set(router.name, answers[index]));
  }
  routers.show(found.objects, programs, found.counted_ns);
}

function totals(summary) {
  const before = state.before;
  state.before = summary;
  say(byId('scenario'), summary.scenario);
  const seconds = before ? (summary.elapsed_ns - before.elapsed_ns) / 1e9 : 0;
  const per = (key) => (seconds > 0 ? Math.max(0, summary[key] - before[key]) / seconds : 0);
  const dropped = Object.values(summary.dropped).reduce((all, packets) => all + packets, 0);
  const tiles = [
    ['Running for', clock(summary.elapsed_ns), ''],
    ['Delivered', rate(per('out_bytes') * 8), ''],
    ['Packets', `${count(per('out_packets'))}/s`, ''],
    ['Held now', `${count(summary.held)} pkt`, ''],
    ['Dropped', count(dropped), dropped > (state.dropped ?? dropped) ? 'bad' : ''],
    ['Memory', bytes(summary.pool.used_bytes), ''],
    ['Links', count(summary.objects.links), ''],
  ];
  state.dropped = dropped;
  const root = byId('totals');
  if (root.children.length !== tiles.length) {
    root.replaceChildren(
      ...tiles.map(([title]) =>
        el('div', { class: 'tile' }, el('div', { class: 'faint', text: title }), el('div', { class: 'value' }))),
    );
  }
  tiles.forEach(([, text, mood], index) => {
    say(root.children[index].lastChild, text);
    mark(root.children[index], 'data-state', mood);
  });
}

function verdict(fidelity) {
  const light = byId('light');
  if (!fidelity) return;
  const few = fidelity.packets === 0;
  mark(light, 'data-state', few ? 'unknown' : fidelity.faithful ? 'good' : 'bad');
  say(byId('verdict'), few ? 'No packets yet' : fidelity.faithful ? 'Faithful' : 'Not faithful');
  const late = `${count(fidelity.late)} of ${count(fidelity.packets)} packets late`;
  say(byId('cause'), fidelity.causes?.[0] ?? (few ? '' : late));
  mark(light, 'title', (fidelity.causes ?? []).join('\n'));
}

for (const link of document.querySelectorAll('footer a')) {
  link.addEventListener('click', (event) => {
    if (!hasToken()) return;
    event.preventDefault();
    api.open(link.getAttribute('href').replace(/^v1\//, ''));
  });
}
document.addEventListener('visibilitychange', () => document.hidden || lookSoon());
state.selected = location.hash.length > 1 ? decodeURIComponent(location.hash.slice(1)) : null;
look();
