// How settings are read, checked and written, by the format that the API's description names: rates, times, shares,
// numbers, sizes, limits of queues. The same format gives a slider its range.

import { rate, time } from './format.js';

const PREFIXES = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const TIMES = { ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };
const SIZES = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 };

/** Reads a number with one of these units, whose names are in lower case; null if a text is none. */
const quantity = (pattern, units) => (text) => {
  const found = pattern.exec(text);
  return found ? Number(found[1]) * units[found[2].toLowerCase()] : null;
};

/** Steps of a slider. */
export const STEPS = 1000;

const readTime = quantity(/^([\d.]+)\s*(ns|us|µs|ms|s|min|h)$/, TIMES);

/** What is usual: the range of a slider, how values are read (null: not a plain one) and written. */
const FORMATS = {
  rate: {
    low: 1e4,
    high: 1e11,
    read: quantity(/^([\d.]+)\s*([kmgt]?)bit(?:\/s)?$/i, PREFIXES),
    write: rate,
  },
  time: {
    low: 1e5,
    high: 1e10,
    read: (text) => (/^0+(\.0*)?$/.test(text) ? 0 : readTime(text)),
    write: (ns) => (ns ? time(ns).replace('µs', 'us') : '0 ms'),
  },
  share: {
    low: 1e-5,
    high: 1,
    read(text) {
      const found = /^([\d.eE-]+)\s*(%?)$/.exec(text);
      return found ? Number(found[1]) / (found[2] ? 100 : 1) : null;
    },
    // Shares of a millionth are worth their digits: `percent` would write them as 0.
    write: (share) => `${Number((share * 100).toPrecision(3))} %`,
  },
  integer: {
    low: 1,
    high: 1e5,
    whole: true,
    read: (text) => (/^\d[\d_]*$/.test(text) ? Number(text.replaceAll('_', '')) : null),
    write: (number) => String(Math.round(number)),
  },
  decimal: {
    low: 0,
    high: 100,
    linear: true,
    read: (text) => (/^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : null),
    write: (number) => String(Number(number.toPrecision(3))),
  },
  size: {
    low: 64,
    high: 1e9,
    whole: true,
    read: quantity(/^([\d.]+)\s*([kmg]i?b|b)$/i, SIZES),
    write: (number) => `${Math.round(number)} B`,
  },
  limit: {
    low: 1,
    high: 1e5,
    whole: true,
    read(text) {
      const found = /^(\d[\d_]*)\s*packets?$/.exec(text);
      return found ? Number(found[1].replaceAll('_', '')) : null;
    },
    write: (number) => (number === 1 ? '1 packet' : `${Math.round(number)} packets`),
  },
};

/** The value of a text of this format; null if it is not a plain one. */
export const read = (format, text) => FORMATS[format].read((text ?? '').trim());

/** The most values of a range whose slider has one step for each. */
const FEW = 200;

/** What the limit of a queue may be instead of packets. */
const OTHER_LIMITS = ['time', 'size'];

/** The scale of a setting, by its schema and its present text; null if it has none. */
export class Scale {
  static of(schema, text = '') {
    if (!FORMATS[schema.format]) return null;
    const other = schema.format === 'limit' && OTHER_LIMITS.find((format) => read(format, text) !== null);
    return new Scale(other ? { format: other } : schema);
  }

  constructor({ format, 'x-least': least = 0, 'x-most': most = Infinity }) {
    this.format = FORMATS[format];
    [this.least, this.most] = [least, most];
    this.high = Math.min(this.format.high, most);
    const few = this.format.whole && most - least <= FEW;
    this.linear = this.format.linear || few;
    this.low = this.linear ? least : Math.min(Math.max(this.format.low, least), this.high / 10);
    // A range that begins at 0 has it at the slider's left end: a logarithm has no place for it.
    this.zero = !this.linear && least === 0 && this.format !== FORMATS.rate;
  }

  read(text) {
    return this.format.read(text.trim());
  }

  /** Whether a text is a value beyond the range. */
  excludes(text) {
    const value = this.read(text);
    return value !== null && (value < this.least || value > this.most);
  }

  toStep(value) {
    if (this.linear) return Math.round(STEPS * this.#share(value - this.low, this.high - this.low));
    if (!(value > 0)) return 0;
    const first = this.zero ? 1 : 0;
    return Math.round(first + (STEPS - first) * this.#share(Math.log(value / this.low), Math.log(this.high / this.low)));
  }

  #share(part, whole) {
    return Math.min(1, Math.max(0, part / whole));
  }

  /** The text of a step. */
  ofStep(step) {
    if (this.linear) return this.format.write(this.low + (step / STEPS) * (this.high - this.low));
    if (this.zero && step === 0) return this.format.write(0);
    const first = this.zero ? 1 : 0;
    const value = this.low * (this.high / this.low) ** ((step - first) / (STEPS - first));
    // Two digits are enough for a slider.
    return this.format.write(Math.min(this.high, Math.max(this.low, Number(value.toPrecision(2)))));
  }
}
