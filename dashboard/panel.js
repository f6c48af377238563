// The chosen object: its settings, to be changed at once, and its counters. Fields follow from the API's description,
// which has the settings of every kind; what it does not have can't be changed, and is shown among the counters.

import { api } from './api.js';
import { Field } from './field.js';
import { bytes, count, rate, time } from './format.js';
import { KINDS, dropped } from './kinds.js';
import { byId, el, say } from './dom.js';

/** What is shown first; the rest is behind "More settings". */
const FIRST = ['model', 'rate', 'interval', 'delay', 'loss', 'jitter', 'size', 'queue', 'state', 'weight', 'data'];
/** Most settings that get a field: a router may have thousands of routes. */
const MOST_FIELDS = 60;

export class Panel {
  #form = byId('settings');
  #schemas = null;
  #fields = new Map();
  #shown = null;
  #object = null;
  #both = false;
  #changed;

  /** `changed` is called after a change with the kind, and the object as it is then. */
  constructor(changed) {
    this.#changed = changed;
    this.#form.addEventListener('submit', (event) => event.preventDefault());
  }

  /** What objects can be set to. */
  describe(document) {
    this.#schemas = document?.components?.schemas ?? {};
    this.#shown = null;
  }

  forget() {
    this.#schemas = null;
  }

  get isDescribed() {
    return this.#schemas !== null;
  }

  show(kind, object, now) {
    const key = JSON.stringify([kind, object.name, Object.keys(object.settings)]);
    if (this.#shown !== key) this.#build(kind, object, key);
    for (const [setting, field] of this.#fields) field.show(object.settings[setting] ?? '');
    this.#facts(kind === 'links' ? ofLink(object, now) : this.#ofOther(kind, object));
    say(byId('panel-note'), [...(object.notes ?? []), ...(object.stats?.notes ?? [])].join('; '));
  }

  nothing(kind, text) {
    say(byId('panel-title'), KINDS[kind].one);
    say(byId('panel-note'), text);
    this.#form.hidden = true;
    byId('charts').hidden = true;
    byId('facts').replaceChildren();
    this.#shown = null;
  }

  /** The schema of a setting; none if it can't be changed. */
  #schema(kind, setting) {
    const { properties = {}, patternProperties = {} } = this.#schemas?.[KINDS[kind].schema] ?? {};
    const pattern = Object.keys(patternProperties).find((one) => new RegExp(one).test(setting));
    const schema = Object.hasOwn(properties, setting) ? properties[setting] : patternProperties[pattern];
    return schema?.['x-only-new'] ? null : schema;
  }

  #facts(facts) {
    const list = byId('facts');
    const key = facts.map(([title]) => title).join('\n');
    if (list.dataset.shown !== key) {
      list.dataset.shown = key;
      list.replaceChildren(...facts.map(([title]) => el('div', {}, el('dt', { text: title }), el('dd'))));
    }
    facts.forEach(([, text], index) => say(list.children[index].lastChild, text));
  }

  /** Settings that can't change, and counters that are not 0. */
  #ofOther(kind, object) {
    const fixed = Object.entries(object.settings).filter(([setting]) => !this.#schema(kind, setting));
    return [...fixed.map(([setting, text]) => [titled(setting), text]), ...counted(object.stats ?? {})];
  }

  #build(kind, object, key) {
    const [was, name] = this.#shown === null ? [] : JSON.parse(this.#shown);
    const open = was === kind && name === object.name && this.#form.querySelector('details')?.open;
    [this.#shown, this.#object] = [key, { kind, name: object.name }];
    this.#fields.clear();
    say(byId('panel-title'), object.name);
    const keys = Object.keys(object.settings).filter((setting) => this.#schema(kind, setting));
    const first = FIRST.filter((setting) => keys.includes(setting));
    const rest = keys.filter((setting) => !first.includes(setting));
    const shown = rest.slice(0, Math.max(0, MOST_FIELDS - first.length));
    const adder = this.#adder(kind, keys);
    const more = [...shown.map((setting) => this.#field(setting)), ...(adder ? [adder] : [])];
    const left = rest.length - shown.length;
    if (left > 0) more.splice(-1, 0, el('p', { class: 'help', text: `and ${left} more: name one to change it` }));
    this.#form.hidden = first.length + more.length === 0;
    const text = `More settings (${rest.length}), and others to add`;
    // Where there is nothing that comes first, nothing hides the rest.
    const details = el('details', { open: open || first.length === 0 }, el('summary', { text }), el('div', {}, ...more));
    const parts = first.map((setting) => this.#field(setting));
    this.#form.replaceChildren(...parts, ...this.#directions(), ...(more.length ? [details] : []));
  }

  /** A duplex link is two; they change together if asked. */
  #directions() {
    if (this.#object.kind !== 'links' || !/\.(forward|backward)$/.test(this.#object.name)) return [];
    const box = el('input', { type: 'checkbox', checked: this.#both });
    box.addEventListener('change', () => (this.#both = box.checked));
    return [el('label', { class: 'both' }, box, 'Change both directions')];
  }

  #field(setting) {
    const object = this.#object;
    const schema = this.#schema(object.kind, setting);
    const field = new Field(setting, schema, (text) => this.#change(object, { [setting]: text }));
    this.#fields.set(setting, field);
    return field.root;
  }

  /** Sets what the object does not have yet; of settings with a name in them, such as routes, any. */
  #adder(kind, keys) {
    const { properties = {}, patternProperties = {} } = this.#schemas?.[KINDS[kind].schema] ?? {};
    const named = Object.keys(patternProperties).map((pattern) => `${/^\^?([\w-]+)/.exec(pattern)[1]}.`);
    const open = [...Object.keys(properties).filter((setting) => !keys.includes(setting)), ...named];
    const can = open.filter((setting) => this.#schema(kind, setting.endsWith('.') ? `${setting}x` : setting));
    if (!can.length) return null;
    const object = this.#object;
    const choice = el('select', { 'aria-label': 'Setting' }, ...can.map((setting) => el('option', { text: setting })));
    const name = el('input', { 'aria-label': 'Its name', placeholder: 'name', autocomplete: 'off', spellcheck: 'false' });
    const value = el('input', { 'aria-label': 'Value', placeholder: 'value', autocomplete: 'off', spellcheck: 'false' });
    const set = el('button', { type: 'button', class: 'quiet', text: 'Set' });
    const [help, wrong] = [el('p', { class: 'help' }), el('p', { class: 'wrong', role: 'alert' })];
    const meant = () => (choice.value.endsWith('.') ? choice.value + name.value.trim() : choice.value);
    const describe = () => {
      name.hidden = !choice.value.endsWith('.');
      say(help, this.#schema(kind, name.hidden ? choice.value : `${choice.value}x`)?.description ?? '');
    };
    const apply = async () => say(wrong, (await this.#change(object, { [meant()]: value.value })) ?? '');
    choice.addEventListener('change', describe);
    set.addEventListener('click', apply);
    // An empty value removes, so a name alone is not sent.
    name.addEventListener('keydown', (event) => event.key === 'Enter' && value.focus());
    value.addEventListener('keydown', (event) => event.key === 'Enter' && apply());
    describe();
    return el('div', {}, el('div', { class: 'add' }, choice, name, value, set), help, el('div', { class: 'setting plain' }, wrong));
  }

  /** Changes an object; answers what is wrong, if anything is. */
  async #change({ kind, name }, settings) {
    const meant = kind === 'links' && this.#both ? name.replace(/\.(forward|backward)$/, '') : name;
    try {
      const changed = await api.change(kind, meant, settings);
      const each = changed.members?.length ? changed.members : [changed];
      this.#changed(kind, each.find((member) => member.name === name) ?? changed);
      return null;
    } catch (problem) {
      return problem.message;
    }
  }
}

function ofLink({ stats }, now) {
  const reasons = (stats?.drops ?? []).map(([reason, packets]) => `${count(packets)} ${reason}`).join(', ');
  return [
    ['In', now ? rate(now.in) : '…'],
    ['Out', now ? rate(now.out) : '…'],
    ['Queue', `${count(stats?.queued_packets ?? 0)} pkt, ${bytes(stats?.queued_bytes ?? 0)}`],
    ['On its way', `${count(stats?.travelling_packets ?? 0)} pkt`],
    ['Carried', bytes(stats?.out_bytes ?? 0)],
    ['Latest packet', time(stats?.max_late_ns ?? 0)],
    ['Dropped', dropped(stats) ? reasons : '0'],
  ];
}

/** What a row of counters has besides them. */
const NO_COUNTERS = ['name', 'kind', 'unit', 'error_percent', 'pass', 'notes', 'flow', 'weight'];
/** Counters whose name says little. */
const TITLES = { expected: 'Sent', measured: 'Arrived' };

/** Counters by name, of all kinds but links; those that are 0 say nothing. */
function counted(stats) {
  const own = stats.kind === 'source' ? NO_COUNTERS : [...NO_COUNTERS, 'expected', 'measured'];
  return Object.entries(stats).flatMap(([key, value]) => {
    const text = own.includes(key) ? '' : written(key, value);
    return text ? [[TITLES[key] ?? titled(key), text]] : [];
  });
}

function written(key, value) {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null) {
    const reasons = Object.entries(value);
    if (!reasons.every(([, one]) => typeof one === 'number')) return '';
    return reasons.filter(([, one]) => one).map(([reason, one]) => `${count(one)} ${reason}`).join(', ');
  }
  if (typeof value !== 'number' || value === 0) return '';
  if (/(^|_)ns(_|$)/.test(key)) return time(value);
  if (key.endsWith('bit_per_s')) return rate(value);
  if (key.endsWith('bytes')) return bytes(value);
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(3)));
}

/** `out_frames` as `Out frames`; a unit is with the value. */
function titled(key) {
  const words = key.replace(/_(ns|bit_per_s)(?=_|$)/, '').replaceAll('_', ' ');
  return words[0].toUpperCase() + words.slice(1);
}
