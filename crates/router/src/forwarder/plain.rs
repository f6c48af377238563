//! Fast path for programs that only inspect or rewrite packets, and pass or drop them: filters, counters and
//! translators, as most are. They are prepared once per batch, and packets meet them one after the other.
//! None of them chooses links or reads marks, though they may set some.

use super::key::flow;
use super::program::{Forwarder, Ready};
use super::ruling::fate;
use super::table::Forwarders;
use super::through::{Programs, take_queue};
use crate::classify::{Class, Classify};
use crate::state::{Core, Fate};
use longwire_block::DropReason;
use longwire_jit::{Arrival, BoundSession, Session, Shown, Visit};
use longwire_packet::{BATCH, Checksum, Handle, Meta, Pool};
use longwire_program::{Context, Effects, Verdict};
use longwire_wire::finish_checksum;

/// The programs' ruling on a packet, unless it passes unchanged.
#[derive(Clone, Copy)]
struct ProgramRuling<'t> {
    /// The verdict of the program that did not pass it.
    end: Option<(Verdict, &'t Forwarder)>,
    /// Whether a program may have changed it.
    changed: bool,
    queue: Option<u16>,
    mark: Option<u32>,
}

impl ProgramRuling<'_> {
    /// On a packet that passes.
    const NONE: Self = Self { end: None, changed: false, queue: None, mark: None };
}

impl Programs {
    /// Runs the programs on a batch if all are plain, except on dropped packets, which are marked by bits.
    /// Returns the remaining packets, and moves their classes to the front.
    #[inline(never)]
    pub fn rule_plain<'l, C: Classify>(
        &'l mut self,
        router: (&mut Core, &mut C),
        pool: &mut Pool,
        (handles, dropped): (&'l [Handle], u64),
        classes: &mut [Class; BATCH],
    ) -> &'l [Handle] {
        let (table, bench, left) = self.parts();
        if table.writes {
            for (&handle, class) in handles.iter().zip(&*classes) {
                if !matches!(class, Class::Dropped(_)) {
                    router.0.before.note(pool, handle);
                }
            }
        }
        let alone = bench.alone;
        let mut session = Session::new(&mut bench.stack, Context::default());
        let ruled = match &*table.general {
            [only] if table.flows.is_empty() => {
                let Some(ready) = only.ready() else { return handles };
                let visits = (&mut session, &mut *bench.visits);
                rule_by_one(router, pool, (handles, classes, dropped), visits, (&ready, alone))
            }
            _ => rule(router, pool, (handles, classes), |arrival, frame| {
                meet(table, &mut session.show(arrival, frame), alone)
            }),
        };
        if ruled == 0 { handles } else { closed_up(ruled, (handles, classes), left) }
    }
}

/// Runs a program on packets if it is the only one, so that no flow lookup is needed.
fn rule_by_one<C: Classify>(
    router: (&mut Core, &mut C),
    pool: &mut Pool,
    (handles, classes, dropped): (&[Handle], &mut [Class; BATCH], u64),
    (session, visits): (&mut Session<'_>, &mut [Visit; BATCH]),
    (ready, alone): (&Ready<'_>, bool),
) -> u64 {
    let Some(code) = ready.code() else {
        let mut passed = 0;
        let ruled = rule(router, pool, (handles, classes), |arrival, frame| {
            ruling_of_one(ready, ready.run(&mut session.show(arrival, frame), alone), &mut passed)
        });
        ready.passed(passed, alone);
        return ruled;
    };
    let packets = (handles, classes, dropped);
    visit(router, pool, packets, (&mut session.bind(code), visits), (ready, alone))
}

/// Runs a program without helper calls on all packets at once, except dropped ones.
fn visit<C: Classify>(
    (core, classifier): (&mut Core, &mut C),
    pool: &mut Pool,
    (handles, classes, dropped): (&[Handle], &mut [Class; BATCH], u64),
    (bound, visits): (&mut BoundSession<'_>, &mut [Visit; BATCH]),
    (ready, alone): (&Ready<'_>, bool),
) -> u64 {
    let (mut hidden, mut ruled) = (dropped, 0);
    let mut shown = [Handle::NONE; BATCH];
    shown[..handles.len()].copy_from_slice(handles);
    bits(dropped).for_each(|at| shown[at] = Handle::NONE);
    let (mut loud, mut from) = (0, 0);
    while from < handles.len() {
        let packets = (&shown[from..handles.len()], &mut visits[from..]);
        let visited = bound.run(pool, packets.0, packets.1, ready.quiet());
        loud |= visited.loud << from;
        from += visited.count as usize;
        if let Some(&handle) = handles.get(from)
            && !make_whole(core, pool, handle)
        {
            (hidden, ruled) = (hidden | 1 << from, ruled | 1 << from);
            shown[from] = Handle::NONE;
        }
    }
    let mut passed = handles.len() as u64 - u64::from((loud | hidden).count_ones());
    for at in bits(loud & !hidden) {
        let heard = ready.heard(visits[at].returned(), alone);
        if let Some(ruling) = ruling_of_one(ready, heard, &mut passed) {
            let packet = (handles[at], &mut classes[at]);
            let goes_on = obey((&mut *core, &mut *classifier), pool, packet, &ruling);
            ruled |= u64::from(!goes_on) << at;
        }
    }
    ready.passed(passed, alone);
    ruled
}

/// Indices of the set bits, lowest first.
fn bits(set: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(set), |left| Some(left & left.wrapping_sub(1)))
        .take_while(|left| *left > 0)
        .map(|left| left.trailing_zeros() as usize)
}

/// Whether a packet can be passed to a program as it is.
#[inline]
fn is_whole(meta: &Meta) -> bool {
    !meta.is_train() && meta.checksum != Checksum::Partial as u8
}

/// Finishes a packet's checksum. A packet that can't be passed to a program is recorded as lost.
#[cold]
fn make_whole(core: &mut Core, pool: &mut Pool, handle: Handle) -> bool {
    let (meta, frame) = pool.parts_mut(handle);
    // The engine was asked for single packets, and refuses those with a checksum field outside them.
    let is_lost = meta.is_train() || finish_checksum(meta, frame).is_err();
    if is_lost {
        core.book(meta, Fate::Dropped(DropReason::BadFrame));
    }
    !is_lost
}

/// The only program's ruling on a packet, unless it passes unchanged.
#[inline(never)]
fn ruling_of_one<'t>(
    ready: &Ready<'t>,
    ruling: Option<(Verdict, Effects)>,
    passed: &mut u64,
) -> Option<ProgramRuling<'t>> {
    let only = ready.forwarder;
    let (changed, queue) = (only.writes, only.queue());
    let Some((verdict, effects)) = ruling else {
        *passed += 1;
        let ruling = ProgramRuling { changed, queue, ..ProgramRuling::NONE };
        return (changed || queue.is_some()).then_some(ruling);
    };
    let (end, queue) = (end(verdict, only), effects.queue.or(queue));
    Some(ProgramRuling { end, changed, queue, mark: effects.mark })
}

/// A batch's packets have a bit each.
const _: () = assert!(BATCH <= u64::BITS as usize);

/// The packets without a bit; their classes are moved to the front.
fn closed_up<'l>(
    ruled: u64,
    (handles, classes): (&[Handle], &mut [Class; BATCH]),
    left: &'l mut [Handle; BATCH],
) -> &'l [Handle] {
    let mut count = 0;
    for (at, &handle) in handles.iter().enumerate() {
        if ruled >> at & 1 == 0 {
            (left[count], classes[count]) = (handle, classes[at]);
            count += 1;
        }
    }
    &left[..count]
}

/// Runs programs on packets, and records those that do not pass, with a bit for each; the others are
/// classified again if they may have changed. `run` returns none for a packet that passes unchanged.
#[inline]
fn rule<'t, C: Classify>(
    (core, classifier): (&mut Core, &mut C),
    pool: &mut Pool,
    (handles, classes): (&[Handle], &mut [Class; BATCH]),
    mut run: impl FnMut(Arrival, &mut [u8]) -> Option<ProgramRuling<'t>>,
) -> u64 {
    let mut ruled = 0;
    let classes = &mut classes[..handles.len()];
    for at in 0..handles.len() {
        let (class, handle) = (&mut classes[at], handles[at]);
        if matches!(class, Class::Dropped(_)) {
            continue;
        }
        if !is_whole(pool.meta(handle)) && !make_whole(core, pool, handle) {
            ruled |= 1 << at;
            continue;
        }
        let (meta, frame) = pool.parts_mut(handle);
        if let Some(ruling) = run(arrival(meta), frame) {
            let goes_on = obey((&mut *core, &mut *classifier), pool, (handle, class), &ruling);
            ruled |= u64::from(!goes_on) << at;
        }
    }
    ruled
}

/// Carries out its programs' ruling on a packet. Returns whether it goes on.
#[inline(never)]
fn obey<C: Classify>(
    (core, classifier): (&mut Core, &mut C),
    pool: &mut Pool,
    (handle, class): (Handle, &mut Class),
    ruling: &ProgramRuling<'_>,
) -> bool {
    let meta = pool.meta_mut(handle);
    if ruling.changed {
        meta.checksum = Checksum::Unknown as u8;
    }
    if let Some(queue) = ruling.queue {
        take_queue(meta, queue);
    }
    if let Some(mark) = ruling.mark {
        meta.set_mark(mark);
    }
    if let Some(end) = ruling.end {
        book(core, meta, end);
        return false;
    }
    if ruling.changed {
        look_again(core, classifier, pool, handle, class);
    }
    true
}

/// Records a packet that did not pass.
#[inline(never)]
fn book(core: &mut Core, meta: &mut Meta, (verdict, forwarder): (Verdict, &Forwarder)) {
    let lost = || {
        forwarder.counters.redirected_nowhere();
        Fate::Dropped(DropReason::Aborted)
    };
    let fate = fate(core, verdict, meta.in_port, lost);
    core.book(meta, fate.unwrap_or(Fate::Dropped(DropReason::Aborted)));
}

/// Classifies a packet that may have changed. One with a known next hop is not classified again: its label is
/// gone.
#[inline(never)]
fn look_again<C: Classify>(
    core: &Core,
    classifier: &mut C,
    pool: &mut Pool,
    handle: Handle,
    class: &mut Class,
) {
    if !matches!(class, Class::Switched { .. }) {
        *class = core.classify_again(classifier, pool, handle);
        core.prefetch_route(class);
    }
}

/// Runs a packet's programs until one does not pass it.
fn meet<'t>(table: &'t Forwarders, shown: &mut Shown<'_>, alone: bool) -> Option<ProgramRuling<'t>> {
    let words = if table.space.is_empty() { None } else { flow(shown.frame()) };
    let own = words.and_then(|flow| table.space.find(&flow));
    let mut ruling = ProgramRuling::NONE;
    for ready in table.met(own).filter_map(Forwarder::ready) {
        let forwarder: &Forwarder = ready.forwarder;
        let asked = match ready.run(shown, alone) {
            None => {
                ready.passed(1, alone);
                None
            }
            Some((verdict, effects)) => {
                ruling.end = end(verdict, forwarder);
                ruling.mark = effects.mark.or(ruling.mark);
                effects.queue
            }
        };
        ruling.changed |= forwarder.writes;
        ruling.queue = asked.or(forwarder.queue()).or(ruling.queue);
        if ruling.end.is_some() {
            break;
        }
    }
    let more = ruling.end.is_some() || ruling.changed || ruling.queue.is_some() || ruling.mark.is_some();
    more.then_some(ruling)
}

/// A program's verdict, unless it passed the packet.
fn end(verdict: Verdict, forwarder: &Forwarder) -> Option<(Verdict, &Forwarder)> {
    (verdict != Verdict::Pass).then_some((verdict, forwarder))
}

/// Programs' context for a packet at its router (see [`context`](super::through::context)).
const fn arrival(meta: &Meta) -> Arrival {
    Arrival { ingress: meta.in_port as u32, now: meta.arrival, mark: meta.mark() }
}
