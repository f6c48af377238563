//! A port that handles NESP: received messages leave the packet path here, and replies enter it.
//!
//! It wraps another port, so that ports without NESP pay nothing. The worker compares a few bytes of each
//! frame. A message is copied into a bounded channel, within a token bucket's limit, and its frame freed; the
//! thread at the other end authenticates it.

use crate::intercepted::{InterceptedPort, Interceptor};
use longwire_block::{Port, PortError, PortStats};
use longwire_nesp::{ListenAddresses, carried};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

/// The longest frame of a message: 1400 bytes in UDP over IPv4 with all options, and two VLAN tags.
const LONGEST: usize = 1518;
/// Burst of messages that a port accepts, and their average interval.
const BURST: u64 = 64;
const APART: Nanos = Nanos::from_millis(1);
/// Most replies that wait for the worker.
const ANSWERS: usize = 64;

/// A frame that carries a message.
pub struct NespFrame {
    /// Place in the plan of the port that received it.
    pub port: u16,
    length: u16,
    bytes: [u8; LONGEST],
}

impl NespFrame {
    /// The frame.
    pub fn frame(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A port's counters of messages.
#[derive(Debug, Default)]
pub struct Intake {
    taken: AtomicU64,
    limited: AtomicU64,
}

impl Intake {
    /// Frames passed on.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Frames dropped: they arrived faster than the limit, or than they are answered.
    pub fn limited(&self) -> u64 {
        self.limited.load(Ordering::Relaxed)
    }
}

/// The other end of a port, which takes replies.
pub struct NespEnd {
    /// Place in the plan of the port.
    pub port: u16,
    /// Its counters of messages.
    pub intake: Arc<Intake>,
    answers: Producer<Vec<u8>>,
}

impl NespEnd {
    /// Makes the port send a frame at its next poll. False if too many wait.
    pub fn send(&mut self, frame: Vec<u8>) -> bool {
        self.answers.push(frame).is_ok()
    }
}

/// Takes messages out of a port's received packets.
pub struct NespInterceptor {
    place: u16,
    wanted: ListenAddresses,
    messages: SyncSender<NespFrame>,
    answers: Consumer<Vec<u8>>,
    intake: Arc<Intake>,
    tokens: u64,
    refilled: Nanos,
    consumed: u64,
    made: u64,
}

impl NespInterceptor {
    /// Wraps the port at `place` in the plan; messages are sent to `messages`.
    pub fn wrap(
        port: Box<dyn Port>,
        place: u16,
        wanted: ListenAddresses,
        messages: SyncSender<NespFrame>,
    ) -> (InterceptedPort<Self>, NespEnd) {
        let (sender, answers) = RingBuffer::new(ANSWERS);
        let intake = Arc::new(Intake::default());
        let end = NespEnd { port: place, intake: Arc::clone(&intake), answers: sender };
        let before = Self {
            place,
            wanted,
            messages,
            answers,
            intake,
            tokens: BURST,
            refilled: Nanos::ZERO,
            consumed: 0,
            made: 0,
        };
        (InterceptedPort::new(port, before), end)
    }

    /// Whether another message is accepted at `now`.
    fn admits(&mut self, now: Nanos) -> bool {
        let earned = now.since(self.refilled).0 / APART.0;
        if earned > 0 {
            self.tokens = (self.tokens + earned.min(BURST)).min(BURST);
            self.refilled = Nanos(self.refilled.0 + earned * APART.0);
        }
        let admitted = self.tokens > 0;
        self.tokens -= u64::from(admitted);
        admitted
    }

    /// Takes messages out of `batch`, except for its first `before` packets.
    #[cold]
    fn take(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch, before: usize) {
        let all = std::mem::take(batch);
        for (at, &handle) in all.as_slice().iter().enumerate() {
            if at < before || !is_message(pool, handle, &self.wanted) {
                batch.push(handle);
                continue;
            }
            self.consumed += 1;
            let frame = pool.data(handle);
            let is_taken = frame.len() <= LONGEST && self.admits(now) && self.pass_on(frame);
            let count = if is_taken { &self.intake.taken } else { &self.intake.limited };
            count.fetch_add(1, Ordering::Relaxed);
            pool.free(handle);
        }
    }

    /// Passes a frame of at most [`LONGEST`] bytes on. False if too many wait.
    fn pass_on(&self, frame: &[u8]) -> bool {
        let mut arrived = NespFrame { port: self.place, length: frame.len() as u16, bytes: [0; LONGEST] };
        arrived.bytes[..frame.len()].copy_from_slice(frame);
        self.messages.try_send(arrived).is_ok()
    }

    /// Sends the waiting replies.
    #[cold]
    fn answer(&mut self, port: &mut dyn Port, pool: &mut Pool, now: Nanos) {
        let mut batch = Batch::new();
        while !batch.is_full()
            && let Ok(frame) = self.answers.pop()
        {
            // With a full pool the client gets no reply and asks again.
            if let Some(handle) = pool.insert(&frame) {
                let meta = pool.meta_mut(handle);
                meta.arrival = now.0;
                meta.set_leave(now.0);
                batch.push(handle);
            }
        }
        self.made += batch.len() as u64;
        // A port that is down counts what it can't send, and reports it at the next receive.
        let _ = port.transmit(pool, &batch);
    }
}

fn is_message(pool: &Pool, handle: longwire_packet::Handle, wanted: &ListenAddresses) -> bool {
    !pool.meta(handle).is_train() && carried(pool.data(handle), wanted).is_some()
}

impl Interceptor for NespInterceptor {
    fn describe(&self, port: &dyn Port) -> String {
        format!("{}, NESP", port.describe())
    }

    fn receive(
        &mut self,
        port: &mut dyn Port,
        pool: &mut Pool,
        now: Nanos,
        batch: &mut Batch,
    ) -> Result<(), PortError> {
        if !self.answers.is_empty() {
            self.answer(port, pool, now);
        }
        let before = batch.len();
        let received = port.receive(pool, now, batch);
        if batch.as_slice()[before..].iter().any(|&handle| is_message(pool, handle, &self.wanted)) {
            self.take(pool, now, batch, before);
        }
        received
    }

    fn stats(&self, port: &dyn Port) -> PortStats {
        PortStats { in_consumed: self.consumed, out_made: self.made, ..port.stats() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::memory::MemoryPort;
    use longwire_block::Stamp;
    use longwire_nesp::{GROUP_ADDRESS, MessageEnds, wrap};
    use std::sync::mpsc::sync_channel;

    #[test]
    fn messages_leave_the_path_within_limits_and_answers_enter_it() {
        let (inner, mut far) = MemoryPort::pair("p", Stamp::Source, 512, 1 << 17);
        let (messages, arrived) = sync_channel(512);
        let (mut port, mut end) =
            NespInterceptor::wrap(Box::new(inner), 7, ListenAddresses::default(), messages);
        let mut pool = Pool::new(4 << 20).unwrap();
        let message = wrap(&MessageEnds::ethernet([2; 6], GROUP_ADDRESS), b"NESP");
        let other = [&[2; 12][..], &[0x88, 0xb5], &[0; 46]].concat();
        let mut passed = 0;
        // A hundred at once: as many as the bucket holds; then one per millisecond.
        for (time, count, taken) in [(1, 100, 64), (1_000_001, 3, 65), (5_000_001, 9, 69)] {
            for _ in 0..count {
                assert!(far.push_at(Nanos(time), &message) && far.push_at(Nanos(time), &other));
            }
            loop {
                let mut batch = Batch::new();
                port.receive(&mut pool, Nanos(time), &mut batch).unwrap();
                for &handle in batch.as_slice() {
                    assert_eq!(pool.data(handle), other);
                    pool.free(handle);
                    passed += 1;
                }
                if batch.is_empty() && port.stats().in_frames == passed + port.stats().in_consumed {
                    break;
                }
            }
            assert_eq!(end.intake.taken(), taken, "at {time}");
        }
        assert_eq!((passed, port.stats().in_consumed, end.intake.limited()), (112, 112, 43));
        let frames: Vec<NespFrame> = arrived.try_iter().collect();
        assert!(frames.len() == 69 && frames.iter().all(|frame| frame.frame() == message && frame.port == 7));
        assert_eq!(pool.live(), 0);

        assert!(end.send(vec![9; 60]));
        port.receive(&mut pool, Nanos(5_000_002), &mut Batch::new()).unwrap();
        assert_eq!(far.take().unwrap().bytes, [9; 60]);
        assert_eq!((port.stats().out_made, port.stats().out_frames, pool.live()), (1, 1, 0));
    }
}
