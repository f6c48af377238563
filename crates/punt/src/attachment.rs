//! An attachment: its packets that are up, and the processing of its messages.

use crate::allowance::{Allowance, SharedAllowance, TRIP, copying};
use crate::bucket::Bucket;
use crate::cut::CutReason;
use crate::layout::{Class, Facts, HEAD, Opening, Verdict, down, up};
use crate::limits::Limits;
use crate::return_path::ReturnPath;
use crate::ring::{LINE, Line};
use crate::table::Table;
use crate::wire::{Attach, Wire};
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Reason why a packet can't go up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferError {
    /// No room, or beyond the guarantee: drop the packet.
    Full,
    /// No process is attached, and the limits say to drop the packet.
    Absent,
    /// No process is attached: the default forwarder takes the packet.
    Gone,
}

/// Outcomes of an attachment's packets; a train is counted once. up = verdicts + late + returned + packets
/// that are up now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets sent up.
    pub up: u64,
    /// Not sent up: no room.
    pub full: u64,
    /// Not sent up: beyond the guaranteed rate.
    pub over_rate: u64,
    /// Not sent up: the process has exceeded its processor time.
    pub over_cycles: u64,
    /// Not sent up: no worker time was left for moving packets.
    pub over_time: u64,
    /// Worker time spent on moving packets, in nanoseconds, at the prices of [`crate::TRIP`] and
    /// [`crate::COPIED_LINE`].
    pub worker_ns: u64,
    /// How often throttling by processor time began.
    pub throttled: u64,
    /// Processor time used by attached processes, in nanoseconds.
    pub processor_ns: u64,
    /// Not sent up: no process attached.
    pub absent: u64,
    /// Verdicts received.
    pub verdicts: u64,
    /// Taken by the default forwarder, or dropped, because there was no verdict in time.
    pub late: u64,
    /// Taken by the default forwarder, or dropped, because the process was cut off.
    pub returned: u64,
    /// New packets, sent.
    pub made: u64,
    /// New packets, not sent: too many, or no memory.
    pub unmade: u64,
    /// Bodies requested and delivered.
    pub bodies: u64,
    /// Requested bodies that were not available: no such packet, or offset beyond its end.
    pub bodiless: u64,
    /// Invalid answers, or answers about packets that were not up. Late ones are not faults.
    pub faults: u64,
    /// How often a process was woken.
    pub wakes: u64,
    /// How often a process attached.
    pub came: u64,
    /// How often a process was cut off.
    pub cut: u64,
    /// Reason for the last cut.
    pub last_cut: Option<CutReason>,
}

/// Most records processed per attachment in one call.
const RECORDS: u32 = 256;
/// Approximate limit of bytes copied per attachment in one call.
const BYTES: u64 = 64 << 10;
/// Cost of a record against that limit, besides its bytes.
const RECORD_BYTES: u64 = 64;
/// Wake-ups per second, and burst.
const WAKES: (u64, u64) = (10_000, 16);

/// Late answers still expected for packets that were taken back. They are not faults; further ones are.
#[derive(Debug, Default)]
struct LateAnswers {
    verdicts: u64,
    fetches: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Attachment {
    pub name: String,
    pub limits: Limits,
    wire: Option<Wire>,
    table: Table,
    /// The guaranteed packet rate.
    rate: Bucket,
    made: Bucket,
    /// Guaranteed worker time.
    time: Allowance,
    faults: Bucket,
    late_answers: LateAnswers,
    wakes: Bucket,
    /// A wake-up is pending until the rate limit allows it.
    wake_owed: bool,
    /// Time since which a packet has waited without any answer.
    silent_since: Option<Nanos>,
    /// Whether the process has exceeded its processor time, so that no packets go up; and the counters of
    /// earlier processes.
    is_throttled: bool,
    before: (u64, u64),
    pub promised: u64,
    pub share: u32,
    /// No further process may attach.
    pub is_removed: bool,
    pub counts: Counts,
}

impl Attachment {
    pub fn new(name: &str, limits: Limits) -> Self {
        let packets = limits.packets.clamp(16, 1 << 16).next_power_of_two();
        Self {
            name: name.into(),
            limits,
            table: Table::new(packets as usize),
            time: Allowance::new(limits.reserved),
            wakes: Bucket::new(WAKES.0, WAKES.1),
            ..Self::default()
        }
    }

    pub fn is_taken(&self) -> bool {
        self.wire.is_some()
    }

    pub fn kept(&self) -> u64 {
        self.table.kept
    }

    /// Attaches a process. Packets of the previous one have been returned, or soon are: their tokens are not
    /// valid for the new one.
    pub fn attach(&mut self, attach: Attach) {
        self.cut(CutReason::Left);
        self.table.renounce();
        (self.promised, self.share) = (attach.promised, attach.share);
        let faults = u64::from(self.limits.faults);
        self.faults = Bucket::new(faults, 2 * faults);
        self.late_answers = LateAnswers::default();
        self.wire = Some(attach.wire);
        self.silent_since = None;
        (self.is_throttled, self.before) = (false, (self.counts.throttled, self.counts.processor_ns));
        self.counts.came += 1;
    }

    /// Sets the packet rate for going up, and for new packets.
    pub fn set_rate(&mut self, rate: u64) {
        let burst = u64::from(self.limits.packets).min(rate / 8 + 1);
        self.rate = Bucket::new(rate, burst);
        self.made = Bucket::new(rate, burst);
    }

    /// Whether there is no room for any packet, or a packet at this time exceeds the rate or the worker's
    /// time; it is then counted. Only [`Attachment::offer`] checks room for a long packet's bytes.
    #[inline]
    pub fn refuses(&mut self, common: &mut SharedAllowance, now: Nanos) -> bool {
        if self.wire.is_none() {
            return false;
        }
        let is_full = !self.table.has_room();
        let is_over = !is_full && !self.rate.has(now);
        self.counts.full += u64::from(is_full);
        self.counts.over_rate += u64::from(is_over);
        let is_out_of_time = !is_full && !is_over && !common.allows(&mut self.time, now);
        self.counts.over_time += u64::from(is_out_of_time);
        is_full || is_over || is_out_of_time
    }

    /// Takes a packet up.
    #[inline]
    pub fn offer(
        &mut self,
        pool: &Pool,
        handle: Handle,
        class: &Class,
        common: &mut SharedAllowance,
    ) -> Result<(), OfferError> {
        let Some(wire) = &mut self.wire else {
            self.counts.absent += 1;
            return Err(if self.limits.drops { OfferError::Absent } else { OfferError::Gone });
        };
        if self.is_throttled {
            self.counts.over_cycles += 1;
            return Err(OfferError::Full);
        }
        let meta = pool.meta(handle);
        let data = pool.data(handle);
        let bytes = if wire.whole { data } else { &data[..data.len().min(HEAD)] };
        let opening = Opening::new(up::PACKET, bytes.len());
        let lines = u64::from(opening.lines);
        let has_room = self.table.has_room();
        match if has_room { wire.up.has_room(lines) } else { Ok(false) } {
            Ok(true) => {}
            Ok(false) => {
                self.counts.full += 1;
                return Err(OfferError::Full);
            }
            Err(_) => {
                self.cut(CutReason::Broken);
                return Err(OfferError::Gone);
            }
        }
        let now = Nanos(meta.arrival);
        if !common.allows(&mut self.time, now) {
            self.counts.over_time += 1;
            return Err(OfferError::Full);
        }
        if !self.rate.take(now) {
            self.counts.over_rate += 1;
            return Err(OfferError::Full);
        }
        // The return is paid in advance, except for bytes: packets come back even if no time is left.
        let work = TRIP + copying(bytes.len());
        common.spend(&mut self.time, work);
        self.counts.worker_ns += work;
        let expires = now + self.limits.answer_within;
        let facts = Facts {
            token: self.table.put(handle, expires, meta.segments),
            time: now.0,
            expires: expires.0,
            in_port: meta.in_port,
            len: meta.len,
            segments: meta.segments,
            class: *class,
        };
        wire.up.line(0, &facts.line(opening));
        wire.up.bytes(1, bytes);
        wire.up.advance(lines);
        self.silent_since.get_or_insert(now);
        self.counts.up += 1;
        Ok(())
    }

    /// Makes packets visible to the attached process, and wakes it if it sleeps.
    #[inline]
    pub fn publish(&mut self, now: Nanos) {
        let Some(wire) = &mut self.wire else { return };
        if wire.publish(now) || self.wake_owed {
            self.wake_owed = wire.is_asleep() && !self.wakes.take(now);
            if !self.wake_owed {
                wire.wake();
                self.counts.wakes += 1;
            }
        }
    }

    /// Executes verdicts, and takes back expired packets.
    pub fn collect(&mut self, path: &mut ReturnPath<'_>) {
        if let Some(why) = self.wire.as_ref().and_then(|wire| wire.status.left()) {
            self.cut(why);
        }
        self.look_at_processor();
        let mut bytes = BYTES;
        for _ in 0..RECORDS {
            if bytes == 0 || !path.has_room() {
                break;
            }
            match self.obey_one(path) {
                Ok(Some(copied)) => bytes = bytes.saturating_sub(RECORD_BYTES + copied),
                Ok(None) => break,
                Err(why) => {
                    self.cut(why);
                    break;
                }
            }
        }
        if let Some(wire) = &mut self.wire {
            wire.down.release();
        }
        self.take_back(path);
        if self.silent_since.is_some_and(|since| path.now.since(since) > self.limits.patience) {
            self.cut(CutReason::Stalled);
        }
        self.publish(path.now);
    }

    /// Reads the processor account of the attached process.
    fn look_at_processor(&mut self) {
        let Some(wire) = &self.wire else { return };
        self.is_throttled = wire.status.is_throttled();
        let (throttled, processor_ns) = wire.status.processor();
        self.counts.throttled = self.before.0 + throttled;
        self.counts.processor_ns = self.before.1 + processor_ns;
    }

    /// Cuts off the attached process, if there is one.
    #[cold]
    pub fn cut(&mut self, why: CutReason) {
        self.look_at_processor();
        if let Some(wire) = self.wire.take() {
            wire.end(why);
            self.counts.cut += 1;
            self.counts.last_cut = Some(why);
            self.silent_since = None;
            self.wake_owed = false;
        }
    }

    /// Processes the next record and returns the number of bytes copied; none if there is no record.
    #[inline]
    fn obey_one(&mut self, path: &mut ReturnPath<'_>) -> Result<Option<u64>, CutReason> {
        let Some(wire) = &mut self.wire else { return Ok(None) };
        let available = wire.down.available()?;
        if available == 0 {
            return Ok(None);
        }
        let line = wire.down.line(0);
        let opening = Opening::read(line[0]);
        if !opening.can_be(available) {
            return Err(CutReason::Broken);
        }
        let (is_right, copied) = match opening.kind {
            down::VERDICT => (self.hear(path, &line, opening), opening.bytes.into()),
            down::RETURN => (self.return_one(path, line[1]), 0),
            // Requests other than verdicts wait for worker time, as do all later messages.
            down::FETCH | down::NEW if !path.common.allows(&mut self.time, path.now) => return Ok(None),
            down::FETCH => match self.fetch(path, &line)? {
                Some(given) => given,
                None => return Ok(None),
            },
            down::NEW => (self.make(path, &line, opening), opening.bytes.into()),
            _ => return Err(CutReason::Broken),
        };
        if let Some(wire) = &mut self.wire {
            wire.down.advance(opening.lines.into());
        }
        let asked = matches!(opening.kind, down::FETCH | down::NEW) || !is_right;
        let work = if asked { TRIP } else { 0 } + copying(copied as usize);
        path.common.spend(&mut self.time, work);
        self.counts.worker_ns += work;
        if !is_right {
            self.counts.faults += 1;
            if !self.faults.take(path.now) {
                return Err(CutReason::Flood);
            }
        }
        Ok(Some(copied))
    }

    /// Processes a verdict, with the new beginning of the frame. False if it is invalid.
    fn hear(&mut self, path: &mut ReturnPath<'_>, line: &Line, opening: Opening) -> bool {
        let Some(handle) = self.table.at(line[1]) else { return self.hear_late(line[1], path.now) };
        let segments = path.pool.meta(handle).segments;
        self.table.take(line[1], segments);
        self.counts.verdicts += 1;
        self.hear_something(path.now);
        let bytes = opening.bytes as usize;
        let verdict = Verdict::read(line[2]).filter(|_| bytes <= path.pool.meta(handle).len as usize);
        let Some(verdict) = verdict else {
            path.pass(handle);
            return false;
        };
        if bytes > 0
            && let Some(wire) = &self.wire
        {
            path.note(handle, verdict);
            wire.down.bytes(1, &mut path.pool.data_mut(handle)[..bytes]);
        }
        path.obey(handle, verdict)
    }

    /// Processes the return of a packet. False if there is no such packet.
    fn return_one(&mut self, path: &mut ReturnPath<'_>, token: u64) -> bool {
        let Some(handle) = self.table.at(token) else { return self.hear_late(token, path.now) };
        self.hear_something(path.now);
        self.take_late(path, token, handle);
        self.counts.late += 1;
        true
    }

    /// Processes a message about a packet that is no longer up. False if the packet was not late.
    fn hear_late(&mut self, token: u64, now: Nanos) -> bool {
        if self.late_answers.verdicts == 0 || !self.table.has_been(token) {
            return false;
        }
        self.late_answers.verdicts -= 1;
        self.hear_something(now);
        true
    }

    /// Records activity, whatever its lateness.
    fn hear_something(&mut self, now: Nanos) {
        self.silent_since = self.table.has_any().then_some(now);
    }

    /// Sends bytes of a packet that is up. Returns validity and size; none without room: the request stays in
    /// place, with all later messages.
    fn fetch(&mut self, path: &mut ReturnPath<'_>, line: &Line) -> Result<Option<(bool, u64)>, CutReason> {
        let Some(wire) = &mut self.wire else { return Ok(None) };
        let (token, from, count) = (line[1], line[3] as u32 as usize, (line[3] >> 32) as usize);
        let data = self.table.at(token).map(|handle| path.pool.data(handle));
        let bytes = data.and_then(|data| data.get(from..from.saturating_add(count).min(data.len())));
        let opening = Opening::new(up::BODY, bytes.map_or(0, <[u8]>::len));
        if !wire.up.has_room(opening.lines.into())? {
            self.silent_since.get_or_insert(path.now);
            return Ok(None);
        }
        if !self.table.has_any() {
            self.silent_since = None;
        }
        let given = bytes.unwrap_or_default();
        wire.up.line(0, &[opening.word(), token, 0, line[3], 0, 0, 0, 0]);
        wire.up.bytes(1, given);
        wire.up.advance(opening.lines.into());
        self.counts.bodies += u64::from(bytes.is_some());
        self.counts.bodiless += u64::from(bytes.is_none());
        let is_late = data.is_none() && self.late_answers.fetches > 0 && self.table.has_been(token);
        self.late_answers.fetches -= u64::from(is_late);
        Ok(Some((bytes.is_some() || is_late, given.len() as u64)))
    }

    /// Makes a new packet. False if it is invalid.
    fn make(&mut self, path: &mut ReturnPath<'_>, line: &Line, opening: Opening) -> bool {
        let (Some(wire), bytes) = (&self.wire, opening.bytes as usize) else { return true };
        let Some(Verdict::Send { port, band }) = Verdict::read(line[2]) else { return false };
        if !path.may_make(port, bytes) {
            return false;
        }
        let is_allowed = self.made.take(path.now);
        let is_made = is_allowed && path.make(port, band, bytes, |frame| wire.down.bytes(1, frame));
        *if is_made { &mut self.counts.made } else { &mut self.counts.unmade } += 1;
        is_allowed
    }

    /// Takes back expired packets; all of them, if no process is attached.
    fn take_back(&mut self, path: &mut ReturnPath<'_>) {
        while path.has_room()
            && let Some((token, expires, theirs)) = self.table.first()
        {
            let is_lost = self.wire.is_none() || theirs;
            if !is_lost && expires > path.now {
                break;
            }
            let Some(handle) = self.table.at_any(token) else { break };
            self.take_late(path, token, handle);
            if is_lost {
                self.counts.returned += 1;
            } else {
                self.counts.late += 1;
                self.late_answers.verdicts += 1;
                self.late_answers.fetches += 1;
            }
        }
    }

    /// Takes back a packet without a verdict.
    fn take_late(&mut self, path: &mut ReturnPath<'_>, token: u64, handle: Handle) {
        let segments = path.pool.meta(handle).segments;
        self.table.take(token, segments);
        if self.limits.drops {
            path.out.refuse(path.pool, handle, DropReason::LevelLate);
        } else {
            path.pass(handle);
        }
    }
}

const _: () = assert!(HEAD == LINE);

#[cfg(test)]
mod tests;
