//! Observation of packets and links, for logs, time series and tests.

use crate::map::Map;
use longwire_block::path::LinkRef;
use longwire_link::LinkStats;
use longwire_packet::{Handle, Meta, PacketEvent, Pool, Probe};
use longwire_units::Nanos;
use std::any::Any;
use std::sync::Arc;

/// An observed packet.
#[derive(Debug, Clone, Copy)]
pub struct PacketView<'a> {
    /// Its handle: constant while it is in this worker's pool.
    pub handle: Handle,
    /// The link at which it arrives, which it leaves, or which drops it.
    pub link: Option<LinkRef>,
    /// Its metadata.
    pub meta: &'a Meta,
    /// Its bytes.
    pub frame: &'a [u8],
}

/// Receives the events of a worker's packets. It must be fast: it runs on the packet path, and an observed
/// worker does not use its fast path.
pub trait Observer: Send {
    /// Called for every event.
    fn see(&mut self, event: PacketEvent, view: &PacketView<'_>);

    /// Whether arrivals should report the backlog of the link's queue, which takes time.
    fn asks_for_queues(&self) -> bool {
        false
    }

    /// Links join the worker's while the run goes on, some where others were before. It is called once for
    /// each rewiring, before packets can come to them.
    fn links_joined(&mut self) {}
}

/// Receives the counters of a worker's links at regular times, in virtual time.
pub trait Sampler: Send {
    /// The interval. The first sample is one interval after the start.
    fn interval(&self) -> Nanos;

    /// Receives the counters of a link, by its place in the plan, up to but not including `time`.
    fn sample(&mut self, time: Nanos, place: u32, stats: &LinkStats);

    /// Whether a link is sampled.
    fn samples(&self, place: u32) -> bool;

    /// Receives the last counters of a sampled link, by its place in the plan so far: a planned rewiring
    /// removes it at `time`, with what it drops then.
    fn removed(&mut self, time: Nanos, place: u32, stats: &LinkStats);

    /// A planned rewiring was made: places are those of its plan from now on.
    fn rewired(&mut self);
}

/// An observer at a worker's pool.
pub(crate) struct PoolObserver {
    pub map: Arc<Map>,
    pub observer: Box<dyn Observer>,
}

impl PoolObserver {
    /// The observer at a pool, if there is one.
    pub fn of(pool: &mut Pool) -> Option<&mut Self> {
        pool.probe_mut().and_then(<dyn Any>::downcast_mut::<Self>)
    }
}

impl Probe for PoolObserver {
    fn note(&mut self, event: PacketEvent, handle: Handle, meta: &Meta, frame: &[u8]) {
        let link = self.map.paths.link(meta.path);
        self.observer.see(event, &PacketView { handle, link, meta, frame });
    }
}
