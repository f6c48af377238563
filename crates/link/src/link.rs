//! One link: what becomes of a packet from its arrival to its leaving.
//!
//! A packet arrives at a; filters and impairments draw their verdict, the queue accepts or drops it; its transmission begins at
//! s = max(a, previous f), ends at f, and it leaves at e = f + delay. Moves from the queue to the delay line happen
//! at f, but are carried out when the link is next looked at (see decision 2).

use crate::counters::{Counters, LinkStats};
use crate::delay::Delay;
use crate::fifo::Fifo;
use crate::judge::Chain;
use crate::queue::{Admission, Queue};
use crate::transmit::Transmit;
use longwire_block::{DropReason, Offer, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

/// A link with all its state: four cache lines, so that a million links fit and one is fetched at once.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Link {
    pub chain: Chain,
    pub queue: Queue,
    pub transmit: Transmit,
    pub delay: Delay,
    /// The packet being sent, or none.
    pub sending: Handle,
    /// Packets on their way, in the order of their leaving.
    line: Fifo,
    line_packets: u32,
    /// Packets waiting, the one being sent included.
    queued_packets: u32,
    /// Their bytes as the rate counts them.
    queued_bytes: u64,
    last_arrival: Nanos,
    /// The last f that was carried out: no later arrival may come before it.
    last_finish: Nanos,
    last_leave: Nanos,
    /// When the first packet of the delay line leaves; never if there is none.
    next_leave: Nanos,
    /// The time at which the timing wheel holds this link; never if it does not.
    pub armed: Nanos,
    pub counters: Counters,
    pub place: u32,
}

const _: () = assert!(size_of::<Link>() <= 256, "a link must fit four cache lines");

impl Link {
    pub(crate) fn new(place: u32, chain: Chain, queue: Queue, transmit: Transmit, delay: Delay) -> Self {
        Self {
            chain,
            queue,
            transmit,
            delay,
            sending: Handle::NONE,
            line: Fifo::EMPTY,
            line_packets: 0,
            queued_packets: 0,
            queued_bytes: 0,
            last_arrival: Nanos::ZERO,
            last_finish: Nanos::ZERO,
            last_leave: Nanos::ZERO,
            next_leave: Nanos::NEVER,
            armed: Nanos::NEVER,
            counters: Counters::default(),
            place,
        }
    }

    /// The time at which a packet stamped `stamp` counts as arriving: never before what the link has already done.
    #[inline]
    pub(crate) fn effective_arrival(&self, stamp: Nanos) -> Nanos {
        stamp.max(self.last_arrival).max(self.last_finish)
    }

    /// Takes in a packet that arrives at `Meta::arrival`. What leaves at that same moment is appended to `out`; what
    /// is dropped is counted and freed.
    #[inline]
    pub(crate) fn arrive(&mut self, pool: &mut Pool, handle: Handle, spread: Nanos, out: &mut Fifo) {
        let now = self.effective_arrival(Nanos(pool.meta(handle).arrival));
        self.last_arrival = now;
        self.catch_up(pool, now);
        let meta = pool.meta_mut(handle);
        meta.arrival = now.0;
        if meta.is_train() {
            return self.arrive_train(pool, handle, now, spread, out);
        }
        let frame = meta.wire_len;
        self.counters.in_packets += 1;
        self.counters.in_bytes += u64::from(frame);
        if let Verdict::Drop(reason) = self.chain.judge(&Offer { now, bytes: frame }) {
            return self.drop(pool, handle, reason);
        }
        let bytes = self.counted(pool, handle, frame);
        if let Verdict::Drop(reason) = self.admit(pool, now, bytes) {
            return self.drop(pool, handle, reason);
        }
        self.enqueue(pool, handle, now, bytes, out);
    }

    /// Bytes that a frame of `frame` bytes, with the headers of `handle`, counts.
    #[inline]
    pub(crate) fn counted(&mut self, pool: &Pool, handle: Handle, frame: u32) -> u64 {
        let link_header =
            if self.transmit.counts_ip() { longwire_wire::l3_offset(pool.data(handle)) as u32 } else { 0 };
        self.transmit.counted(frame, link_header)
    }

    /// Asks the queue to accept a packet or segment of `bytes` counted bytes, and counts it as waiting if it does.
    #[inline]
    pub(crate) fn admit(&mut self, pool: &Pool, now: Nanos, bytes: u64) -> Verdict {
        let (sent_packets, sent_bytes) = self.sent_of_train(pool, now);
        let verdict = self.queue.admit(&Admission {
            now,
            bytes,
            packets_waiting: u64::from(self.queued_packets) - sent_packets,
            bytes_waiting: self.queued_bytes - sent_bytes,
            rate: self.transmit.rate(),
        });
        if verdict == Verdict::Pass {
            self.queued_packets += 1;
            self.queued_bytes += bytes;
        }
        verdict
    }

    /// Takes back the admission of segments that could not be kept.
    pub(crate) fn unadmit(&mut self, packets: u32, bytes: u64) {
        self.queued_packets -= packets;
        self.queued_bytes -= bytes;
    }

    /// Starts to send an admitted packet of `bytes` counted bytes, or lets it wait.
    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        now: Nanos,
        bytes: u64,
        out: &mut Fifo,
    ) {
        pool.meta_mut(handle).leave = bytes;
        if !self.sending.is_none() {
            return self.queue.push(pool, handle);
        }
        self.transmit.begin(now, bytes);
        self.sending = handle;
        if self.transmit.finish() > now {
            return;
        }
        self.finish(pool, now);
        if self.next_leave <= now {
            self.release(pool, now, out);
        }
    }

    /// Carries out every end of transmission up to `now`.
    #[inline]
    pub(crate) fn catch_up(&mut self, pool: &mut Pool, now: Nanos) {
        while !self.sending.is_none() && self.transmit.finish() <= now {
            let finish = self.transmit.finish();
            self.finish(pool, finish);
        }
    }

    /// Lets go of every packet that leaves by `until`, in order, onto `out`. Ends of transmission are carried out
    /// only as far as that needs, so that an arrival stamped a little earlier still finds the queue as it was.
    #[inline]
    pub(crate) fn expire(&mut self, pool: &mut Pool, until: Nanos, out: &mut Fifo) {
        while !self.sending.is_none() && self.wake_of_sending() <= until {
            let finish = self.transmit.finish();
            self.finish(pool, finish);
        }
        self.release(pool, until, out);
    }

    /// Lets go of one packet that leaves by `until`, if there is one. Whoever serves several links in turns
    /// this way gives each packet's successor, named by [`Link::first_to_leave`], time to reach the cache.
    #[inline]
    pub(crate) fn expire_one(&mut self, pool: &mut Pool, until: Nanos) -> Option<Handle> {
        if self.next_leave > until && !self.sending.is_none() && self.wake_of_sending() <= until {
            let finish = self.transmit.finish();
            self.finish(pool, finish);
        }
        if self.next_leave <= until { self.take_first(pool) } else { None }
    }

    /// The packet that leaves next, as far as is known.
    #[inline]
    pub(crate) fn first_to_leave(&self) -> Option<Handle> {
        self.line.first().or_else(|| (!self.sending.is_none()).then_some(self.sending))
    }

    /// When the link wants to be looked at next.
    #[inline]
    pub(crate) fn deadline(&mut self) -> Nanos {
        if self.sending.is_none() { self.next_leave } else { self.next_leave.min(self.wake_of_sending()) }
    }

    /// Counts and frees a packet that the link drops.
    #[inline]
    pub(crate) fn drop(&mut self, pool: &mut Pool, handle: Handle, reason: DropReason) {
        self.counters.drop(reason, u64::from(pool.meta(handle).segments));
        pool.free(handle);
    }

    /// Drops all that the link holds: a run ends.
    pub(crate) fn flush(&mut self, pool: &mut Pool) {
        let mut lists = [self.queue.drain(pool), std::mem::take(&mut self.line)];
        if !self.sending.is_none() {
            self.drop(pool, self.sending, DropReason::Stopped);
            self.sending = Handle::NONE;
        }
        for list in &mut lists {
            while let Some(handle) = list.pop(pool) {
                self.drop(pool, handle, DropReason::Stopped);
            }
        }
        (self.queued_packets, self.queued_bytes, self.line_packets) = (0, 0, 0);
        self.next_leave = Nanos::NEVER;
    }

    pub(crate) fn stats(&self) -> LinkStats {
        let counters = &self.counters;
        let drops = DropReason::ALL.iter().map(|&reason| (reason.name(), counters.dropped(reason)));
        LinkStats {
            in_packets: counters.in_packets,
            in_bytes: counters.in_bytes,
            out_packets: counters.out_packets,
            out_bytes: counters.out_bytes,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
            queued_packets: u64::from(self.queued_packets),
            queued_bytes: self.queued_bytes,
            travelling_packets: u64::from(self.line_packets),
            late_packets: u64::from(counters.late),
            max_late: counters.max_late,
        }
    }

    /// When the packet being sent needs attention: when it leaves if that is known, else when it is sent.
    #[inline]
    fn wake_of_sending(&mut self) -> Nanos {
        let finish = self.transmit.finish();
        match self.delay.fixed() {
            Some(delay) => (finish + delay).max(self.last_leave),
            None => finish,
        }
    }

    /// Moves the packet whose last bit is sent at `finish` to the delay line, and begins the next.
    #[inline]
    fn finish(&mut self, pool: &mut Pool, finish: Nanos) {
        let handle = self.sending;
        self.last_finish = finish;
        let leave = (finish + self.delay.travel(finish)).max(self.last_leave);
        self.last_leave = leave;
        let meta = pool.meta_mut(handle);
        let segments = u32::from(meta.segments);
        self.queued_packets -= segments;
        self.queued_bytes -= meta.leave;
        meta.leave = leave.0;
        self.line_packets += segments;
        if self.line.is_empty() {
            self.next_leave = leave;
        }
        self.line.push(pool, handle);
        self.sending = match self.queue.pop(pool, finish) {
            Some(next) => {
                self.transmit.follow(pool.meta(next).leave);
                next
            }
            None => Handle::NONE,
        };
    }

    #[inline]
    fn release(&mut self, pool: &mut Pool, until: Nanos, out: &mut Fifo) {
        while self.next_leave <= until
            && let Some(handle) = self.take_first(pool)
        {
            out.push(pool, handle);
        }
    }

    /// Takes the first packet off the delay line.
    #[inline]
    fn take_first(&mut self, pool: &mut Pool) -> Option<Handle> {
        let handle = self.line.pop(pool)?;
        let meta = pool.meta(handle);
        let segments = u32::from(meta.segments);
        self.line_packets -= segments;
        self.counters.out_packets += u64::from(segments);
        self.counters.out_bytes += meta.segment_bytes();
        self.next_leave = match self.line.first() {
            Some(first) => Nanos(pool.meta(first).leave),
            None => Nanos::NEVER,
        };
        Some(handle)
    }

    /// Segments (and their counted bytes) of the train being sent whose last bit has gone by `now`: each leaves the
    /// queue at its own f, though the train is one packet. Where sending takes no time, all that counts as waiting is
    /// segments of the train that is arriving, each sent before the next asks.
    #[inline]
    fn sent_of_train(&mut self, pool: &Pool, now: Nanos) -> (u64, u64) {
        if self.transmit.rate() == Rate::UNLIMITED {
            return (self.queued_packets.into(), self.queued_bytes);
        }
        if self.sending.is_none() || !pool.meta(self.sending).is_train() {
            return (0, 0);
        }
        let meta = pool.meta(self.sending);
        let full = self.counted(pool, self.sending, u32::from(meta.header_len) + u32::from(meta.gso_size));
        let mut sent = 0;
        while sent + 1 < u64::from(meta.segments)
            && self.transmit.has_sent_all_but(meta.leave - (sent + 1) * full, now)
        {
            sent += 1;
        }
        (sent, sent * full)
    }
}
