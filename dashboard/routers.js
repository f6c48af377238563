// Routers: shares of the flows on their processors, and what their programs may take.

import { count, percent, time } from './format.js';
import { byId, el, say } from './dom.js';

/** Routers that are shown, and flows and programs of each. */
export const MOST_ROUTERS = 12;
const MOST_BARS = 16;

export class Routers {
  /** Of each router the last look, and the one before it. */
  #looks = new Map();

  /** Shows the card if there are routers. */
  offer(number) {
    byId('routers').hidden = !number;
  }

  /** The look to compare this one with. */
  #since(name, look) {
    const known = this.#looks.get(name);
    if (known?.last.ns === look.ns) return known.before;
    // Time that runs backwards is that of another run.
    const before = known?.last.ns < look.ns ? known.last : null;
    this.#looks.set(name, { last: look, before });
    return before;
  }

  /** Shows a page of routers; `programs` has the answers about their forwarders. */
  show({ total, objects, counted_ns: ns }, programs) {
    const blocks = objects.map((router) => {
      const forwarded = router.stats?.forwarded ?? 0;
      const used = (router.stats?.processors?.flows ?? []).map((flow) => flow.processor_ns);
      const since = this.#since(router.name, { ns, forwarded, used });
      const seconds = since ? Math.max(1e-3, (ns - since.ns) / 1e9) : 1;
      const pace = since ? Math.max(0, forwarded - since.forwarded) / seconds : 0;
      const head = el('h3', { text: `${router.name}: ${count(pace)} packets/s` });
      return el('div', { class: 'router' }, head, ...shares(router, since?.used), ...budgets(programs.get(router.name)));
    });
    byId('router-list').replaceChildren(...blocks);
    say(byId('routers-title'), total > objects.length ? `Routers (${objects.length} of ${total})` : 'Routers');
  }
}

function bar(name, share, text, title) {
  const inner = el('span');
  inner.style.width = `${Math.min(100, Math.max(0, share * 100)).toFixed(1)}%`;
  return el(
    'div',
    { class: 'share', title },
    el('span', { text: name }),
    el('span', { class: 'meter', role: 'img', 'aria-label': `${name}: ${text}` }, inner),
    el('span', { text }),
  );
}

/** What each flow got of the processors since the last look, beside what its weight says. */
function shares(router, before) {
  const flows = router.stats?.processors?.flows ?? [];
  const used = flows.map((flow, index) => Math.max(0, flow.processor_ns - (before?.[index] ?? 0)));
  const all = used.reduce((sum, one) => sum + one, 0);
  const weights = flows.reduce((sum, flow) => sum + flow.weight, 0);
  return flows.slice(0, MOST_BARS).map((flow, index) => {
    const share = all ? used[index] / all : 0;
    const due = percent(flow.weight / weights);
    return bar(flow.flow, share, `${percent(share)}, weight ${flow.weight}`, `its weight is ${due} of all`);
  });
}

/** What the programs need at worst of a packet's budget, and each of them. */
function budgets(answer) {
  if (!answer?.forwarders?.length) return [];
  const limit = answer.budget.picoseconds ? answer.budget.picoseconds / 1000 : null;
  const whole = Object.entries(answer.budget).map(([unit, most]) => {
    const need = answer.need[unit] ?? 0;
    const written = (number) => (unit === 'picoseconds' ? time(number / 1000) : `${count(number)} ${unit}`);
    return bar('Budget of a packet', need / most, `${written(need)} of ${written(most)}`, 'at worst, all programs together');
  });
  const worst = Math.max(1, ...answer.forwarders.map((program) => program.cost.worst_case_ns));
  const each = answer.forwarders.slice(0, MOST_BARS).map((program) => {
    const cost = program.cost.worst_case_ns;
    const counted = `${count(program.packets)} packets, ${count(program.dropped)} dropped`;
    return bar(program.name, cost / (limit ?? worst), `${time(cost)} at worst`, `${program.key}: ${counted}`);
  });
  return [...whole, ...each];
}
