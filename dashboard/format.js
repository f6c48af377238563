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
