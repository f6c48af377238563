// Scheduled changes on a line with the present time, and what has happened. A cursor, by pointer or arrow keys, says
// what comes when.

import { clock } from './format.js';
import { byId, el, mark, say, svg } from './dom.js';

/** Scheduled changes that are drawn, and lines of the log. */
const MOST_MARKS = 200;
const MOST_LINES = 200;
const EDGE = 14;
const MIDDLE = 22;
/** How near the cursor has to be to a change, in pixels. */
const NEAR = 6;

export class Timeline {
  #root = byId('timeline');
  #log = byId('log');
  #planned = [];
  /** Whether what is scheduled may be something else now. */
  #stale = true;
  #entries = [];
  /** What is drawn, by time, and the first of it that is to come. */
  #marks = [];
  #next = null;
  #elapsed = 0;
  #end = 0;
  #drawn = null;
  /** The time at the cursor. */
  #cursor = null;
  after = 0;

  constructor() {
    this.#root.addEventListener('pointermove', (event) => {
      const at = (event.clientX - this.#root.getBoundingClientRect().left - EDGE) / (this.#width - 2 * EDGE);
      this.#point(Math.min(1, Math.max(0, at)) * this.#end);
    });
    this.#root.addEventListener('pointerleave', () => this.#point(null));
    this.#root.addEventListener('blur', () => {
      mark(byId('timeline-note'), 'aria-live', 'off');
      this.#point(null);
    });
    this.#root.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.#point(null);
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.#step(step);
    });
  }

  get #width() {
    return Math.max(240, this.#root.clientWidth);
  }

  /** When something was changed, in seconds. */
  get changes() {
    return this.#entries.filter(isChange).map((entry) => entry.at_ns / 1e9);
  }

  get isPlanned() {
    return !this.#stale;
  }

  /** What is scheduled may be something else now. */
  forgetPlan() {
    this.#stale = true;
  }

  /** Forgets all: what comes is of another run. */
  forget() {
    [this.#planned, this.#entries, this.#next] = [[], [], null];
    [this.after, this.#stale] = [0, true];
    this.#log.replaceChildren();
  }

  /** Takes the entries of the log that are new, and what is scheduled if that was asked for. */
  take({ planned, log, last }, hasPlan) {
    if (hasPlan) [this.#planned, this.#stale] = [planned, false];
    this.after = last;
    if (!log.length) return;
    // Scheduled changes are noted when somebody looks, hence after what came later.
    this.#entries.push(...log);
    this.#entries.sort((one, other) => other.at_ns - one.at_ns || other.number - one.number);
    this.#entries.length = Math.min(this.#entries.length, MOST_LINES);
    this.#log.replaceChildren(...this.#entries.map((entry) => line(entry.at_ns, entry.kind, entry.what)));
  }

  show(elapsed) {
    this.#elapsed = elapsed;
    const all = this.#planned.flatMap((event) => times(event, elapsed)).sort((one, other) => one.at - other.at);
    const past = all.filter((one) => one.at <= elapsed).length;
    // What is to come goes before what is past.
    const from = Math.max(0, Math.min(past, all.length - MOST_MARKS));
    this.#marks = all.slice(from, from + MOST_MARKS);
    const next = all[past] ?? null;
    // Of very many, those that come first are listed: there may be others behind them.
    if (this.#next && !next) this.forgetPlan();
    this.#next = next;
    const wanted = Math.max(...this.#marks.map((mark) => mark.at + mark.over), elapsed, 10e9) * 1.06;
    // The scale moves in steps, so that the marks stand still between them.
    if (wanted > this.#end || wanted < this.#end / 2) this.#end = wanted * 1.15;
    this.#draw();
    this.#move();
    this.#say();
  }

  #x(ns) {
    return EDGE + (Math.min(ns, this.#end) / this.#end) * (this.#width - 2 * EDGE);
  }

  /** Scale and marks, if they are others than before. */
  #draw() {
    const [width, marks] = [this.#width, this.#marks];
    const key = [width, this.#end, ...marks.map((one) => `${one.at} ${one.at <= this.#elapsed}`)].join();
    if (this.#drawn?.key === key) return;
    const x = (ns) => this.#x(ns);
    this.#root.setAttribute('viewBox', `0 0 ${width} 58`);
    const level = { y1: MIDDLE, y2: MIDDLE };
    const past = svg('line', { class: 'past', x1: EDGE, ...level });
    const now = svg('line', { class: 'now', y1: 6, y2: 38 });
    const cursor = svg('line', { class: 'cursor', y1: 2, y2: 42 });
    const text = { y: 52 };
    const [clockNow, first, last] = ['middle', 'start', 'end'].map((anchor) => svg('text', { ...text, 'text-anchor': anchor }));
    first.setAttribute('x', EDGE);
    last.setAttribute('x', width - EDGE);
    say(first, '0:00');
    say(last, clock(this.#end));
    this.#root.replaceChildren(
      svg('line', { class: 'track', x1: EDGE, x2: width - EDGE, ...level }),
      past,
      ...marks.filter((one) => one.over).map((one) =>
        svg('line', { class: 'span', x1: x(one.at), x2: x(one.at + one.over), ...level })),
      ...marks.map((one) => {
        const circle = svg('circle', { class: `event${one.at <= this.#elapsed ? ' over' : ''}`, cx: x(one.at), cy: MIDDLE, r: 5 });
        circle.append(svg('title', { text: `${clock(one.at)}  ${one.what}` }));
        return circle;
      }),
      cursor,
      now,
      clockNow,
      first,
      last,
    );
    this.#drawn = { key, past, now, cursor, clockNow, first, last };
  }

  /** The present time, and the cursor. */
  #move() {
    const { past, now, cursor, clockNow, first, last } = this.#drawn;
    const [width, at] = [this.#width, this.#x(this.#elapsed)];
    mark(past, 'x2', String(at));
    mark(now, 'x1', String(at));
    mark(now, 'x2', String(at));
    mark(clockNow, 'x', String(Math.min(Math.max(at, 20), width - 20)));
    say(clockNow, clock(this.#elapsed));
    mark(first, 'visibility', at > 70 ? 'visible' : 'hidden');
    mark(last, 'visibility', at < width - 90 ? 'visible' : 'hidden');
    const there = this.#cursor !== null;
    mark(cursor, 'visibility', there ? 'visible' : 'hidden');
    if (!there) return;
    mark(cursor, 'x1', String(this.#x(this.#cursor)));
    mark(cursor, 'x2', String(this.#x(this.#cursor)));
  }

  #point(ns) {
    this.#cursor = ns;
    if (!this.#drawn) return;
    this.#move();
    this.#say();
  }

  /** To the next change, or the one before. */
  #step(step) {
    const from = this.#cursor ?? this.#elapsed;
    const times = this.#marks.map((one) => one.at).sort((one, other) => one - other);
    const next = step > 0 ? times.find((at) => at > from) : times.findLast((at) => at < from);
    if (next === undefined) return;
    // Only what somebody asks for by keys is read out.
    mark(byId('timeline-note'), 'aria-live', 'polite');
    this.#point(next);
  }

  /** What is at the cursor; without one, what comes next. */
  #say() {
    const note = byId('timeline-note');
    if (this.#cursor !== null) {
      const distance = (one) => Math.abs(this.#x(one.at) - this.#x(this.#cursor));
      const near = this.#marks.filter((one) => distance(one) <= NEAR);
      near.sort((one, other) => distance(one) - distance(other));
      const what = near.map((one) => `${clock(one.at)} ${one.what}`).slice(0, 3).join('; ');
      say(note, what || clock(this.#cursor));
      return;
    }
    const next = this.#next;
    const nothing = this.#planned.length ? 'nothing more is scheduled' : 'no scheduled changes';
    say(note, next ? `next in ${clock(next.at - this.#elapsed)}: ${next.what}` : nothing);
  }
}

/** Whether an entry of the log is a change of the run, or of what is in it. */
export const isChange = ({ kind }) => kind === 'change' || kind === 'scheduled';

/** When a change happens: of one that is repeated, around now. */
function times({ at_ns: at, every_ns: every, times: most, over_ns: over = 0, what }, elapsed) {
  if (!every) return [{ at, over, what }];
  const wanted = Math.min(Math.floor((elapsed - at) / every) - 20, (most ?? Infinity) - 41);
  const first = Math.max(0, wanted);
  const last = Math.min(most ?? Infinity, first + 41);
  const all = [];
  for (let number = first; number < last; number += 1) all.push({ at: at + number * every, over, what });
  return all;
}

function line(at, kind, what) {
  return el('li', { 'data-kind': kind }, el('time', { text: clock(at) }), el('span', { text: what }));
}
