// The chosen link: its settings, to be changed at once, and its counters. Fields follow from the API's description,
// which has the settings of every block.

import { api } from './api.js';
import { SCALES, STEPS, bytes, count, ofStep, rate, time, toStep } from './format.js';
import { dropped } from './history.js';
import { byId, el, mark, say } from './dom.js';

/** What is shown first; the rest is behind "More settings". */
const FIRST = ['rate', 'delay', 'loss', 'jitter', 'queue', 'state'];
/** Least time between two changes by a slider. */
const PACE_MS = 150;

export class Panel {
  #form = byId('settings');
  #properties = {};
  #fields = new Map();
  #shown = null;
  #both = false;
  #changed;

  /** `changed` is called after a change with the object as it is then. */
  constructor(changed) {
    this.#changed = changed;
    this.#form.addEventListener('submit', (event) => event.preventDefault());
  }

  /** What a link can be set to. */
  describe(document) {
    this.#properties = document?.components?.schemas?.LinkSettings?.properties ?? {};
    this.#shown = null;
  }

  show(object, now) {
    const key = JSON.stringify([object.name, Object.keys(object.settings)]);
    if (this.#shown !== key) this.#build(object, key);
    for (const [setting, field] of this.#fields) field.show(object.settings[setting] ?? '');
    this.#facts(object, now);
  }

  nothing(text) {
    say(byId('panel-title'), 'Link');
    say(byId('panel-note'), text);
    this.#form.hidden = true;
    byId('charts').hidden = true;
    byId('facts').replaceChildren();
    this.#shown = null;
  }

  #facts(object, now) {
    const stats = object.stats ?? {};
    const reasons = (stats.drops ?? []).map(([reason, packets]) => `${count(packets)} ${reason}`).join(', ');
    const facts = [
      ['In', now ? rate(now.in) : '…'],
      ['Out', now ? `${rate(now.out)}` : '…'],
      ['Queue', `${count(stats.queued_packets ?? 0)} pkt, ${bytes(stats.queued_bytes ?? 0)}`],
      ['On its way', `${count(stats.travelling_packets ?? 0)} pkt`],
      ['Carried', bytes(stats.out_bytes ?? 0)],
      ['Latest packet', time(stats.max_late_ns ?? 0)],
      ['Dropped', dropped(stats) ? reasons : '0'],
    ];
    const list = byId('facts');
    if (list.children.length !== facts.length) {
      list.replaceChildren(...facts.map(([title]) => el('div', {}, el('dt', { text: title }), el('dd'))));
    }
    facts.forEach(([, text], index) => say(list.children[index].lastChild, text));
  }

  #build(object, key) {
    const moved = this.#shown === null || JSON.parse(this.#shown)[0] !== object.name;
    const open = !moved && this.#form.querySelector('details')?.open;
    this.#shown = key;
    this.#fields.clear();
    this.#form.hidden = false;
    byId('charts').hidden = false;
    say(byId('panel-title'), object.name);
    say(byId('panel-note'), '');
    const keys = Object.keys(object.settings);
    const first = FIRST.filter((setting) => keys.includes(setting));
    const rest = keys.filter((setting) => !first.includes(setting));
    const more = el('details', { open }, el('summary', { text: `More settings (${rest.length}), and others to add` }));
    const inner = el('div', {}, ...rest.map((setting) => this.#field(object, setting)), this.#adder(object, keys));
    more.append(inner);
    this.#form.replaceChildren(...first.map((setting) => this.#field(object, setting)), ...this.#directions(object), more);
  }

  /** A duplex link is two; they change together if asked. */
  #directions(object) {
    if (!/\.(forward|backward)$/.test(object.name)) return [];
    const box = el('input', { type: 'checkbox', checked: this.#both });
    box.addEventListener('change', () => (this.#both = box.checked));
    return [el('label', { class: 'both' }, box, 'Change both directions')];
  }

  #field(object, setting) {
    const schema = this.#properties[setting] ?? {};
    const change = (text) => this.#change(object.name, { [setting]: text });
    const field = new Field(setting, schema, change);
    this.#fields.set(setting, field);
    return field.root;
  }

  /** Sets what the link does not have yet. */
  #adder(object, keys) {
    const open = Object.keys(this.#properties).filter((setting) => !keys.includes(setting));
    const choice = el('select', { 'aria-label': 'Setting' }, ...open.map((setting) => el('option', { text: setting })));
    const value = el('input', { 'aria-label': 'Value', placeholder: 'value', autocomplete: 'off' });
    const set = el('button', { type: 'button', class: 'quiet', text: 'Set' });
    const help = el('p', { class: 'help' });
    const wrong = el('p', { class: 'wrong', role: 'alert' });
    const describe = () => (help.textContent = this.#properties[choice.value]?.description ?? '');
    const apply = async () => {
      const problem = await this.#change(object.name, { [choice.value]: value.value });
      wrong.textContent = problem ?? '';
    };
    choice.addEventListener('change', describe);
    set.addEventListener('click', apply);
    value.addEventListener('keydown', (event) => event.key === 'Enter' && apply());
    describe();
    return el('div', {}, el('div', { class: 'add' }, choice, value, set), help, el('div', { class: 'setting plain' }, wrong));
  }

  /** Changes a link; answers what is wrong, if anything is. */
  async #change(name, settings) {
    const meant = this.#both ? name.replace(/\.(forward|backward)$/, '') : name;
    try {
      const changed = await api.change('links', meant, settings);
      const each = changed.members?.length ? changed.members : [changed];
      this.#changed(each.find((member) => member.name === name) ?? changed);
      return null;
    } catch (problem) {
      return problem.message;
    }
  }
}

let numbers = 0;

/** A setting: a field, and a slider where its quantity has a scale. */
class Field {
  #scale;
  #text;
  #slider = null;
  #wrong = el('p', { class: 'wrong', role: 'alert', hidden: true });
  #busy = false;
  /** Whether somebody is writing something that is not sent yet. */
  #written = false;
  #next = null;
  #last = '';

  constructor(setting, schema, change) {
    this.change = change;
    this.#scale = SCALES[schema.format] ?? null;
    const id = `setting-${(numbers += 1)}`;
    const label = el('label', { for: id, text: setting, title: schema.description ?? '' });
    this.#text = schema.examples
      ? el('select', { id }, ...schema.examples.map((word) => el('option', { text: word })))
      : el('input', { id, autocomplete: 'off', spellcheck: 'false' });
    this.#text.addEventListener('change', () => this.#ask(this.#text.value));
    this.#text.addEventListener('input', () => (this.#written = true));
    this.#text.addEventListener('blur', () => (this.#written = false));
    this.#text.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.#reset();
    });
    if (this.#scale) {
      this.#slider = el('input', { type: 'range', min: 0, max: STEPS, 'aria-label': `${setting}, by a slider` });
      this.#slider.addEventListener('input', () => {
        const text = ofStep(this.#scale, Number(this.#slider.value));
        this.#text.value = text;
        mark(this.#slider, 'aria-valuetext', text);
        this.#ask(text);
      });
    }
    this.root = el('div', { class: this.#slider ? 'setting' : 'setting plain' }, label);
    if (this.#slider) this.root.append(this.#slider);
    this.root.append(this.#text, this.#wrong);
  }

  /** Shows the value, unless somebody is about to change it. */
  show(text) {
    this.#last = text;
    if (this.#busy || this.#written || !this.#wrong.hidden) return;
    this.#set(text);
  }

  #set(text) {
    if (this.#text.tagName === 'SELECT' && ![...this.#text.options].some((option) => option.value === text)) {
      this.#text.append(el('option', { text }));
    }
    if (this.#text.value !== text) this.#text.value = text;
    if (!this.#slider) return;
    const value = this.#scale.read(text);
    // Unlimited, a trace and the like have no place on the scale.
    this.#slider.disabled = value === null && text !== 'unlimited';
    const step = value === null ? STEPS : toStep(this.#scale, value);
    if (Number(this.#slider.value) !== step) this.#slider.value = step;
    mark(this.#slider, 'aria-valuetext', text);
  }

  #reset() {
    this.#written = false;
    this.#wrong.hidden = true;
    this.#text.removeAttribute('aria-invalid');
    this.#set(this.#last);
  }

  /** Asks for a value; while a slider moves, for the latest one after each answer. */
  async #ask(text) {
    if (this.#busy) {
      this.#next = text;
      return;
    }
    this.#busy = true;
    this.#next = text;
    while (this.#next !== null) {
      const wanted = this.#next;
      this.#next = null;
      this.#written = false;
      const problem = await this.change(wanted);
      this.#wrong.hidden = !problem;
      say(this.#wrong, problem ?? '');
      if (problem) this.#text.setAttribute('aria-invalid', 'true');
      else this.#text.removeAttribute('aria-invalid');
      if (this.#next !== null) await new Promise((done) => setTimeout(done, PACE_MS));
    }
    this.#busy = false;
  }
}
