// The last minutes of the objects that are shown: rates from counters, queues and drops.

import { SAMPLES } from './kinds.js';

/** Seconds for which samples of an object are kept. */
const KEPT = 300;
/** Objects remembered: those shown last. */
const OBJECTS = 150;
/** Seconds behind each quantile. */
const WINDOW = 60;

/** The counters of an object: those of programs are among their settings. */
const counters = (kind, object) => (kind === 'forwarders' ? object.settings : object.stats);

class Track {
  samples = [];
  #kind;
  #last = null;

  constructor(kind) {
    this.#kind = kind;
  }

  add(ns, object) {
    const [make, after] = [SAMPLES[this.#kind], counters(this.#kind, object)];
    if (!make || !after) return;
    const last = this.#last;
    if (last && ns <= last.ns) return;
    this.#last = { ns, object };
    if (!last) return;
    const latest = 1e9 / (ns - last.ns);
    const before = counters(this.#kind, last.object);
    const per = (key) => Math.max(0, Number(after[key] ?? 0) - Number(before[key] ?? 0)) * latest;
    this.samples.push({ at: ns / 1e9, ...make(object, last.object, per, latest) });
    while (this.samples[0].at < ns / 1e9 - KEPT) this.samples.shift();
  }

  get now() {
    return this.samples.at(-1) ?? null;
  }

  /** The samples with median and 99th percentile of the minute before each. Each is computed once, and only for what
   * has charts. */
  get judged() {
    this.samples.forEach((sample, index) => {
      if (sample.delay == null || sample.median !== undefined) return;
      const first = this.samples.findIndex((one) => one.at > sample.at - WINDOW);
      const window = this.samples.slice(first, index + 1);
      const delays = window.map((one) => one.delay).filter((delay) => delay != null);
      delays.sort((one, other) => one - other);
      const quantile = (share) => delays[Math.min(delays.length - 1, Math.floor(share * delays.length))];
      sample.median = quantile(0.5);
      sample.high = quantile(0.99);
    });
    return this.samples;
  }
}

export class History {
  #tracks = new Map();

  /** Adds an object as it was at this time of the run. */
  add(ns, kind, object) {
    const key = `${kind}/${object.name}`;
    const track = this.#tracks.get(key) ?? new Track(kind);
    track.add(ns, object);
    // The order of a map is that of insertion: the ones shown last are at its end.
    this.#tracks.delete(key);
    this.#tracks.set(key, track);
    if (this.#tracks.size > OBJECTS) this.#tracks.delete(this.#tracks.keys().next().value);
  }

  /** Forgets all: what comes is of another run. */
  forget() {
    this.#tracks.clear();
  }

  /** The latest sample of an object. */
  now(kind, name) {
    return this.#tracks.get(`${kind}/${name}`)?.now ?? null;
  }

  /** All samples of an object, with quantiles. */
  judged(kind, name) {
    return this.#tracks.get(`${kind}/${name}`)?.judged ?? [];
  }
}
