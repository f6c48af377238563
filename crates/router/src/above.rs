//! Packets that go up to services and control processes, and those that come back (T. Spalink and others,
//! "Building a robust software-based router using network processors", sections 3.6, 3.7 and 4.5).

use crate::classify::{Class, Classify, ETHERNET};
use crate::state::{Core, Fate};
use longwire_block::{AttachmentStats, DropReason, OUTBOX, Outbox, REFUSED};
use longwire_packet::{Handle, Pool};
use longwire_punt::{AttachmentId, AttachmentView, CutReason, OfferError, Punt};
use longwire_units::Nanos;

/// The levels above a router.
#[derive(Debug)]
pub(crate) struct Above {
    pub punt: Punt,
    /// Packets for the default forwarder, temporarily.
    passed: Vec<Handle>,
}

/// Destination of a packet that goes up, and its forwarder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upward {
    pub attachment: AttachmentId,
    pub fid: u32,
    /// A hash of its flow; 0 if it has none.
    pub flow: u64,
}

/// Counters of all attachments.
pub(crate) fn stats(punt: &Punt) -> Vec<AttachmentStats> {
    let of_attachment =
        |AttachmentView { level, name, is_taken, kept, counts, .. }: AttachmentView<'_>| AttachmentStats {
            level,
            name: name.into(),
            there: is_taken,
            up: counts.up,
            verdicts: counts.verdicts,
            late: counts.late,
            returned: counts.returned,
            kept,
            refused: counts.full + counts.over_rate + counts.over_cycles + counts.over_time,
            over_cycles: counts.over_cycles,
            over_time: counts.over_time,
            worker_ns: counts.worker_ns,
            throttled: counts.throttled,
            processor_ns: counts.processor_ns,
            absent: counts.absent,
            made: counts.made,
            unmade: counts.unmade,
            faults: counts.faults,
            came: counts.came,
            cut: counts.cut,
            last_cut: counts.last_cut.map(CutReason::name),
        };
    punt.attachments().map(of_attachment).collect()
}

impl Above {
    pub fn new(punt: Punt) -> Self {
        Self { punt, passed: Vec::with_capacity(OUTBOX) }
    }

    /// Sends a packet up. None if nobody is attached there: it is then forwarded as usual.
    pub fn offer(&mut self, pool: &Pool, handle: Handle, upward: &Upward, class: Class) -> Option<Fate> {
        // The reason is its index plus 1; 0 is a regular packet.
        let why = match class {
            Class::Exceptional(why) => why as u16 + 1,
            _ => 0,
        };
        let known = longwire_punt::Class {
            fid: upward.fid,
            class: why,
            flow: upward.flow,
            network: if upward.flow == 0 { 0 } else { ETHERNET as u16 },
            transport: 0,
        };
        match self.punt.offer(pool, handle, upward.attachment, &known) {
            Ok(()) => Some(Fate::Kept),
            Err(OfferError::Full) => Some(Fate::Dropped(DropReason::LevelFull)),
            Err(OfferError::Absent) => Some(Fate::Dropped(DropReason::LevelLate)),
            Err(OfferError::Gone) => None,
        }
    }

    /// Passes offered packets on to services and processes, after each batch.
    pub fn flush(&mut self, pool: &Pool, batch: &[Handle]) {
        if let Some(&last) = batch.last() {
            self.punt.flush(Nanos(pool.meta(last).arrival));
        }
    }

    /// Receives packets with their verdicts. Those that pass are classified again, because they may have
    /// changed, and go through minimal or full IP.
    pub fn collect<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        pool: &mut Pool,
        now: Nanos,
        out: &mut Outbox,
    ) {
        let before = out.packets().len();
        core.counts.made += self.punt.collect(pool, now, out, &mut self.passed);
        for &(handle, code) in &out.packets()[before..] {
            let reason = code.checked_sub(REFUSED).and_then(|reason| DropReason::from_index(reason.into()));
            let fate = reason.map_or(Fate::Out(code), Fate::Dropped);
            core.counts.note(fate, pool.meta(handle).segments);
            core.before.come_back(handle);
        }
        core.before.clear();
        let mut rewritten = self.punt.rewritten().iter().peekable();
        for handle in self.passed.drain(..) {
            // Programs came before the levels above: their copy comes first.
            core.before.come_back(handle);
            if let Some((_, line)) = rewritten.next_if(|(rewritten, _)| *rewritten == handle) {
                core.before.note_as(pool, handle, *line);
            }
            let class = core.classify_again(classifier, pool, handle);
            out.because_of(pool.meta(handle));
            let fate = core.decide(pool, handle, class, out);
            out.because_of(pool.meta(handle));
            core.settle(pool, handle, fate, out);
            core.before.clear();
        }
    }
}
