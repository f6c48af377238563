// Charts of one object over the last minutes, by uPlot.

import { bytes, clock } from './format.js';
import { KINDS } from './kinds.js';
import { byId, el, say } from './dom.js';

const HEIGHT = 132;
/** Distances between marks of the time, in seconds: its labels have no fractions. */
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600];
const SERIES = ['--series-a', '--series-b', '--series-c', '--series-d', '--series-e'];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const seconds = (ns) => clock(ns * 1e9);

/** A chart of several series with one scale. */
class Chart {
  #plot = null;
  events = [];
  #names = [];

  /** `least` is the least height of its scale. */
  constructor(title, unit, least) {
    this.unit = unit;
    this.least = least;
    this.keys = el('span', { class: 'keys' });
    this.body = el('div');
    this.root = el('div', { class: 'chart' }, el('h3', {}, el('span', { text: title }), this.keys), this.body);
  }

  /** Shows columns of numbers by name; the first column is the time in seconds. At the times of `events` there are
   * lines. */
  show(at, columns, events) {
    this.events = events;
    const names = columns.map(([name]) => name);
    if (!this.#plot || names.join('\n') !== this.#names.join('\n')) this.#build(names);
    this.#plot.setData([at, ...columns.map(([, values]) => values)]);
    columns.forEach(([name, values], index) => {
      const last = values.at(-1);
      say(this.keys.children[index].lastChild, `${name} ${last == null ? '–' : this.unit(last)}`);
    });
  }

  #build(names) {
    this.#plot?.destroy();
    this.#names = names;
    this.keys.replaceChildren(
      ...names.map((_, index) => el('span', { class: `s${index}` }, el('i'), el('span'))),
    );
    const [grid, text] = [colour('--line'), colour('--faint')];
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: '11px system-ui' };
    this.#plot = new globalThis.uPlot(
      {
        width: this.width,
        height: HEIGHT,
        hooks: { draw: [(plot) => this.#drawEvents(plot)] },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'charts' } },
        legend: { show: false },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(this.least, (high ?? 0) * 1.12)] } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(seconds), incrs: TICKS, size: 26 },
          { ...axis, values: (_, ticks) => ticks.map((tick) => this.unit(tick)), size: 74, ...this.steps },
        ],
        series: [
          {},
          ...names.map((name, index) => ({
            label: name,
            stroke: colour(SERIES[index]),
            width: 2,
            points: { show: false },
            fill: names.length === 1 ? `${colour(SERIES[index])}22` : undefined,
          })),
        ],
      },
      [[], ...names.map(() => [])],
      this.body,
    );
  }

  #drawEvents({ ctx, bbox, scales, valToPos }) {
    ctx.save();
    ctx.strokeStyle = colour('--accent');
    ctx.globalAlpha = 0.6;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    for (const at of this.events.filter((time) => time >= scales.x.min && time <= scales.x.max)) {
      const x = Math.round(valToPos(at, 'x', true)) + 0.5;
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  /** Bytes are divided by powers of two. */
  get steps() {
    return this.unit === bytes ? { incrs: Array.from({ length: 40 }, (_, power) => 2 ** power) } : {};
  }

  get width() {
    return Math.max(200, Math.floor(this.body.clientWidth || this.root.clientWidth || 320));
  }

  resize() {
    if (this.#plot) this.#plot.setSize({ width: this.width, height: HEIGHT });
  }

  /** Drawn anew, in other colours. */
  repaint() {
    this.#plot?.destroy();
    this.#plot = null;
  }
}

/** A column for each name; where there are more names than colours, the last is for all others together. */
function columnsOf(names, parts) {
  const own = names.length > SERIES.length ? names.slice(0, SERIES.length - 1) : names;
  const others = names.slice(own.length);
  const columns = own.map((name) => [name, parts.map((part) => part[name] ?? 0)]);
  const rest = (part) => others.reduce((sum, name) => sum + (part[name] ?? 0), 0);
  return others.length ? [...columns, ['others', parts.map(rest)]] : columns;
}

/** The charts of the kinds of objects. */
export class Charts {
  #root = byId('charts');
  #shown = null;
  #all = [];

  constructor() {
    new ResizeObserver(() => this.#all.forEach(({ chart }) => chart.resize())).observe(this.#root);
    addEventListener('theme', () => this.#all.forEach(({ chart }) => chart.repaint()));
  }

  /** Shows samples of an object of this kind, and when something was changed, in seconds. */
  show(kind, samples, events) {
    if (this.#shown !== kind) this.#change(kind);
    this.#root.hidden = this.#all.length === 0;
    const at = samples.map((sample) => sample.at);
    for (const { chart, lines, by } of this.#all) {
      if (by) {
        const parts = samples.map((sample) => sample[by]);
        const names = [...new Set(parts.flatMap((part) => Object.keys(part)))];
        chart.root.hidden = names.length === 0;
        if (names.length) chart.show(at, columnsOf(names, parts), events);
      } else {
        chart.show(at, lines.map(([name, key]) => [name, samples.map((sample) => sample[key] ?? null)]), events);
      }
    }
  }

  #change(kind) {
    this.#shown = kind;
    this.#all.forEach(({ chart }) => chart.repaint());
    this.#all = KINDS[kind].charts.map(({ title, unit, least, lines, by }) =>
      ({ chart: new Chart(title, unit, least), lines, by }));
    this.#root.replaceChildren(...this.#all.map(({ chart }) => chart.root));
  }
}
