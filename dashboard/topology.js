// The graph: nodes laid out once, links coloured by their load.

import { rate, time } from './format.js';
import { delayOf, load } from './kinds.js';
import { byId, mark, say, svg } from './dom.js';

/** Most nodes and links that are drawn. */
export const MOST_NODES = 60;
export const MOST_EDGES = 120;
/** The objects that nodes are; a host is its port. */
const KIND_OF = { host: 'ports', port: 'ports', router: 'routers' };
/** Nodes up to which names fit into them. */
const MOST_NAMED_INSIDE = 16;
/** The shortest link that has a label, in pixels. */
const LEAST_LABELLED = 100;
const HEIGHT = 300;
/** Half the width and height of a label. */
const LABEL = { w: 56, h: 7 };
/** How strongly nodes are drawn to the middle. */
const GRAVITY = 0.05;

export class Topology {
  #graph = null;
  #shown = null;
  #edges = new Map();
  /** What was last shown of each link, for when it is drawn anew. */
  #known = new Map();
  #select;
  #part = false;

  /** `select` is called with the kind and name of what is chosen. */
  constructor(select) {
    this.#select = select;
    this.root = byId('topology');
    new ResizeObserver(() => this.#draw()).observe(this.root);
  }

  /** Draws a graph: all there is, or a `part`, what the links of the table join. The same is not drawn again. */
  show(graph, part) {
    const key = JSON.stringify([graph, part]);
    if (this.#shown === key) return;
    this.#shown = key;
    [this.#graph, this.#part] = [bounded(graph), part || graph.nodes.length > MOST_NODES];
    this.#known.clear();
    // A few nodes in a row need no more.
    this.root.classList.toggle('low', this.#graph.nodes.length <= 3);
    this.#draw();
  }

  #draw() {
    const graph = this.#graph;
    if (!graph) return;
    const width = Math.max(280, this.root.clientWidth);
    const height = this.root.clientHeight || HEIGHT;
    this.root.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const places = arranged(graph, width, height);
    const inside = graph.nodes.length <= MOST_NAMED_INSIDE;
    for (const node of graph.nodes) Object.assign(places.get(node.name), extent(node, inside));
    this.#edges.clear();
    const wires = graph.wires.map(([one, other]) => {
      const [a, b] = [places.get(one), places.get(other)];
      return a && b ? svg('path', { class: 'wire', d: `M${a.x} ${a.y}L${b.x} ${b.y}` }) : '';
    });
    const withLabels = graph.links.length <= 16 && width > 420;
    const paths = graph.links.map((link) => {
      const [from, to] = [places.get(link.from), places.get(link.to)];
      return from && to ? curve(from, to, link.index, link.parallel) : null;
    });
    // Labels stay clear of nodes, of one another, and of other links' lines.
    const lines = paths.flatMap((path) => path?.points.map((point) => ({ ...point, w: 3, h: 3, path })) ?? []);
    const taken = withLabels ? [...places.values(), ...lines] : null;
    const edges = graph.links.map((link, index) => paths[index] && this.#edge(link, paths[index], taken));
    const nodes = graph.nodes.map((node) => this.#node(node, places.get(node.name), inside));
    for (const link of graph.links) {
      const known = this.#known.get(link.name);
      if (known) this.update(...known);
    }
    this.root.replaceChildren(...wires.filter(Boolean), ...edges.filter(Boolean), ...nodes);
    const note = this.#part ? `what ${graph.links.length} of the links join` : '';
    const nothing = graph.links.length ? note : 'no links';
    say(byId('topology-note'), nothing);
  }

  /** A link; its label has a place that is not `taken`, if there is one. */
  #edge(link, path, taken) {
    const place = taken && path.length > LEAST_LABELLED ? free(path, taken) : null;
    const label = svg('text', { class: 'label', x: place?.x ?? 0, y: place ? place.y + 4 : 0 });
    const edge = svg(
      'g',
      { class: 'edge', tabindex: 0, role: 'button', 'data-name': link.name },
      svg('path', { class: 'grip', d: path.d }),
      svg('path', { class: 'line', d: path.d }),
      svg('path', { class: 'tip', d: path.tip }),
      ...(place ? [label] : []),
    );
    this.#choosable(edge, 'links', link.name);
    this.#edges.set(link.name, { edge, label });
    return edge;
  }

  #node(node, place, inside) {
    const kind = KIND_OF[node.kind];
    const group = drawn(node, place, inside);
    if (kind) {
      group.setAttribute('tabindex', 0);
      group.setAttribute('role', 'button');
      this.#choosable(group, kind, node.name);
    }
    return group;
  }

  #choosable(shape, kind, name) {
    shape.addEventListener('click', () => this.#select(kind, name));
    shape.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      this.#select(kind, name);
    });
  }

  /** Shows a link's load. */
  update(object, now, selected) {
    const drawn = this.#edges.get(object.name);
    if (!drawn) return;
    this.#known.set(object.name, [object, now, selected]);
    mark(drawn.edge, 'data-load', String(load(object, now)));
    mark(drawn.edge, 'aria-pressed', String(selected?.kind === 'links' && selected.name === object.name));
    const delay = delayOf(object.settings);
    const carries = rate(now?.out ?? 0);
    say(drawn.label, [carries, delay ? time(delay) : ''].filter(Boolean).join(' · '));
    const loss = now?.dropped ? `, drops ${Math.round(now.dropped)} packets/s` : '';
    mark(drawn.edge, 'aria-label', `link ${object.name}: ${carries} of ${object.settings.rate ?? 'unlimited'}${loss}`);
  }
}

/** A graph as far as it is drawn: the first nodes, and what joins them. */
function bounded({ nodes, links, wires }) {
  const shown = nodes.slice(0, MOST_NODES);
  const has = new Set(shown.map((node) => node.name));
  return {
    nodes: shown,
    links: links.filter(({ from, to }) => has.has(from) && has.has(to)).slice(0, MOST_EDGES),
    wires: wires.filter(([one, other]) => has.has(one) && has.has(other)),
  };
}

/** A name as far as it is drawn. */
const brief = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);

/** Half the width and height of a node. */
function extent(node, inside) {
  return inside ? { w: Math.max(20, brief(node.name).length * 3.8 + 12), h: 15 } : { w: 12, h: 10 };
}

function drawn(node, place, inside) {
  const { w, h } = place;
  const corner = { router: h, bridge: 3 }[node.kind] ?? 8;
  const shape = svg('rect', { class: 'shape', x: -w, y: -h, width: 2 * w, height: 2 * h, rx: corner });
  const title = [`${node.kind} ${node.name}`, ...node.addresses].join('\n');
  return svg(
    'g',
    { class: 'node', 'data-kind': node.kind, transform: `translate(${place.x} ${place.y})` },
    svg('title', { text: title }),
    shape,
    svg('text', { y: inside ? 4 : 23, text: brief(node.name) }),
  );
}

/** The line of a link, bent aside so that those between the same two nodes are told one from the other. */
function curve(from, to, index, parallel) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [-dy / length, dx / length];
  const bend = parallel > 1 ? Math.min(26, 90 / parallel, 0.13 * length) * (index + 1) : 0;
  // From the edge of one box to the edge of the other.
  const gap = ({ w, h }) => 4 + Math.min(w / Math.max(1e-3, Math.abs(dx / length)), h / Math.max(1e-3, Math.abs(dy / length)));
  const start = { x: from.x + (dx / length) * gap(from), y: from.y + (dy / length) * gap(from) };
  const end = { x: to.x - (dx / length) * (gap(to) + 6), y: to.y - (dy / length) * (gap(to) + 6) };
  const control = { x: (start.x + end.x) / 2 + nx * bend * 2, y: (start.y + end.y) / 2 + ny * bend * 2 };
  /** A point of the curve, by the share of it that is behind; or so far beside it. */
  const point = (share, away = 0) => {
    const [a, b, c] = [(1 - share) ** 2, 2 * (1 - share) * share, share ** 2];
    return {
      x: a * start.x + b * control.x + c * end.x + nx * away,
      y: a * start.y + b * control.y + c * end.y + ny * away,
    };
  };
  // A label is wider than high.
  const beside = (share, side) => point(share, side * (12 + Math.abs(nx) * (LABEL.w - 16)));
  const points = Array.from({ length: 17 }, (_, index) => point((index + 1) / 18));
  // The arrow points along the end of the curve.
  const [tx, ty] = [end.x - control.x, end.y - control.y];
  const tip = Math.hypot(tx, ty) || 1;
  const [ux, uy] = [tx / tip, ty / tip];
  const at = (along, across) => `${end.x + ux * along - uy * across} ${end.y + uy * along + ux * across}`;
  return {
    d: `M${start.x} ${start.y}Q${control.x} ${control.y} ${end.x} ${end.y}`,
    tip: `M${at(7, 0)}L${at(-3, 5)}L${at(-3, -5)}Z`,
    beside,
    points,
    length: Math.hypot(end.x - start.x, end.y - start.y),
  };
}

/** A place for a label beside a curve: the one where least is already. It is taken then. */
function free(path, taken) {
  const crowd = (one) => {
    const near = taken.filter((other) =>
      other.path !== path && Math.abs(one.x - other.x) < LABEL.w + other.w && Math.abs(one.y - other.y) < LABEL.h + other.h);
    // Better across a line than on a node or another label.
    return near.reduce((sum, other) => sum + (other.path ? 1 : 20), 0);
  };
  const places = [1, -1].flatMap((side) => [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].map((share) => path.beside(share, side)));
  const crowds = places.map(crowd);
  const place = { ...LABEL, ...places[crowds.indexOf(Math.min(...crowds))] };
  taken.push(place);
  return place;
}

/** Places of the nodes: springs along links, and all others pushed apart; the same graph gives the same picture. */
function arranged(graph, width, height) {
  const nodes = graph.nodes.map((node, index) => {
    const angle = Math.PI + (2 * Math.PI * index) / Math.max(1, graph.nodes.length);
    return { name: node.name, x: Math.cos(angle), y: 0.5 * Math.sin(angle) };
  });
  const places = new Map(nodes.map((node) => [node.name, node]));
  const pairs = new Map();
  const between = (from, to) => pairs.get(`${from}\n${to}`) ?? 0;
  for (const link of graph.links) {
    link.index = between(link.from, link.to);
    pairs.set(`${link.from}\n${link.to}`, link.index + 1);
  }
  for (const link of graph.links) link.parallel = between(link.from, link.to) + between(link.to, link.from);
  // Each pair pulls once; links, which have labels, less than wires.
  const joined = new Map(graph.links.map(({ from, to }) => [[from, to].sort().join('\n'), [from, to, 0.06]]));
  graph.wires.forEach(([one, other], index) => joined.set(index, [one, other, 0.25]));
  for (let round = 0; round < 240; round += 1) {
    const heat = 0.12 * (1 - round / 240);
    // What nothing joins would part without end.
    for (const node of nodes) [node.fx, node.fy] = [-GRAVITY * node.x, -GRAVITY * node.y];
    for (let one = 0; one < nodes.length; one += 1) {
      for (let other = one + 1; other < nodes.length; other += 1) push(nodes[one], nodes[other]);
    }
    for (const [one, other, strength] of joined.values()) pull(places.get(one), places.get(other), strength);
    for (const node of nodes) {
      const force = Math.hypot(node.fx, node.fy) || 1;
      const step = Math.min(force, heat);
      node.x += (node.fx / force) * step;
      node.y += (node.fy / force) * step;
    }
  }
  fit(nodes, width, height);
  return places;
}

function push(one, other) {
  const [dx, dy] = [one.x - other.x || 0.01, one.y - other.y || 0.01];
  const force = 0.09 / (dx * dx + dy * dy + 0.01);
  one.fx += dx * force;
  one.fy += dy * force;
  other.fx -= dx * force;
  other.fy -= dy * force;
}

function pull(one, other, strength) {
  if (!one || !other) return;
  const [dx, dy] = [one.x - other.x, one.y - other.y];
  const force = strength * Math.hypot(dx, dy);
  one.fx -= dx * force;
  one.fy -= dy * force;
  other.fx += dx * force;
  other.fy += dy * force;
}

function fit(nodes, width, height) {
  const [left, right] = [Math.min(...nodes.map((n) => n.x)), Math.max(...nodes.map((n) => n.x))];
  const [top, bottom] = [Math.min(...nodes.map((n) => n.y)), Math.max(...nodes.map((n) => n.y))];
  const edge = { x: Math.min(90, width * 0.16), y: 48 };
  // A flat graph stays flat, and so does a single node.
  const flat = bottom - top <= 0.15 * (right - left);
  for (const node of nodes) {
    node.x = right > left ? edge.x + ((node.x - left) / (right - left)) * (width - 2 * edge.x) : width / 2;
    node.y = flat ? height / 2 - 6 : edge.y + ((node.y - top) / (bottom - top)) * (height - 2 * edge.y) - 6;
  }
}
