// The kinds of objects: what the table and the charts show of each. What can be set is not here: it comes from the
// API's description.

import { bytes, count, percent, rate, time } from './format.js';
import { read } from './scales.js';

const sum = (numbers) => numbers.reduce((all, one) => all + (one ?? 0), 0);
const packets = (number) => `${count(number)} pkt`;
const pace = (number) => `${number < 10 ? Number(number.toFixed(1)) : count(number)}/s`;
const unknown = '…';

/** Text of something that is known once there are two looks. */
const soon = (write) => (object, now) => (now ? write(now, object) : unknown);
const stat = (key, write = count) => ({ stats }) => (stats?.[key] == null ? '' : write(stats[key]));
const setting = (key) => ({ settings }) => settings[key] ?? '';

/** A link's rate in bits per second; null if unlimited or not a plain one. */
export const rateOf = (settings) => read('rate', settings?.rate);
export const delayOf = (settings) => read('time', settings?.delay);

/** Dropped packets of a link. */
export const dropped = (stats) => sum((stats?.drops ?? []).map(([, lost]) => lost));

/** Frames that a port could not take or send. */
const refused = (stats) =>
  sum(['in_pool_full', 'in_missed', 'in_bad', 'out_full', 'out_down', 'out_oversize'].map((key) => stats?.[key]));

/** How loaded a link is: 0 idle, 1 in use, 2 above 70 %, 3 full or dropping. */
export function load({ settings }, now) {
  if (!now || (now.in === 0 && now.out === 0)) return 0;
  const limit = rateOf(settings);
  const share = limit ? now.out / limit : 0;
  const full = Object.keys(now.drops).some((reason) => reason.startsWith('queue'));
  if (share > 0.97 || full) return 3;
  return share > 0.7 ? 2 : 1;
}

/**
 * By collection of the API:
 * - `one`, `word`, `schema`: a title, the kind of an object, and the name of the schema with its settings;
 * - `columns` of the table: a title, `sort` if the instance sorts by it, the text, and a meter's share and load;
 * - `charts`: a title, the unit and least height of the scale, and the lines by name and key of a sample;
 * - `bad`: what of two samples is to be seen in the table.
 */
export const KINDS = {
  links: {
    one: 'Link',
    word: 'link',
    schema: 'LinkSettings',
    columns: [
      { title: 'Link', sort: '' },
      {
        title: 'Rate now',
        sort: 'rate',
        text: soon((now) => rate(now.out)),
        meter: (object, now) => {
          const limit = rateOf(object.settings);
          return { share: limit && now ? now.out / limit : 0, load: load(object, now) };
        },
      },
      { title: 'Of', text: setting('rate') },
      { title: 'Delay', text: setting('delay') },
      { title: 'Queue', sort: 'queued', text: stat('queued_packets', packets) },
      { title: 'Dropped', sort: 'dropped', text: ({ stats }) => count(dropped(stats)), bad: (now) => now?.dropped },
      { title: 'Latest', sort: 'late', text: stat('max_late_ns', time) },
    ],
    charts: [
      { title: 'Rate', unit: rate, least: 1000, lines: [['in', 'in'], ['out', 'out']] },
      {
        title: 'One-way delay, from delay and queue',
        unit: time,
        least: 1e6,
        lines: [['now', 'delay'], ['median', 'median'], ['99 %', 'high']],
      },
      { title: 'Queue', unit: bytes, least: 3000, lines: [['waiting', 'queue']] },
      { title: 'Drops by reason', unit: pace, least: 1, by: 'drops' },
    ],
  },
  sources: {
    one: 'Source',
    word: 'source',
    schema: 'SourceSettings',
    columns: [
      { title: 'Source' },
      { title: 'Sends now', text: soon((now) => pace(now.sent)) },
      { title: 'Model', text: setting('model') },
      { title: 'Rate', text: ({ settings }) => settings.rate ?? (settings.interval ? `each ${settings.interval}` : '') },
      { title: 'Sent', text: stat('expected') },
      { title: 'Arrived', text: stat('measured') },
      { title: 'Lost', text: stat('lost') },
    ],
    charts: [
      { title: 'Packets', unit: pace, least: 1, lines: [['sent', 'sent'], ['arrived', 'arrived'], ['lost', 'lost']] },
      { title: 'Mean delay so far', unit: time, least: 1e6, lines: [['mean', 'delay']] },
    ],
  },
  media: {
    one: 'Medium',
    word: 'medium',
    schema: 'MediumSettings',
    columns: [
      { title: 'Medium' },
      { title: 'Rate', text: setting('rate') },
      { title: 'Settings', text: ({ settings }) => String(Object.keys(settings).length) },
    ],
    charts: [],
  },
  ports: {
    one: 'Port',
    word: 'port',
    schema: 'PortSettings',
    columns: [
      { title: 'Port' },
      { title: 'In now', text: soon((now) => rate(now.in)) },
      { title: 'Out now', text: soon((now) => rate(now.out)) },
      { title: 'Driver', text: stat('driver', String) },
      { title: 'In', text: stat('in_frames', packets) },
      { title: 'Out', text: stat('out_frames', packets) },
      { title: 'Refused', text: ({ stats }) => count(refused(stats)), bad: (now) => now?.refused },
    ],
    charts: [
      { title: 'Rate', unit: rate, least: 1000, lines: [['in', 'in'], ['out', 'out']] },
      { title: 'Frames', unit: pace, least: 1, lines: [['in', 'inFrames'], ['out', 'outFrames'], ['refused', 'refused']] },
    ],
  },
  routers: {
    one: 'Router',
    word: 'router',
    schema: 'RouterSettings',
    columns: [
      { title: 'Router' },
      { title: 'Forwards now', text: soon((now) => pace(now.forwarded)) },
      { title: 'Forwarded', text: stat('forwarded') },
      { title: 'Made', text: stat('made') },
      { title: 'Dropped', text: stat('dropped'), bad: (now) => now?.dropped },
      { title: 'Held', text: stat('kept') },
      { title: 'Routes', text: ({ settings }) => count(Object.keys(settings).length) },
    ],
    charts: [
      {
        title: 'Packets',
        unit: pace,
        least: 1,
        lines: [['forwarded', 'forwarded'], ['made', 'made'], ['dropped', 'dropped']],
      },
    ],
  },
  flows: {
    one: 'Flow',
    word: 'flow',
    schema: 'FlowSettings',
    columns: [
      { title: 'Flow' },
      {
        title: 'Processor',
        text: soon((now) => percent(now.processor)),
        meter: (_, now) => ({ share: now?.processor ?? 0, load: 1 }),
      },
      { title: 'Weight', text: setting('weight') },
      { title: 'In', text: stat('in_packets', packets) },
      { title: 'Out', text: stat('out_packets', packets) },
      { title: 'Refused', text: stat('refused'), bad: (now) => now?.refused },
    ],
    charts: [
      { title: 'Share of a processor', unit: percent, least: 0.01, lines: [['used', 'processor']] },
      { title: 'Packets', unit: pace, least: 1, lines: [['in', 'in'], ['out', 'out'], ['refused', 'refused']] },
    ],
  },
  forwarders: {
    one: 'Program',
    word: 'forwarder',
    schema: 'ForwarderSettings',
    columns: [
      { title: 'Program' },
      { title: 'Packets now', text: soon((now) => pace(now.packets)) },
      { title: 'Packets', text: ({ settings }) => count(Number(settings.packets ?? 0)) },
      { title: 'Dropped', text: ({ settings }) => count(Number(settings.dropped ?? 0)), bad: (now) => now?.dropped },
      { title: 'Key', text: setting('key') },
    ],
    charts: [
      { title: 'Packets', unit: pace, least: 1, lines: [['came', 'packets'], ['dropped', 'dropped']] },
    ],
  },
};

/** What a look adds to the history of an object, from its counters before and now. */
export const SAMPLES = {
  links(object, before, per, latest) {
    const drops = {};
    const earlier = new Map(before.stats.drops ?? []);
    for (const [reason, lost] of object.stats.drops ?? []) {
      const fresh = lost - (earlier.get(reason) ?? 0);
      if (fresh > 0) drops[reason] = fresh * latest;
    }
    return {
      in: per('in_bytes') * 8,
      out: per('out_bytes') * 8,
      queue: object.stats.queued_bytes,
      delay: object.stats.delay_ns,
      drops,
      dropped: sum(Object.values(drops)),
    };
  },
  sources: ({ stats }, _, per) => ({
    sent: per('expected'),
    arrived: per('measured'),
    lost: per('lost'),
    delay: stats.delay_ns_mean ?? null,
  }),
  ports: (object, before, per, latest) => ({
    in: per('in_bytes') * 8,
    out: per('out_bytes') * 8,
    inFrames: per('in_frames'),
    outFrames: per('out_frames'),
    refused: Math.max(0, refused(object.stats) - refused(before.stats)) * latest,
  }),
  routers: (_, __, per) => ({ forwarded: per('forwarded'), made: per('made'), dropped: per('dropped') }),
  flows: (_, __, per) => ({
    processor: per('processor_ns') / 1e9,
    in: per('in_packets'),
    out: per('out_packets'),
    refused: per('refused'),
  }),
  forwarders: (_, __, per) => ({ packets: per('packets'), dropped: per('dropped') }),
};
