//! Programs on another thread: a packet's copy is sent there and returns with the programs' decision.

use super::bench::{Bench, ROOM, buffer};
use super::key::{Words, flow};
use super::ruling::{Ruling, put_back};
use super::table::Forwarders;
use super::through::{Passage, Programs, context};
use crate::classify::{Class, Classify};
use crate::state::Core;
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, MAX_FRAME, Pool};
use longwire_program::{Context, Packet, Verdict};
use longwire_wire::finish_checksum;
use std::ops::Range;
use std::sync::Arc;

/// A copy of a packet, and its programs' decision. Reused for further packets: nothing is allocated.
pub(crate) struct Errand {
    /// The programs installed when the packet was sent.
    table: Arc<Forwarders>,
    /// The previous ones, if they were replaced, to be freed off the packet path.
    pub replaced: Option<Arc<Forwarders>>,
    /// The index of its flow's program, and the flow, if any.
    own: Option<usize>,
    words: Option<Words>,
    context: Context,
    /// The frame is at `data`.
    buffer: Box<[u8]>,
    data: Range<usize>,
    passage: Passage,
    /// Reason why it is lost: aborted, if processing failed.
    pub fault: Option<DropReason>,
}

impl Errand {
    /// For one packet after another, first through the programs of `table`.
    pub fn new(table: &Arc<Forwarders>) -> Self {
        Self {
            table: Arc::clone(table),
            replaced: None,
            own: None,
            words: None,
            context: Context::default(),
            buffer: buffer(),
            data: ROOM..ROOM,
            passage: Passage::default(),
            fault: None,
        }
    }

    /// Runs the programs on the packet, on the processor with this number, from 1 on.
    pub fn run(&mut self, bench: &mut Bench, number: u32) {
        let Self { table, buffer, data, passage, .. } = self;
        let mut context = Context { worker: number, ..self.context };
        for forwarder in table.met(self.own) {
            // Each packet has the same headroom.
            if data.start != ROOM {
                buffer.copy_within(data.clone(), ROOM);
                *data = ROOM..ROOM + data.len();
            }
            let packet = Packet::new(&mut buffer[..data.end + ROOM], data.clone());
            let (verdict, effects, range) =
                forwarder.run_on(&mut bench.stack, bench.alone, context, packet, None);
            *data = range;
            passage.note(forwarder, verdict, &effects);
            context.mark = passage.mark.unwrap_or(context.mark);
            // No slot of the pool is longer.
            if data.len() > MAX_FRAME {
                self.fault = Some(DropReason::PoolFull);
            }
            if passage.end.is_some() || self.fault.is_some() {
                return;
            }
        }
    }

    /// Occasionally records the cost of a packet that met one program.
    pub fn note_cost(&self, bench: &mut Bench, cycles: u64) {
        if bench.sampler.count()
            && let Some(only) = self.table.met(self.own).next()
            && self.table.met(self.own).nth(1).is_none()
        {
            bench.sampler.note(cycles, &only.costs);
        }
    }

    /// Whether the packet goes on, and may have changed.
    fn is_changed(&self) -> bool {
        let goes_on = !matches!(self.passage.end, Some((Verdict::Drop(_) | Verdict::Aborted(_), _)));
        goes_on && self.passage.changed
    }
}

impl Programs {
    /// Copies a packet for the programs that it meets.
    ///
    /// # Errors
    /// The ruling on the packet, if it meets none or can't be passed to any.
    pub fn send(&self, errand: &mut Errand, pool: &mut Pool, handle: Handle) -> Result<(), Ruling> {
        let table = &self.table;
        let (meta, frame) = pool.parts_mut(handle);
        if table.is_empty() {
            return Err(Ruling::NONE);
        }
        // The engine was asked for single packets, and refuses those with a checksum field outside them.
        if meta.is_train() || finish_checksum(meta, frame).is_err() {
            return Err(Ruling::lost(DropReason::BadFrame));
        }
        let words = if table.space.is_empty() { None } else { flow(frame) };
        let own = words.and_then(|flow| table.space.find(&flow));
        if own.is_none() && table.general.is_empty() {
            return Err(Ruling::NONE);
        }
        if !Arc::ptr_eq(table, &errand.table) {
            errand.replaced = Some(std::mem::replace(&mut errand.table, Arc::clone(table)));
        }
        errand.context = context(meta);
        errand.data = ROOM..ROOM + frame.len();
        errand.buffer[errand.data.clone()].copy_from_slice(frame);
        (errand.words, errand.own) = (words, own);
        (errand.passage, errand.fault) = (Passage::begin(errand.context.mark), None);
        Ok(())
    }

    /// Takes back the packet after its programs, and returns its class.
    pub fn came_back<C: Classify>(
        &self,
        errand: &mut Errand,
        (core, classifier): (&mut Core, &mut C),
        pool: &mut Pool,
        (handle, class): (Handle, &mut Class),
        out: &mut Outbox,
    ) -> Ruling {
        if let Some(reason) = errand.fault {
            return Ruling::lost(reason);
        }
        let mut ruling = Ruling::NONE;
        let mut own = handle;
        if errand.is_changed() {
            core.before.note(pool, handle);
            own = put_back(core, pool, handle, &errand.buffer[errand.data.clone()], &mut ruling, out);
        }
        let now = &self.table;
        // An attachment disappears with its program, and may have been reassigned.
        errand.passage.keep_above(|fid| Arc::ptr_eq(now, &errand.table) || now.forwarder(fid).is_some());
        let packet = (own, class, errand.words.as_ref());
        errand.passage.rule((core, classifier), &errand.table, pool, packet, &mut ruling);
        ruling
    }
}
