//! Packets through the programs: between the classifier and minimal IP.

use super::key::{Words, flow, hash};
use super::program::{Bench, Forwarder};
use super::table::Forwarders;
use crate::above::{Above, Upward};
use crate::classify::{Class, Classify};
use crate::hops::NextHop;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{BATCH, Batch, Checksum, Handle, Meta, Pool};
use longwire_program::{Context, Effects, Redirect, Verdict};
use longwire_wire::finish_checksum;
use std::sync::Arc;

/// The programs of a router, and what they are run with.
pub(crate) struct Programs {
    table: Arc<Forwarders>,
    bench: Bench,
}

/// What programs have made of a packet.
#[derive(Clone, Copy)]
struct Ruling {
    /// What becomes of it, if that is settled.
    fate: Option<Fate>,
    /// Where it goes instead of where a route says.
    way: Option<NextHop>,
    /// The level above that it goes up to.
    above: Option<Upward>,
    /// The packet that has taken its place, which had too little room.
    instead: Option<Handle>,
}

impl Ruling {
    const NONE: Self = Self { fate: None, way: None, above: None, instead: None };
}

/// A packet on its way through programs.
struct Traveller {
    handle: Handle,
    context: Context,
    /// Whether a program may have changed it.
    changed: bool,
    queue: Option<u16>,
    ruling: Ruling,
}

impl Programs {
    pub fn new(table: Forwarders) -> Self {
        Self { table: Arc::new(table), bench: Bench::new() }
    }

    /// Those that are installed.
    pub fn table(&self) -> &Arc<Forwarders> {
        &self.table
    }

    /// Puts another table in the place of the one that it was made from; gives it back if that is not the router's any more.
    pub fn replace(
        &mut self,
        made_from: &Arc<Forwarders>,
        table: Arc<Forwarders>,
    ) -> Result<Arc<Forwarders>, Arc<Forwarders>> {
        if Arc::ptr_eq(made_from, &self.table) {
            Ok(std::mem::replace(&mut self.table, table))
        } else {
            Err(table)
        }
    }

    /// Puts another table in the place of this one.
    pub fn put(&mut self, table: Arc<Forwarders>) {
        self.table = table;
    }

    /// Decides about every packet of a batch, through the programs.
    pub fn forward<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        above: Option<&mut Above>,
        pool: &mut Pool,
        batch: &Batch,
        out: &mut Outbox,
    ) {
        let mut above = above;
        let handles = batch.as_slice();
        let mut classes = [Class::Dropped(DropReason::PortDown); BATCH];
        let mut rulings = [Ruling::NONE; BATCH];
        core.classify(classifier, pool, handles, &mut classes);
        for ((&handle, class), ruling) in handles.iter().zip(&mut classes).zip(&mut rulings) {
            if !matches!(class, Class::Dropped(_)) {
                *ruling = self.rule((&mut *core, &mut *classifier), pool, (handle, class), out);
            }
        }
        core.prefetch_nodes(&classes[..handles.len()]);
        for ((&handle, &class), &ruling) in handles.iter().zip(&classes).zip(&rulings) {
            let own = ruling.instead.unwrap_or(handle);
            let up = match (&mut above, &ruling.above) {
                (Some(above), Some(upward)) if ruling.fate.is_none() => above.offer(pool, own, upward, class),
                _ => None,
            };
            let fate = match (ruling.fate.or(up), ruling.way) {
                (Some(fate), _) => fate,
                (None, None) => core.decide(pool, own, class, out),
                (None, Some(way)) => core.decide_bound(pool, own, (class, way), out),
            };
            let segments = pool.meta(handle).segments;
            core.counts.received += u64::from(segments);
            if ruling.instead.is_none() {
                pool.meta_mut(handle).out_port = fate.code();
                core.counts.note(fate, segments);
            } else {
                pool.meta_mut(handle).out_port = Fate::Consumed.code();
                core.counts.note(Fate::Consumed, segments);
                out.because_of(pool.meta(handle));
                core.settle(pool, own, fate, out);
            }
        }
        if let Some(above) = above {
            above.flush(pool, handles);
        }
    }

    /// Decides about one packet by itself. If another has taken its place, it is the one that is answered, and the packet itself is done with.
    pub fn decide_one<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        above: Option<&mut Above>,
        pool: &mut Pool,
        handle: Handle,
        out: &mut Outbox,
    ) -> (Handle, Fate) {
        let (meta, frame) = pool.parts_mut(handle);
        let mut class = match core.ports.at(meta.in_port) {
            Some(port) => classifier.classify(port, meta, frame),
            None => Class::Dropped(DropReason::PortDown),
        };
        if self.table.is_empty() || matches!(class, Class::Dropped(_)) {
            return (handle, core.decide(pool, handle, class, out));
        }
        let ruling = self.rule((&mut *core, &mut *classifier), pool, (handle, &mut class), out);
        let own = ruling.instead.unwrap_or(handle);
        let up = match (above, &ruling.above) {
            (Some(above), Some(upward)) if ruling.fate.is_none() => above.offer(pool, own, upward, class),
            _ => None,
        };
        let fate = match (ruling.fate.or(up), ruling.way) {
            (Some(fate), _) => fate,
            (None, None) => core.decide(pool, own, class, out),
            (None, Some(way)) => core.decide_bound(pool, own, (class, way), out),
        };
        (own, fate)
    }

    /// The program of a flow, if it has one.
    pub fn own(&self, words: &Words) -> Option<&Forwarder> {
        if self.table.space.is_empty() {
            return None;
        }
        self.table.space.find(words).and_then(|place| self.table.flows.get(place)).map(AsRef::as_ref)
    }

    /// What a packet of a flow costs at worst, in picoseconds: classifying, lookups, its programs and forwarding, as they are priced.
    pub fn price(&self, words: &Words) -> u64 {
        self.table.price(self.own(words))
    }

    /// Runs a packet's programs on it, and says what it is then.
    fn rule<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        pool: &mut Pool,
        (handle, class): (Handle, &mut Class),
        out: &mut Outbox,
    ) -> Ruling {
        let (meta, frame) = pool.parts_mut(handle);
        // The engine was asked for single packets, and takes none in whose checksum lies outside them.
        if meta.is_train() || finish_checksum(meta, frame).is_err() {
            return Ruling { fate: Some(Fate::Dropped(DropReason::BadFrame)), ..Ruling::NONE };
        }
        let context = Context { ingress: meta.in_port.into(), queue: 0, now: meta.arrival, worker: 0 };
        let words = if self.table.space.is_empty() { None } else { flow(frame) };
        let own = words.and_then(|flow| self.table.space.find(&flow));
        let own = own.and_then(|place| self.table.flows.get(place));
        let mut traveller = Traveller { handle, context, changed: false, queue: None, ruling: Ruling::NONE };
        for forwarder in own.into_iter().chain(&*self.table.general) {
            traveller.meet(forwarder, &mut self.bench, core, pool, out);
            if traveller.ruling.fate.is_some() {
                break;
            }
        }
        let (meta, frame) = pool.parts_mut(traveller.handle);
        if let Some(upward) = &mut traveller.ruling.above {
            upward.flow = words.or_else(|| flow(frame)).map_or(0, |words| hash(&words));
        }
        if let Some(queue) = traveller.queue {
            (meta.band, meta.flags) = (queue.min(LAST_BAND) as u8, meta.flags | Meta::BANDED);
        }
        // What knows its next hop already is not looked at again: its label is gone.
        let open = traveller.ruling.fate.is_none();
        if open && traveller.changed && !matches!(class, Class::Switched { .. }) {
            *class = match core.ports.at(meta.in_port) {
                Some(port) => classifier.classify(port, meta, frame),
                None => Class::Dropped(DropReason::PortDown),
            };
            core.prefetch_route(class);
        }
        traveller.ruling
    }
}

/// A queue beyond the last band is the last.
const LAST_BAND: u16 = Meta::NO_BAND as u16 - 1;

impl Traveller {
    /// Runs a program on the packet.
    fn meet(
        &mut self,
        forwarder: &Forwarder,
        bench: &mut Bench,
        core: &mut Core,
        pool: &mut Pool,
        out: &mut Outbox,
    ) {
        let (verdict, effects) = if forwarder.moves() {
            self.run_with_room(forwarder, bench, core, pool, out)
        } else {
            let (meta, frame) = pool.parts_mut(self.handle);
            if forwarder.writes {
                meta.checksum = Checksum::Unknown as u8;
            }
            forwarder.run(bench, self.context, frame)
        };
        self.changed |= forwarder.writes;
        let installation = &forwarder.installation;
        self.ruling.way = installation.way.or(self.ruling.way);
        if let Some(seat) = installation.above {
            self.ruling.above = Some(Upward { seat, fid: forwarder.fid.0, flow: 0 });
        }
        self.queue = effects.queue.or(installation.queue.map(u16::from)).or(self.queue);
        let in_port = self.context.ingress;
        let fate = match verdict {
            Verdict::Pass => None,
            Verdict::Transmit => way_out(core, in_port),
            Verdict::Redirect(Redirect::Port(port)) => way_out(core, port).or_else(|| lost(forwarder)),
            Verdict::Redirect(Redirect::Link(_)) => lost(forwarder),
            Verdict::Drop(_) => Some(Fate::Dropped(DropReason::Program)),
            Verdict::Aborted(_) => Some(Fate::Dropped(DropReason::Aborted)),
        };
        self.ruling.fate = self.ruling.fate.or(fate);
    }

    /// Runs a program that may move the packet's ends.
    fn run_with_room(
        &mut self,
        forwarder: &Forwarder,
        bench: &mut Bench,
        core: &mut Core,
        pool: &mut Pool,
        out: &mut Outbox,
    ) -> (Verdict, Effects) {
        let (verdict, effects, frame) = forwarder.run_with_room(bench, self.context, pool.data(self.handle));
        if matches!(verdict, Verdict::Drop(_) | Verdict::Aborted(_)) {
            return (verdict, effects);
        }
        let old = *pool.meta(self.handle);
        if !pool.resize(self.handle, frame.len()) {
            out.because_of(&old);
            let Some(longer) = core.make(pool, old.in_port, frame.len(), out) else {
                self.ruling.fate = Some(Fate::Dropped(DropReason::PoolFull));
                return (verdict, effects);
            };
            let meta = pool.meta_mut(longer);
            (meta.place, meta.seq) = (old.place, old.seq);
            if self.ruling.instead.replace(longer).is_some() {
                core.settle(pool, self.handle, Fate::Consumed, out);
            }
            self.handle = longer;
        }
        let (meta, place) = pool.parts_mut(self.handle);
        place.copy_from_slice(frame);
        // What a capture has cut off is still missing.
        meta.wire_len = meta.len + (old.wire_len - old.len);
        meta.checksum = Checksum::Unknown as u8;
        (verdict, effects)
    }
}

/// Out of the port with this number, if it is the router's.
fn way_out(core: &Core, port: u32) -> Option<Fate> {
    let place = u16::try_from(port).ok()?;
    core.ports.number(place).map(|_| Fate::Out(place))
}

/// A packet was redirected to where no way leads.
#[cold]
fn lost(forwarder: &Forwarder) -> Option<Fate> {
    forwarder.redirected_nowhere();
    Some(Fate::Dropped(DropReason::Aborted))
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Programs").field("table", &self.table).finish_non_exhaustive()
    }
}
