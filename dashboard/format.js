// Quantities as people read and write them.

const short = (number) => {
  if (number === 0) return '0';
  const size = Math.abs(number);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return String(Number(number.toFixed(digits)));
};

function scaled(number, units, step = 1000) {
  let index = 0;
  let size = Math.abs(number);
  while (size >= step * 0.9995 && index < units.length - 1) {
    size /= step;
    index += 1;
  }
  return `${short(number < 0 ? -size : size)} ${units[index]}`.trim();
}

export const rate = (bits) => scaled(bits, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
export const bytes = (number) => scaled(number, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
export const count = (number) => (number < 10_000 ? String(Math.round(number)) : scaled(number, ['', 'k', 'M', 'G']));
export const time = (ns) => {
  if (!ns) return '0';
  if (Math.abs(ns) < 1e3) return `${short(ns)} ns`;
  if (Math.abs(ns) < 1e6) return `${short(ns / 1e3)} µs`;
  if (Math.abs(ns) < 1e9) return `${short(ns / 1e6)} ms`;
  return `${short(ns / 1e9)} s`;
};
export const percent = (share) => `${short(share * 100)} %`;

/** 75 s as 1:15. */
export function clock(ns) {
  const seconds = Math.floor(ns / 1e9);
  const two = (number) => String(number).padStart(2, '0');
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

const PREFIXES = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const TIMES = { ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

/** What a slider of each format does: its range in steps, and how values are read and written. */
export const SCALES = {
  rate: {
    low: 1e4,
    high: 1e11,
    read(text) {
      const found = /^([\d.]+)\s*([kmgt]?)bit(?:\/s)?$/i.exec(text.trim());
      return found ? Number(found[1]) * PREFIXES[found[2].toLowerCase()] : null;
    },
    write: (bits) => rate(bits),
  },
  time: {
    low: 1e5,
    high: 1e10,
    zero: '0 ms',
    read(text) {
      if (/^0\b/.test(text.trim()) && !/[1-9]/.test(text)) return 0;
      const found = /^([\d.]+)\s*(ns|us|µs|ms|s|min|h)$/.exec(text.trim());
      return found ? Number(found[1]) * TIMES[found[2]] : null;
    },
    write: (ns) => time(ns).replace('µs', 'us'),
  },
  share: {
    low: 1e-5,
    high: 1,
    zero: '0 %',
    read(text) {
      const found = /^([\d.eE-]+)\s*(%?)$/.exec(text.trim());
      return found ? Number(found[1]) / (found[2] ? 100 : 1) : null;
    },
    write: (share) => percent(share),
  },
};

/** Steps of a slider. */
export const STEPS = 1000;

export function toStep(scale, value) {
  if (!(value > 0)) return 0;
  const first = scale.zero ? 1 : 0;
  const at = (Math.log(value) - Math.log(scale.low)) / (Math.log(scale.high) - Math.log(scale.low));
  return Math.round(first + Math.min(1, Math.max(0, at)) * (STEPS - first));
}

export function ofStep(scale, step) {
  if (scale.zero && step === 0) return scale.zero;
  const first = scale.zero ? 1 : 0;
  const at = (step - first) / (STEPS - first);
  const value = Math.exp(Math.log(scale.low) + at * (Math.log(scale.high) - Math.log(scale.low)));
  // Two digits are enough for a slider.
  return scale.write(Number(value.toPrecision(2)));
}

/** A link's rate in bits per second; null if unlimited or not a plain one. */
export const rateOf = (settings) => SCALES.rate.read(settings?.rate ?? '');
export const delayOf = (settings) => SCALES.time.read(settings?.delay ?? '');
