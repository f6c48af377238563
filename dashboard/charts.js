// Charts of one link over the last minutes, by uPlot.

import { bytes, clock, rate, time } from './format.js';
import { byId, el, say } from './dom.js';

const HEIGHT = 132;
const SERIES = ['--series-a', '--series-b', '--series-c', '--series-d', '--series-e'];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const seconds = (ns) => clock(ns * 1e9);

/** A chart of several series with one scale. */
class Chart {
  #plot = null;
  #names = [];

  /** `least` is the least height of its scale. */
  constructor(title, unit, least) {
    this.unit = unit;
    this.least = least;
    this.keys = el('span', { class: 'keys' });
    this.body = el('div');
    this.root = el('div', { class: 'chart' }, el('h3', {}, el('span', { text: title }), this.keys), this.body);
  }

  /** Shows columns of numbers by name; the first column is the time in seconds. */
  show(at, columns) {
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
        cursor: { y: false, drag: { x: false, y: false } },
        legend: { show: false },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(this.least, (high ?? 0) * 1.12)] } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(seconds), size: 26 },
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

const packets = (number) => `${number >= 10 ? Math.round(number) : Number(number.toFixed(1))}/s`;

export class Charts {
  constructor() {
    this.rates = new Chart('Rate', rate, 1000);
    this.delay = new Chart('One-way delay, from delay and queue', time, 1e6);
    this.queue = new Chart('Queue', bytes, 3000);
    this.drops = new Chart('Drops by reason', packets, 1);
    this.all = [this.rates, this.delay, this.queue, this.drops];
    const root = byId('charts');
    root.append(...this.all.map((chart) => chart.root));
    new ResizeObserver(() => this.all.forEach((chart) => chart.resize())).observe(root);
    addEventListener('theme', () => this.all.forEach((chart) => chart.repaint()));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () =>
      this.all.forEach((chart) => chart.repaint()),
    );
  }

  show(samples) {
    const at = samples.map((sample) => sample.at);
    const column = (read) => samples.map(read);
    this.rates.show(at, [
      ['in', column((sample) => sample.in)],
      ['out', column((sample) => sample.out)],
    ]);
    const delays = column((sample) => sample.delay);
    this.delay.show(at, [
      ['now', delays],
      ['median', quantiles(delays, 0.5)],
      ['99 %', quantiles(delays, 0.99)],
    ]);
    this.queue.show(at, [['waiting', column((sample) => sample.queue)]]);
    const reasons = [...new Set(samples.flatMap((sample) => Object.keys(sample.drops)))].slice(0, SERIES.length);
    this.drops.root.hidden = reasons.length === 0;
    if (reasons.length) {
      this.drops.show(at, reasons.map((reason) => [reason, column((sample) => sample.drops[reason] ?? 0)]));
    }
  }
}

/** Samples behind each quantile: a minute's. */
const WINDOW = 60;

function quantiles(values, share) {
  return values.map((_, index) => {
    const window = values.slice(Math.max(0, index + 1 - WINDOW), index + 1).filter((value) => value != null);
    if (!window.length) return null;
    window.sort((one, other) => one - other);
    return window[Math.min(window.length - 1, Math.floor(share * window.length))];
  });
}
