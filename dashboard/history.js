// The last minutes of the links that are shown: rates from counters, queue and drops.

import { delayOf, rateOf } from './format.js';

/** Samples kept for a link: five minutes. */
const KEPT = 300;
/** Links remembered: those shown last. */
const LINKS = 120;

const sum = (drops) => (drops ?? []).reduce((all, [, packets]) => all + packets, 0);

/** What a packet that comes now takes: the delay, and what is queued before it at the link's rate, or at the present
 * one if that varies. */
function delayNow({ settings }, stats, out) {
  const [delay, limit] = [delayOf(settings), rateOf(settings) || out];
  return (delay ?? 0) + (limit ? (stats.queued_bytes * 8e9) / limit : 0);
}

class Track {
  samples = [];
  last = null;

  add(ns, object) {
    const stats = object.stats;
    if (!stats) return;
    const before = this.last;
    if (before && ns <= before.ns) return;
    this.last = { ns, stats };
    if (!before) return;
    const seconds = (ns - before.ns) / 1e9;
    const bits = (key) => (Math.max(0, stats[key] - before.stats[key]) * 8) / seconds;
    const earlier = new Map(before.stats.drops ?? []);
    const drops = {};
    for (const [reason, packets] of stats.drops ?? []) {
      const fresh = packets - (earlier.get(reason) ?? 0);
      if (fresh > 0) drops[reason] = fresh / seconds;
    }
    this.samples.push({
      at: ns / 1e9,
      in: bits('in_bytes'),
      out: bits('out_bytes'),
      packets: (stats.out_packets - before.stats.out_packets) / seconds,
      queue: stats.queued_bytes,
      delay: delayNow(object, stats, bits('out_bytes')),
      drops,
      dropped: Object.values(drops).reduce((all, one) => all + one, 0),
    });
    if (this.samples.length > KEPT) this.samples.shift();
  }

  get now() {
    return this.samples.at(-1) ?? null;
  }
}

export class History {
  #tracks = new Map();

  /** Adds a link as it was at this time of the run. */
  add(ns, object) {
    const track = this.#tracks.get(object.name) ?? new Track();
    track.add(ns, object);
    // The order of a map is that of insertion: the ones shown last are at its end.
    this.#tracks.delete(object.name);
    this.#tracks.set(object.name, track);
    if (this.#tracks.size > LINKS) this.#tracks.delete(this.#tracks.keys().next().value);
    return track;
  }

  of(name) {
    return this.#tracks.get(name) ?? null;
  }
}

/** How loaded a link is: 0 idle, 1 in use, 2 above 70 %, 3 full or dropping. */
export function load(now, limit) {
  if (!now || (now.in === 0 && now.out === 0)) return 0;
  const share = limit ? now.out / limit : 0;
  const full = Object.keys(now.drops).some((reason) => reason.startsWith('queue'));
  if (share > 0.97 || full) return 3;
  return share > 0.7 ? 2 : 1;
}

export const dropped = (stats) => sum(stats?.drops);
