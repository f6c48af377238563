// Scheduled changes on a line with the present time, and what has happened.

import { clock } from './format.js';
import { byId, el, say, svg } from './dom.js';

/** Occurrences of a repeated change that are drawn, and lines of the log. */
const MOST_MARKS = 200;
const MOST_LINES = 200;
const EDGE = 14;
const MIDDLE = 22;

export class Timeline {
  #root = byId('timeline');
  #log = byId('log');
  #planned = [];
  #entries = [];
  #end = 0;
  after = 0;

  /** Takes what is scheduled, and the entries of the log that are new. */
  take({ planned, log, last }) {
    this.#planned = planned;
    // A number that runs backwards is that of another run.
    if (last < this.after) this.#entries = [];
    this.after = last;
    if (!log.length) return;
    // Scheduled changes are noted when somebody looks, hence after what came later.
    this.#entries.push(...log);
    this.#entries.sort((one, other) => other.at_ns - one.at_ns || other.number - one.number);
    this.#entries.length = Math.min(this.#entries.length, MOST_LINES);
    this.#log.replaceChildren(...this.#entries.map((entry) => line(entry.at_ns, entry.kind, entry.what)));
  }

  show(elapsed) {
    const width = Math.max(240, this.#root.clientWidth);
    const marks = this.#planned.flatMap((event) => times(event, elapsed)).slice(0, MOST_MARKS);
    const wanted = Math.max(...marks.map((mark) => mark.at + mark.over), elapsed, 10e9) * 1.06;
    // The scale moves in steps, so that the marks stand still between them.
    if (wanted > this.#end || wanted < this.#end / 2) this.#end = wanted * 1.15;
    const x = (ns) => EDGE + (Math.min(ns, this.#end) / this.#end) * (width - 2 * EDGE);
    this.#root.setAttribute('viewBox', `0 0 ${width} 58`);
    const now = x(elapsed);
    const shapes = [
      svg('line', { class: 'track', x1: EDGE, x2: width - EDGE, y1: MIDDLE, y2: MIDDLE }),
      svg('line', { class: 'past', x1: EDGE, x2: now, y1: MIDDLE, y2: MIDDLE }),
      ...marks.filter((mark) => mark.over).map((mark) =>
        svg('line', { class: 'span', x1: x(mark.at), x2: x(mark.at + mark.over), y1: MIDDLE, y2: MIDDLE })),
      ...marks.map((mark) => {
        const past = mark.at <= elapsed ? ' over' : '';
        const circle = svg('circle', { class: `event${past}`, cx: x(mark.at), cy: MIDDLE, r: 5 });
        circle.append(svg('title', { text: `${clock(mark.at)}  ${mark.what}` }));
        return circle;
      }),
      svg('line', { class: 'now', x1: now, x2: now, y1: 6, y2: 38 }),
      svg('text', { x: Math.min(Math.max(now, 20), width - 20), y: 52, 'text-anchor': 'middle', text: clock(elapsed) }),
    ];
    if (now > 70) shapes.push(svg('text', { x: EDGE, y: 52, 'text-anchor': 'start', text: '0:00' }));
    if (now < width - 90) shapes.push(svg('text', { x: width - EDGE, y: 52, 'text-anchor': 'end', text: clock(this.#end) }));
    this.#root.replaceChildren(...shapes);
    const next = marks.find((mark) => mark.at > elapsed);
    const nothing = this.#planned.length ? 'nothing more is scheduled' : 'no scheduled changes';
    say(byId('timeline-note'), next ? `next in ${clock(next.at - elapsed)}: ${next.what}` : nothing);
  }
}

/** When a change happens: of an endless one, around now. */
function times({ at_ns: at, every_ns: every, times: most, over_ns: over = 0, what }, elapsed) {
  if (!every) return [{ at, over, what }];
  const first = Math.max(0, Math.floor((elapsed - at) / every) - 20);
  const last = Math.min(most ?? Infinity, first + 41);
  const all = [];
  for (let number = first; number < last; number += 1) all.push({ at: at + number * every, over, what });
  return all;
}

function line(at, kind, what) {
  return el('li', { 'data-kind': kind }, el('time', { text: clock(at) }), el('span', { text: what }));
}
