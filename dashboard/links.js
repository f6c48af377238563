// The table of links: sorted and searched by the instance, which sends one page of rows.

import { count, delayOf, rate, rateOf, time } from './format.js';
import { dropped, load } from './history.js';
import { byId, el, mark, say } from './dom.js';

/** Rows of a page. */
export const ROWS = 25;

/** The columns: what they show, and by what the instance sorts. */
const COLUMNS = [
  { title: 'Link', sort: '' },
  { title: 'Rate now', sort: 'rate' },
  { title: 'Of' },
  { title: 'Delay' },
  { title: 'Queue', sort: 'queued' },
  { title: 'Dropped', sort: 'dropped' },
  { title: 'Latest', sort: 'late' },
];

export class Links {
  #rows = [];
  #body = byId('table').tBodies[0];
  #heads = [];

  /** `changed` is called when other rows are wanted, `select` with a link's name. */
  constructor(changed, select) {
    this.query = { name: '', sort: '', from: 0, count: ROWS };
    this.#select = select;
    const head = byId('table').tHead.rows[0];
    for (const column of COLUMNS) {
      const cell = el('th', { scope: 'col' });
      if (column.sort === undefined) {
        cell.textContent = column.title;
      } else {
        const button = el('button', { type: 'button', text: column.title });
        button.addEventListener('click', () => this.#ask({ sort: column.sort }, changed));
        cell.append(button);
      }
      head.append(cell);
      this.#heads.push(cell);
    }
    let typed = 0;
    byId('find').addEventListener('input', (event) => {
      clearTimeout(typed);
      typed = setTimeout(() => this.#ask({ name: pattern(event.target.value) }, changed), 200);
    });
    byId('previous').addEventListener('click', () => this.#turn(-ROWS, changed));
    byId('next').addEventListener('click', () => this.#turn(ROWS, changed));
    this.#body.addEventListener('keydown', (event) => this.#move(event));
  }

  #select;

  #ask(change, changed) {
    Object.assign(this.query, change, { from: 0 });
    this.#markSort();
    changed();
  }

  #turn(by, changed) {
    this.query.from = Math.max(0, this.query.from + by);
    changed();
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
    COLUMNS.forEach((column, index) => {
      const sorted = column.sort && column.sort === this.query.sort;
      if (sorted) this.#heads[index].setAttribute('aria-sort', 'descending');
      else this.#heads[index].removeAttribute('aria-sort');
    });
  }

  show(page, history, selected) {
    if (page.objects.length === 0 && page.from > 0) this.query.from = 0;
    while (this.#rows.length < page.objects.length) this.#rows.push(this.#row());
    this.#rows.forEach((row, index) => {
      const object = page.objects[index];
      row.root.hidden = !object;
      if (object) fill(row, object, history.of(object.name)?.now, object.name === selected);
    });
    const last = page.from + page.objects.length;
    const none = this.query.name ? 'No link has such a name' : 'No links';
    const rows = page.objects.length ? `${page.from + 1}–${last} of ${page.total}` : none;
    say(byId('count'), this.query.sort ? `${rows}, the highest first` : rows);
    byId('previous').disabled = page.from === 0;
    byId('next').disabled = last >= page.total;
    byId('previous').parentElement.hidden = page.total <= ROWS;
  }

  #row() {
    const name = el('button', { type: 'button' });
    const [share, bar] = [el('span'), el('span')];
    const meter = el('span', { class: 'meter', 'aria-hidden': 'true' }, bar);
    const cells = COLUMNS.map(() => el('td'));
    cells[0].append(name);
    cells[1].append(meter, share);
    const root = el('tr', {}, ...cells);
    root.addEventListener('click', () => this.#select(name.textContent));
    this.#body.append(root);
    return { root, name, share, bar, meter, cells };
  }
}

function fill({ root, name, share, bar, meter, cells }, { name: text, settings, stats }, now, selected) {
  const limit = rateOf(settings);
  say(name, text);
  mark(name, 'title', text);
  mark(root, 'aria-selected', String(selected));
  say(share, now ? rate(now.out) : '…');
  const used = limit && now ? Math.min(1, now.out / limit) : 0;
  bar.style.width = `${Math.round(used * 100)}%`;
  mark(meter, 'data-load', String(load(now, limit)));
  say(cells[2], settings.rate ?? '');
  say(cells[3], settings.delay ?? (delayOf(settings) === 0 ? '0' : ''));
  say(cells[4], stats ? `${count(stats.queued_packets)} pkt` : '');
  const lost = dropped(stats);
  say(cells[5], count(lost));
  mark(cells[5], 'class', now?.dropped ? 'bad' : '');
  say(cells[6], stats ? time(stats.max_late_ns) : '');
}

/** What somebody types is looked for anywhere in a name, unless it is a pattern. */
function pattern(text) {
  const wanted = text.trim();
  return wanted === '' || wanted.includes('*') ? wanted : `*${wanted}*`;
}
