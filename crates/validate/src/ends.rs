//! The far ends of the links: sources, counters, and hosts that answer echoes, as ports of the engine.

use crate::meter::Meter;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_port::intercepted::Interceptor;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Data shared with a port inside an engine.
#[derive(Debug, Default)]
pub(crate) struct Shared<T>(Arc<Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(value)))
    }

    /// Counters stay meaningful even if the thread that held the lock panicked.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the packets for a port, which only sends.
impl Interceptor for Shared<Meter> {
    fn transmit(&mut self, _: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let mut meter = self.lock();
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            meter.take(Nanos(meta.leave().max(meta.arrival)), pool.data(handle), meta.wire_len);
            pool.free(handle);
        }
        Ok(())
    }
}

/// Records the round-trip times of the packets of one constant flow.
pub(crate) struct RoundTrips {
    /// The n-th packet is sent at n times this.
    pub every: Nanos,
    pub times: Shared<Vec<i64>>,
    pub answered: u64,
}

impl Interceptor for RoundTrips {
    fn transmit(&mut self, _: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let mut times = self.times.lock();
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            // Nothing is lost or reordered here: the n-th answer belongs to the n-th request.
            let sent = self.every.0 * self.answered;
            times.push(meta.leave().max(meta.arrival).wrapping_sub(sent).cast_signed());
            self.answered += 1;
            pool.free(handle);
        }
        Ok(())
    }
}

/// Returns every frame at the moment it arrives, with its addresses exchanged.
#[derive(Default)]
pub(crate) struct Echo {
    waiting: VecDeque<(Nanos, Vec<u8>)>,
    stats: PortStats,
}

impl Port for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn describe(&self) -> String {
        "echo".into()
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        while !batch.is_full() && self.waiting.front().is_some_and(|(time, _)| *time <= now) {
            let Some((time, frame)) = self.waiting.pop_front() else { break };
            match pool.alloc(frame.len()) {
                Some(handle) => {
                    let (meta, data) = pool.parts_mut(handle);
                    data.copy_from_slice(&frame);
                    meta.arrival = time.0;
                    self.stats.in_frames += 1;
                    self.stats.in_bytes += frame.len() as u64;
                    batch.push(handle);
                }
                None => self.stats.in_pool_full += 1,
            }
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            let mut frame = pool.data(handle).to_vec();
            exchange(&mut frame);
            self.waiting.push_back((Nanos(meta.leave().max(meta.arrival)), frame));
            self.stats.out_frames += 1;
            pool.free(handle);
        }
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        Some(self.waiting.front().map_or(Nanos::NEVER, |(time, _)| *time))
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

/// Exchanges source and destination of an Ethernet frame with IPv4: MAC and IP addresses.
fn exchange(frame: &mut [u8]) {
    if let Some((first, second)) = frame.get_mut(..12).and_then(|macs| macs.split_at_mut_checked(6)) {
        first.swap_with_slice(second);
    }
    if let Some((first, second)) = frame.get_mut(26..34).and_then(|ips| ips.split_at_mut_checked(4)) {
        first.swap_with_slice(second);
    }
}
