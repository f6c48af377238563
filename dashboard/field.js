// A setting: a field with what it takes, and a slider where its quantity has a scale.

import { STEPS, Scale } from './scales.js';
import { el, mark, say } from './dom.js';

/** Least time between two changes by a slider. */
const PACE_MS = 150;
/** Letters from which a setting's name gets more room: such as a route's. */
const LONG = 12;

let numbers = 0;

export class Field {
  #schema;
  #scale;
  #takes;
  #text;
  #slider = null;
  #wrong;
  #busy = false;
  /** Whether somebody is writing something that is not sent yet. */
  #written = false;
  #next = null;
  #last = '';

  /** A setting with its schema; `change` sets its text, and answers what is wrong if anything is. */
  constructor(setting, schema, change) {
    this.change = change;
    this.#schema = schema;
    this.#scale = Scale.of(schema);
    this.#takes = schema['x-takes'] ?? '';
    const id = `setting-${(numbers += 1)}`;
    const label = el('label', { for: id, text: setting, title: schema.description ?? '' });
    const described = { id, 'aria-describedby': `${id}-hint ${id}-wrong` };
    this.#wrong = el('p', { class: 'wrong', id: `${id}-wrong`, role: 'alert', hidden: true });
    this.#text = schema.examples
      ? el('select', described, ...schema.examples.map((word) => el('option', { text: word })))
      : el('input', { ...described, autocomplete: 'off', spellcheck: 'false' });
    this.#text.addEventListener('change', () => this.#ask(this.#text.value));
    this.#text.addEventListener('input', () => {
      this.#written = true;
      this.#show(this.#outside(this.#text.value));
    });
    this.#text.addEventListener('blur', () => (this.#written = false));
    this.#text.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.#reset();
    });
    const hint = el('p', { class: 'hint', id: `${id}-hint`, text: schema.description ?? '' });
    const shape = this.#scale ? '' : setting.length > LONG ? ' plain long' : ' plain';
    this.root = el('div', { class: `setting${shape}` }, label);
    if (this.#scale) this.root.append(this.#sliderOf(setting));
    this.root.append(this.#text, hint, this.#wrong);
  }

  #sliderOf(setting) {
    this.#slider = el('input', { type: 'range', min: 0, max: STEPS, 'aria-label': `${setting}, by a slider` });
    this.#slider.addEventListener('input', () => {
      const text = this.#scale.ofStep(Number(this.#slider.value));
      this.#text.value = text;
      mark(this.#slider, 'aria-valuetext', text);
      this.#ask(text);
    });
    return this.#slider;
  }

  /** What is wrong with a text that is beyond the range. */
  #outside(text) {
    return this.#scale?.excludes(text) ? `${text} is out of range: write ${this.#takes}` : null;
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
    this.#scale = Scale.of(this.#schema, text);
    const value = this.#scale.read(text);
    // Unlimited, a trace and the like have no place on the scale.
    this.#slider.disabled = value === null && text !== 'unlimited';
    const step = value === null ? STEPS : this.#scale.toStep(value);
    if (Number(this.#slider.value) !== step) this.#slider.value = step;
    mark(this.#slider, 'aria-valuetext', text);
  }

  #reset() {
    this.#written = false;
    this.#show(null);
    this.#set(this.#last);
  }

  #show(problem) {
    this.#wrong.hidden = !problem;
    say(this.#wrong, problem ?? '');
    mark(this.#text, 'aria-invalid', problem ? 'true' : null);
  }

  /** Asks for a value; while a slider moves, for the latest one after each answer. */
  async #ask(text) {
    const outside = this.#outside(text);
    if (outside) {
      this.#show(outside);
      return;
    }
    this.#next = text;
    if (this.#busy) return;
    this.#busy = true;
    while (this.#next !== null) {
      const wanted = this.#next;
      this.#next = null;
      this.#written = false;
      this.#show(await this.change(wanted));
      if (this.#next !== null) await new Promise((done) => setTimeout(done, PACE_MS));
    }
    this.#busy = false;
  }
}
