// The dashboard: asks the instance each second for what is shown, and no more.

import { Problem, api } from './api.js';
import { Charts } from './charts.js';
import { byId, el, mark, say } from './dom.js';
import { bytes, clock, count, rate, time } from './format.js';
import { History } from './history.js';
import { KINDS } from './kinds.js';
import { Objects } from './objects.js';
import { Panel } from './panel.js';
import { MOST_ROUTERS, Routers } from './routers.js';
import { Timeline, isChange } from './timeline.js';
import { Gate, present } from './token.js';
import { MOST_EDGES, MOST_NODES, Topology } from './topology.js';
import { Screen } from './screen.js';

/** Time between two looks. */
const PERIOD_MS = 1000;
/** Least time between two drawings of a part of the graph, whose links change with the order of the table. */
const REDRAW_MS = 5000;

const history = new History();
const charts = new Charts();
const timeline = new Timeline();
const routers = new Routers();
const topology = new Topology(select);
const objects = new Objects(lookSoon, select);
const panel = new Panel((kind, object) => shown(kind, object));
const gate = new Gate(tokenChanged);
const screen = new Screen(lookSoon);

const state = {
  /** The chosen object: its kind and name. */
  selected: fromAddress(),
  timer: 0,
  looking: false,
  again: false,
  known: false,
  /** The process of the run. */
  pid: null,
  locked: false,
  /** What was drawn last: whether it was all, of which query, when, and whether it may be another graph now. */
  graph: { whole: true, query: null, at: 0, stale: true },
};

/** The object that the address names, as in `#links/up.forward`. */
function fromAddress() {
  const [kind, text] = location.hash.slice(1).split('/', 2);
  try {
    return text && Object.hasOwn(KINDS, kind) ? { kind, name: decodeURIComponent(text) } : null;
  } catch {
    return null;
  }
}

function select(kind, name) {
  state.selected = { kind, name };
  const url = new URL(location.href);
  url.hash = `${kind}/${encodeURIComponent(name)}`;
  window.history.replaceState(null, '', url);
  lookSoon();
}

const isSelected = (kind, name) => state.selected?.kind === kind && state.selected.name === name;

/** Shows an object that was just changed, before the next look. */
function shown(kind, object) {
  if (isSelected(kind, object.name)) panel.show(kind, object, history.now(kind, object.name));
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
    state.locked = false;
    byId('trouble').hidden = true;
    gate.pass();
    markShown();
  } catch (problem) {
    failed(problem);
  } finally {
    state.looking = false;
    // Without a token there is nothing to ask for.
    if (!document.hidden && (state.again || !state.locked)) schedule(state.again ? 0 : PERIOD_MS);
  }
}

/** Notes when the page first showed the run, for those who measure it. */
function markShown() {
  if (!performance.getEntriesByName('shown').length) performance.mark('shown');
}

function failed(problem) {
  if (problem.status === 401 && problem.token !== present()) {
    // There is another one since it was sent.
    state.again = true;
    return;
  }
  state.locked = problem.status === 401;
  byId('trouble').hidden = state.locked;
  if (state.locked) gate.ask();
  else say(byId('trouble'), `${problem.message} Trying again.`);
  mark(byId('light'), 'data-state', 'unknown');
  say(byId('verdict'), state.locked ? 'No access' : problem.status ? 'No answer' : 'No connection');
  say(byId('cause'), '');
  if (problem.status) return;
  // What answers next may be another run.
  state.known = false;
  state.objects = null;
  panel.forget();
}

/** Another run has taken the place of the one that was shown. */
function forgetRun() {
  history.forget();
  timeline.forget();
  [state.before, state.dropped, state.objects] = [null, undefined, null];
}

/** What does not change while it runs. */
async function begin() {
  const instance = await api.instance();
  if (state.pid !== instance.pid) forgetRun();
  state.pid = instance.pid;
  say(byId('name'), instance.name);
  say(byId('version'), `Longwire ${instance.version}`);
  document.title = `${instance.name} · Longwire`;
  state.known = true;
}

async function refresh() {
  const kind = objects.kind;
  const wantsPlan = !timeline.isPlanned;
  const [summary, page, events, description] = await Promise.all([
    api.summary(),
    api.objects(kind, objects.query),
    api.events(timeline.after, wantsPlan),
    panel.isDescribed ? null : api.description(),
  ]);
  if (description) panel.describe(description);
  if (summary.elapsed_ns < state.before?.elapsed_ns) {
    // Time that runs backwards is that of another run, whose log was not asked for from its beginning.
    forgetRun();
    state.known = false;
    lookSoon();
    return;
  }
  const others = followObjects(summary);
  if (events.log.some(isChange)) state.graph.stale = true;
  const at = page.counted_ns ?? summary.elapsed_ns;
  page.objects.forEach((object) => history.add(at, kind, object));
  if (!state.selected && page.objects.length) state.selected = { kind, name: page.objects[0].name };
  totals(summary);
  verdict(summary);
  objects.show(kind, page, history, state.selected);
  timeline.take(events, wantsPlan);
  timeline.show(summary.elapsed_ns);
  const links = await ofGraph(summary, kind, page);
  const chosen = await ofSelected([...page.objects, ...links]);
  if (chosen) {
    panel.show(state.selected.kind, chosen, history.now(state.selected.kind, chosen.name));
    const samples = screen.shows('panel') ? history.judged(state.selected.kind, chosen.name) : null;
    if (samples) charts.show(state.selected.kind, samples, timeline.changes);
  }
  await ofRouters(summary);
  if (others) lookSoon();
}

/** What follows from there being other objects than before; answers whether the table shows another kind now. */
function followObjects(summary) {
  const key = JSON.stringify(summary.objects);
  if (state.objects !== key) {
    state.objects = key;
    state.graph = { whole: summary.objects.links <= MOST_EDGES, query: null, at: 0, stale: true };
    timeline.forgetPlan();
  }
  const kind = objects.kind;
  objects.offer(summary.objects);
  return kind !== objects.kind;
}

/** Draws the graph: all of it, or of very much what the links of the table join. Answers the links that it shows. */
async function ofGraph(summary, kind, page) {
  const query = objects.queryOf('links');
  const key = state.graph.whole ? 'all' : JSON.stringify(query);
  const old = !state.graph.whole && query.sort && performance.now() > state.graph.at + REDRAW_MS;
  if (state.graph.query !== key || state.graph.stale || old) {
    const graph = await api.topology(state.graph.whole ? null : query);
    state.graph.whole &&= graph.nodes.length <= MOST_NODES;
    topology.show(graph, !state.graph.whole);
    Object.assign(state.graph, { query: key, at: performance.now(), stale: false });
  }
  const links = await linksOf(summary, kind === 'links' ? page : null, query);
  for (const link of links) topology.update(link, history.now('links', link.name), state.selected);
  return links;
}

/** The links of the graph, all or those of a query, with their counters: those of the table if these are they. */
async function linksOf(summary, listed, query) {
  if (!summary.objects.links || !screen.shows('topology')) return [];
  const { whole } = state.graph;
  if (listed && (!whole || listed.objects.length === summary.objects.links)) return listed.objects;
  const all = await api.objects('links', whole ? { count: MOST_EDGES } : query);
  all.objects.forEach((object) => history.add(all.counted_ns, 'links', object));
  return all.objects;
}

async function ofSelected(listed) {
  if (!state.selected) {
    panel.nothing(objects.kind, 'There is nothing to choose.');
    return null;
  }
  const { kind, name } = state.selected;
  const known = listed.find((object) => object.name === name && object.kind === KINDS[kind].word);
  if (known) return known;
  try {
    const { object, at } = await api.one(kind, name);
    if (!object) throw new Problem(`There is no ${KINDS[kind].word} "${name}" any more.`, 404);
    history.add(at, kind, object);
    return object;
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    panel.nothing(kind, problem.message);
    state.selected = null;
    return null;
  }
}

async function ofRouters(summary) {
  routers.offer(summary.objects.routers);
  if (!summary.objects.routers || !screen.shows('routers')) return;
  const page = await api.objects('routers', { count: MOST_ROUTERS });
  const programs = new Map();
  if (summary.objects.forwarders) {
    const answers = await Promise.all(page.objects.map((router) => programsOf(router.name)));
    page.objects.forEach((router, index) => programs.set(router.name, answers[index]));
  }
  routers.show(page, programs);
}

/** The programs of a router; null if it has gone meanwhile. */
async function programsOf(router) {
  try {
    return await api.forwarders(router);
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    return null;
  }
}

function totals(summary) {
  const before = state.before;
  // Counters of very many links may be older than a look: then there is nothing new to show.
  if (before?.elapsed_ns === summary.elapsed_ns) return;
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

/** A verdict in a few words. Faults make one without packets, too. */
function wordOf(fidelity) {
  if (!fidelity) return 'no verdict yet';
  if (!fidelity.faithful) return 'not faithful';
  return fidelity.packets === 0 ? 'no packets' : 'faithful';
}

/** The light: of the whole run, and of its last window where that is another. */
function verdict({ fidelity, window }) {
  const light = byId('light');
  const word = wordOf(fidelity);
  mark(light, 'data-state', { faithful: 'good', 'not faithful': 'bad' }[word] ?? 'unknown');
  say(byId('verdict'), `${word[0].toUpperCase()}${word.slice(1)}`);
  if (!fidelity) {
    say(byId('cause'), '');
    mark(light, 'title', '');
    return;
  }
  const late = `${count(fidelity.late)} of ${count(fidelity.packets)} packets late`;
  const lately = window && wordOf(window.last.fidelity) !== word;
  const last = window && `the last ${time(window.length_ns)}: ${wordOf(window.last.fidelity)}`;
  const cause = fidelity.causes?.[0] ?? (fidelity.packets === 0 ? '' : late);
  say(byId('cause'), lately ? `${last}; ${cause}` : cause);
  const windows = window ? [`${last}; ${window.faithful} of ${window.judged} windows faithful`] : [];
  mark(light, 'title', [...windows, ...(fidelity.causes ?? [])].join('\n'));
}

for (const link of document.querySelectorAll('footer a')) {
  link.addEventListener('click', (event) => {
    if (present() === null) return;
    event.preventDefault();
    api.open(link.getAttribute('href').replace(/^v1\//, '')).catch(failed);
  });
}
addEventListener('hashchange', () => {
  state.selected = fromAddress() ?? state.selected;
  if (state.selected) objects.turnTo(state.selected.kind);
  lookSoon();
});
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    clearTimeout(state.timer);
    return;
  }
  // Meanwhile there may be another run.
  state.known = false;
  lookSoon();
});
if (state.selected) objects.turnTo(state.selected.kind);
look();
