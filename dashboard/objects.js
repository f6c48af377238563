// The table of objects, a kind at a time: sorted and searched by the instance, which sends one page of rows.

import { isPattern } from './api.js';
import { KINDS } from './kinds.js';
import { byId, el, mark, say } from './dom.js';

/** Rows of a page. */
export const ROWS = 25;

export class Objects {
  #table = byId('table');
  #tabs = byId('kinds');
  #find = byId('find');
  #rows = [];
  #heads = [];
  #queries = new Map();
  #changed;
  #select;
  /** The collection that is shown. */
  kind = 'links';

  /** `changed` is called when other rows are wanted, `select` with the kind and name of an object. */
  constructor(changed, select) {
    [this.#changed, this.#select] = [changed, select];
    let typed = 0;
    this.#find.addEventListener('input', () => {
      clearTimeout(typed);
      typed = setTimeout(() => this.#ask({ name: pattern(this.#find.value) }), 200);
    });
    byId('previous').addEventListener('click', () => this.#turn(-ROWS));
    byId('next').addEventListener('click', () => this.#turn(ROWS));
    this.#table.tBodies[0].addEventListener('keydown', (event) => this.#move(event));
    this.#tabs.addEventListener('keydown', (event) => this.#moveTab(event));
    document.addEventListener('keydown', (event) => {
      if (event.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      event.preventDefault();
      this.#find.focus();
    });
    this.#build();
  }

  /** What is asked for, of this kind. */
  queryOf(kind) {
    if (!this.#queries.has(kind)) this.#queries.set(kind, { name: '', sort: '', from: 0, count: ROWS });
    return this.#queries.get(kind);
  }

  get query() {
    return this.queryOf(this.kind);
  }

  /** Shows a tab for each kind of which there are objects; `counts` has their numbers by collection. */
  offer(counts) {
    const there = Object.keys(KINDS).filter((kind) => counts[kind]);
    if (!counts[this.kind] && there.length) this.turnTo(there[0]);
    const key = there.join();
    if (this.#tabs.dataset.kinds !== key) {
      this.#tabs.dataset.kinds = key;
      this.#tabs.replaceChildren(...there.map((kind) => this.#tab(kind)));
      this.#tabs.hidden = there.length < 2;
    }
    for (const tab of this.#tabs.children) {
      say(tab.lastChild, String(counts[tab.dataset.kind]));
      const chosen = tab.dataset.kind === this.kind;
      mark(tab, 'aria-selected', String(chosen));
      mark(tab, 'tabindex', chosen ? '0' : '-1');
    }
  }

  #tab(kind) {
    const title = `${kind[0].toUpperCase()}${kind.slice(1)}`;
    const tab = el(
      'button',
      { type: 'button', role: 'tab', 'data-kind': kind, 'aria-controls': 'table' },
      el('span', { text: title }),
      el('span', { class: 'number' }),
    );
    tab.addEventListener('click', () => {
      this.turnTo(kind);
      this.#changed();
    });
    return tab;
  }

  /** Shows another kind. */
  turnTo(kind) {
    if (kind === this.kind) return;
    this.kind = kind;
    this.#find.value = this.query.name.replace(/^\*(.*)\*$/, '$1');
    this.#build();
  }

  #moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const tabs = [...this.#tabs.children];
    const next = step && tabs[tabs.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  }

  /** Head and rows of the present kind. */
  #build() {
    const { columns } = KINDS[this.kind];
    this.#heads = columns.map(({ title, sort }) => {
      const cell = el('th', { scope: 'col' });
      if (sort === undefined) {
        cell.textContent = title;
        return cell;
      }
      const button = el('button', { type: 'button', text: title });
      button.addEventListener('click', () => this.#ask({ sort }));
      cell.append(button);
      return cell;
    });
    this.#table.tHead.rows[0].replaceChildren(...this.#heads);
    this.#table.tBodies[0].replaceChildren();
    this.#rows = [];
    say(byId('objects-title'), `${this.kind[0].toUpperCase()}${this.kind.slice(1)}`);
    this.#markSort();
  }

  #ask(change) {
    Object.assign(this.query, change, { from: 0 });
    this.#markSort();
    this.#changed();
  }

  #turn(by) {
    this.query.from = Math.max(0, this.query.from + by);
    this.#changed();
  }

  /** Arrow keys go from row to row. */
  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const at = this.#rows.findIndex((row) => row.root.contains(event.target));
    const next = this.#rows.filter((row) => !row.root.hidden)[at + step];
    if (next) {
      event.preventDefault();
      next.name.focus();
    }
  }

  #markSort() {
    KINDS[this.kind].columns.forEach(({ sort }, index) => {
      mark(this.#heads[index], 'aria-sort', sort && sort === this.query.sort ? 'descending' : null);
    });
  }

  /** Shows a page of objects; one that was asked for before another kind was chosen is left out. */
  show(kind, page, history, selected) {
    if (kind !== this.kind) return;
    if (page.objects.length === 0 && page.from > 0) this.query.from = 0;
    while (this.#rows.length < page.objects.length) this.#rows.push(this.#row());
    this.#rows.forEach((row, index) => {
      const object = page.objects[index];
      row.root.hidden = !object;
      if (!object) return;
      const chosen = selected?.kind === kind && selected.name === object.name;
      this.#fill(row, object, history.now(kind, object.name), chosen);
    });
    const last = page.from + page.objects.length;
    const none = this.query.name ? 'None has such a name' : `No ${kind}`;
    const rows = page.objects.length ? `${page.from + 1}–${last} of ${page.total}` : none;
    say(byId('count'), this.query.sort ? `${rows}, the highest first` : rows);
    byId('previous').disabled = page.from === 0;
    byId('next').disabled = last >= page.total;
    byId('previous').parentElement.hidden = page.total <= ROWS;
  }

  #row() {
    const name = el('button', { type: 'button' });
    const cells = KINDS[this.kind].columns.map(({ meter }) => {
      const [text, bar] = [el('span'), meter ? el('span') : null];
      const frame = bar && el('span', { class: 'meter', 'aria-hidden': 'true' }, bar);
      return { root: el('td', {}, ...(frame ? [frame] : []), text), text, bar, frame };
    });
    cells[0].root.replaceChildren(name);
    const root = el('tr', {}, ...cells.map((cell) => cell.root));
    const kind = this.kind;
    root.addEventListener('click', () => this.#select(kind, name.textContent));
    this.#table.tBodies[0].append(root);
    return { root, name, cells };
  }

  #fill({ root, name, cells }, object, now, chosen) {
    say(name, object.name);
    mark(name, 'title', object.name);
    mark(root, 'aria-selected', String(chosen));
    KINDS[this.kind].columns.forEach(({ text, meter, bad }, index) => {
      if (!text) return;
      const cell = cells[index];
      say(cell.text, text(object, now));
      if (bad) mark(cell.root, 'class', bad(now) ? 'bad' : '');
      if (!meter) return;
      const { share, load } = meter(object, now);
      const width = `${Math.round(Math.min(1, share) * 100)}%`;
      if (cell.bar.style.width !== width) cell.bar.style.width = width;
      mark(cell.frame, 'data-load', String(load));
    });
  }
}

/** What somebody types is looked for anywhere in a name, unless it is a pattern. */
function pattern(text) {
  const wanted = text.trim();
  return wanted === '' || isPattern(wanted) ? wanted : `*${wanted}*`;
}
