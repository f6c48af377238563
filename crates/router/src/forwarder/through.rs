//! Packets through the programs, between the classifier and minimal IP.

use super::bench::Bench;
use super::cost::Sampler;
use super::key::{Words, flow, hash};
use super::program::{Fid, Forwarder};
use super::ruling::{Ruling, fate, into_link, lost, put_back};
use super::table::Forwarders;
use crate::above::{Above, Upward};
use crate::classify::{Class, Classify};
use crate::meter::Meter;
use crate::next_hop::NextHop;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{BATCH, Checksum, Handle, Meta, Pool};
use longwire_program::{Context, Effects, Packet, Redirect, Verdict};
use longwire_punt::AttachmentId;
use longwire_units::Nanos;
use longwire_wire::finish_checksum;
use std::sync::Arc;

/// The programs of a router, and their working memory.
pub(crate) struct Programs {
    /// The installed ones.
    pub table: Arc<Forwarders>,
    bench: Bench,
    /// The remaining packets of a batch, if not all.
    left: Box<[Handle; BATCH]>,
    /// The rulings of a batch that have more than a fate, with the packets' indices: the first few.
    special: Box<[(usize, Ruling); BATCH]>,
}

/// The verdicts of programs on a packet so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passage {
    /// The last program and its verdict, unless it passed the packet.
    pub end: Option<(Verdict, Fid)>,
    /// Whether a program may have changed it.
    pub changed: bool,
    /// The packet's mark on arrival.
    first_mark: u32,
    queue: Option<u16>,
    /// The packet's mark, if a program has set it.
    pub mark: Option<u32>,
    /// The link to take if it is routed to where that begins.
    link: Option<u16>,
    way: Option<NextHop>,
    above: Option<(AttachmentId, Fid)>,
}

/// A packet on its way through programs.
struct Traveller<'r> {
    handle: Handle,
    context: Context,
    passage: Passage,
    /// Written in place: copying a structure just written in pieces would wait for the writes.
    ruling: &'r mut Ruling,
}

impl Programs {
    pub fn new(table: Forwarders) -> Self {
        Self {
            table: Arc::new(table),
            bench: Bench::new(),
            left: Box::new([Handle::NONE; BATCH]),
            special: Box::new([(0, Ruling::NONE); BATCH]),
        }
    }

    /// The programs, their working memory, and the list of remaining packets.
    pub(super) fn parts(&mut self) -> (&Forwarders, &mut Bench, &mut [Handle; BATCH]) {
        (&self.table, &mut self.bench, &mut self.left)
    }

    /// Decides about every packet of a classified batch, through programs of any kind.
    #[inline(never)]
    pub fn forward<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        mut above: Option<&mut Above>,
        pool: &mut Pool,
        (handles, classes): (&[Handle], &mut [Class; BATCH]),
        out: &mut Outbox,
    ) {
        let mut fates = [None; BATCH];
        let Self { table, bench, special, .. } = self;
        let mut specials = 0;
        // A packet that goes up later keeps those behind it from going up at once.
        let mut goes_up_later = false;
        for (at, (&handle, class)) in handles.iter().zip(classes.iter_mut()).enumerate() {
            if !matches!(class, Class::Dropped(_)) {
                let (place, ruling) = &mut special[specials];
                *place = at;
                ruling.clear();
                let above = above.as_deref_mut().map(|above| (above, !goes_up_later));
                let router = (&mut *core, &mut *classifier, above);
                rule((table, &mut *bench), router, pool, (handle, class), ruling, out);
                fates[at] = ruling.fate;
                goes_up_later |= ruling.above.is_some();
                specials += usize::from(ruling.is_special());
            }
        }
        let ahead = core.look_ahead(&classes[..handles.len()]);
        let mut special = special[..specials].iter().peekable();
        for (at, (&handle, &class)) in handles.iter().zip(&*classes).enumerate() {
            let Some((_, ruling)) = special.next_if(|(place, _)| *place == at) else {
                let fate =
                    fates[at].unwrap_or_else(|| core.decide_ahead(pool, handle, class, (&ahead, at), out));
                core.book(pool.meta_mut(handle), fate);
                continue;
            };
            let (own, fate) = carry_out(core, above.as_deref_mut(), pool, (handle, class, ruling), out);
            if ruling.instead.is_none() {
                core.book(pool.meta_mut(handle), fate);
            } else {
                core.book(pool.meta_mut(handle), Fate::Consumed);
                out.because_of(pool.meta(handle));
                core.settle(pool, own, fate, out);
            }
        }
    }

    /// Decides about a single packet. Returns the packet that replaces it, if any; the packet itself is then
    /// done with.
    pub fn decide_one<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        mut above: Option<&mut Above>,
        pool: &mut Pool,
        handle: Handle,
        out: &mut Outbox,
    ) -> (Handle, Fate) {
        let mut class = core.classify_one(classifier, pool, handle);
        let mut ruling = Ruling::NONE;
        if !self.table.is_empty() && !matches!(class, Class::Dropped(_)) {
            self.bench.sampler.count();
            let router = (&mut *core, &mut *classifier, above.as_deref_mut().map(|above| (above, true)));
            rule((&self.table, &mut self.bench), router, pool, (handle, &mut class), &mut ruling, out);
        }
        let decided = carry_out(core, above, pool, (handle, class, &ruling), out);
        core.before.clear();
        decided
    }

    /// The next hop of a flow's packets, if installations set one: that of the last one that a packet meets.
    pub fn way(&self, words: &Words) -> Option<NextHop> {
        let general = self.table.general.iter().rev().find_map(|forwarder| forwarder.installation.way);
        general.or_else(|| self.own(words)?.installation.way)
    }

    /// The program of a flow, if any.
    fn own(&self, words: &Words) -> Option<&Forwarder> {
        self.table.space.find(words).and_then(|place| self.table.flows.get(place)).map(AsRef::as_ref)
    }

    /// Worst-case cost of a packet of a flow, in picoseconds: classifying, lookups, its programs and
    /// forwarding.
    pub fn price(&self, words: &Words) -> u64 {
        self.table.price(self.own(words))
    }

    /// Starts sampling the cost of programs.
    pub fn measure(&mut self, meter: Meter) {
        self.bench.sampler = Sampler::with(meter);
    }

    /// Counts a batch. Returns whether it is to be measured.
    #[inline]
    pub fn is_sampled(&mut self) -> bool {
        self.bench.sampler.count()
    }

    /// From now on other threads run the programs, too.
    pub fn share(&mut self) {
        self.bench.alone = false;
    }
}

/// Runs a packet's programs, and sets its ruling, which must be empty. `above` includes whether it may go up
/// at once, because none before it still has to.
fn rule<C: Classify>(
    (table, bench): (&Forwarders, &mut Bench),
    (core, classifier, above): (&mut Core, &mut C, Option<(&mut Above, bool)>),
    pool: &mut Pool,
    (handle, class): (Handle, &mut Class),
    ruling: &mut Ruling,
    out: &mut Outbox,
) {
    if table.writes {
        core.before.note(pool, handle);
    }
    let (meta, frame) = pool.parts_mut(handle);
    // The engine was asked for single packets, and refuses those with a checksum field outside them.
    if meta.is_train() || finish_checksum(meta, frame).is_err() {
        *ruling = Ruling::lost(DropReason::BadFrame);
        return;
    }
    let words = if table.space.is_empty() { None } else { flow(frame) };
    let own = words.as_ref().and_then(|flow| table.space.find(flow));
    if table.general.is_empty() {
        let Some(own) = own.and_then(|place| table.flows.get(place)) else { return };
        if let (Some(attachment), Some((above, at_once))) = (own.early, above) {
            // The level's refusal comes before anything expensive: a flood must cost less than what it would
            // displace.
            if above.punt.refuses(attachment, Nanos(meta.arrival)) {
                own.counters.passed(1, bench.alone);
                ruling.fate = Some(Fate::Dropped(DropReason::LevelFull));
                return;
            }
            // So that the next one of its batch is refused as early as one of a later batch.
            if at_once {
                own.counters.passed(1, bench.alone);
                ruling.way = own.installation.way;
                ruling.fate = go_up(own, attachment, above, pool, (handle, *class, words.as_ref()));
                return;
            }
        }
    }
    let meta = pool.meta(handle);
    let context = context(meta);
    let mut traveller = Traveller { handle, passage: Passage::begin(context.mark), context, ruling };
    for forwarder in table.met(own) {
        traveller.meet(forwarder, bench, core, pool, out);
        if traveller.passage.end.is_some() || traveller.ruling.fate.is_some() {
            break;
        }
    }
    let packet = (traveller.handle, class, words.as_ref());
    traveller.passage.rule((core, classifier), table, pool, packet, traveller.ruling);
}

/// Sends a packet up whose program does nothing else. None if nobody is attached.
fn go_up(
    own: &Forwarder,
    attachment: AttachmentId,
    above: &mut Above,
    pool: &mut Pool,
    (handle, class, words): (Handle, Class, Option<&Words>),
) -> Option<Fate> {
    if let Some(queue) = own.queue() {
        take_queue(pool.meta_mut(handle), queue);
    }
    let upward = Upward { attachment, fid: own.fid.0, flow: words.map_or(0, hash) };
    above.offer(pool, handle, &upward, class)
}

/// Carries out a ruling. Returns the packet that replaces it, if any.
pub(crate) fn carry_out(
    core: &mut Core,
    above: Option<&mut Above>,
    pool: &mut Pool,
    (handle, class, ruling): (Handle, Class, &Ruling),
    out: &mut Outbox,
) -> (Handle, Fate) {
    let own = ruling.instead.unwrap_or(handle);
    let up = match (above, &ruling.above) {
        (Some(above), Some(upward)) if ruling.fate.is_none() => above.offer(pool, own, upward, class),
        _ => None,
    };
    if up == Some(Fate::Kept) {
        core.before.go_up(pool, own);
    }
    let fate = match (ruling.fate.or(up), ruling.way) {
        (Some(fate), _) => fate,
        (None, None) => core.decide(pool, own, class, out),
        (None, Some(way)) => core.decide_bound(pool, own, (class, way), out),
    };
    (own, fate)
}

/// A queue beyond the last band means the last.
const LAST_BAND: u16 = Meta::NO_BAND as u16 - 1;

/// Sets a packet's output queue.
#[inline]
pub(super) fn take_queue(meta: &mut Meta, queue: u16) {
    meta.set_band(queue.min(LAST_BAND) as u8);
    meta.flags |= Meta::BANDED;
}

impl Passage {
    /// For a packet before its first program, with this mark.
    pub fn begin(mark: u32) -> Self {
        Self { first_mark: mark, ..Self::default() }
    }

    /// Adds a program's verdict.
    #[inline]
    pub fn note(&mut self, forwarder: &Forwarder, verdict: Verdict, effects: &Effects) {
        let installation = &forwarder.installation;
        self.changed |= forwarder.writes;
        if installation.way.is_some() {
            self.way = installation.way;
        }
        self.mark = effects.mark.or(self.mark);
        let mark = self.mark.unwrap_or(self.first_mark);
        if let Some(attachment) = installation.above
            && installation.mark.is_none_or(|wanted| wanted == mark)
        {
            self.above = Some((attachment, forwarder.fid));
        }
        if let Some(queue) = effects.queue.or(forwarder.queue()) {
            self.queue = Some(queue);
        }
        // A number that is none of its links chooses none.
        if let Some(number) = effects.link {
            self.link = installation.links.get(number as usize).map(|link| link.number);
        }
        if verdict != Verdict::Pass {
            self.end = Some((verdict, forwarder.fid));
        }
    }

    /// Clears a level that may be gone: `is_there` says which programs are still installed.
    pub fn keep_above(&mut self, is_there: impl Fn(Fid) -> bool) {
        self.above = self.above.filter(|(_, fid)| is_there(*fid));
    }

    /// The resulting ruling on the packet; `table` is that of the programs, and the words are its flow, if
    /// known. A changed packet is classified again. A fate that is already decided stays.
    pub fn rule<C: Classify>(
        &self,
        (core, classifier): (&mut Core, &mut C),
        table: &Forwarders,
        pool: &mut Pool,
        (handle, class, words): (Handle, &mut Class, Option<&Words>),
        ruling: &mut Ruling,
    ) {
        let (meta, frame) = pool.parts_mut(handle);
        ruling.way = self.way;
        if let Some((attachment, fid)) = self.above {
            let flow = words.map(hash).or_else(|| flow(frame).map(|words| hash(&words))).unwrap_or(0);
            ruling.above = Some(Upward { attachment, fid: fid.0, flow });
        }
        if let Some(mark) = self.mark {
            meta.set_mark(mark);
        }
        if let Some((verdict, fid)) = self.end {
            let fate = match verdict {
                Verdict::Redirect(Redirect::Link(number)) => {
                    into_link(core, (table, fid), number, meta).or_else(|| Some(lost(table, fid)))
                }
                _ => fate(core, verdict, meta.in_port, || lost(table, fid)),
            };
            ruling.fate = ruling.fate.or(fate);
        } else if let Some(link) = self.link {
            meta.request_link(link);
        }
        if let Some(queue) = self.queue {
            take_queue(meta, queue);
        }
        // A packet with a known next hop is not classified again: its label is gone.
        if ruling.fate.is_none() && self.changed && !matches!(class, Class::Switched { .. }) {
            *class = core.classify_again(classifier, pool, handle);
            core.prefetch_route(class);
        }
    }
}

impl Traveller<'_> {
    /// Runs a program on the packet.
    fn meet(
        &mut self,
        forwarder: &Forwarder,
        bench: &mut Bench,
        core: &mut Core,
        pool: &mut Pool,
        out: &mut Outbox,
    ) {
        let began = bench.sampler.begin();
        let (verdict, effects) = if forwarder.moves {
            let (verdict, effects, frame) =
                forwarder.run_with_room(bench, self.context, pool.data(self.handle), core);
            if !matches!(verdict, Verdict::Drop(_) | Verdict::Aborted(_)) {
                self.handle = put_back(core, pool, self.handle, frame, self.ruling, out);
            }
            (verdict, effects)
        } else {
            let (meta, frame) = pool.parts_mut(self.handle);
            if forwarder.writes {
                meta.checksum = Checksum::Unknown as u8;
            }
            let len = frame.len();
            let (packet, alone) = (Packet::new(frame, 0..len), bench.alone);
            let (verdict, effects, _) =
                forwarder.run_on(&mut bench.stack, alone, self.context, packet, Some(&*core));
            (verdict, effects)
        };
        bench.sampler.end(began, &forwarder.costs);
        self.passage.note(forwarder, verdict, &effects);
        self.context.mark = self.passage.mark.unwrap_or(self.context.mark);
    }
}

/// A program's context for a packet at its router.
pub(super) fn context(meta: &Meta) -> Context {
    Context { ingress: meta.in_port.into(), now: meta.arrival, mark: meta.mark(), ..Context::default() }
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Programs").field("table", &self.table).finish_non_exhaustive()
    }
}
