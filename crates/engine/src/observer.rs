//! Observation of a run from inside, for logs, time series and tests.

use crate::map::Map;
use longwire_block::path::LinkRef;
use longwire_link::LinkStats;
use longwire_packet::{Handle, Meta, PacketEvent, Probe};
use longwire_units::Nanos;
use std::sync::Arc;

/// A packet to which something happens.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// The packet: the same number while it is in this worker's pool.
    pub handle: Handle,
    /// The link of its path, if it has one: that where it arrives, that it leaves, or that drops it.
    pub link: Option<LinkRef>,
    /// Its metadata.
    pub meta: &'a Meta,
    /// Its bytes.
    pub frame: &'a [u8],
}

/// Receives what happens to the packets of a worker. It must be fast: it runs on the packet path, and takes
/// the worker off its fastest one.
pub trait Observer: Send {
    /// This has happened to a packet.
    fn see(&mut self, event: PacketEvent, sight: &Sight<'_>);

    /// Whether arrivals should say how much waits in the link's queue, which takes time.
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

    /// The counters of the link at this place in the plan, of everything that happened before `time`.
    fn sample(&mut self, time: Nanos, place: u32, stats: &LinkStats);

    /// Whether a link is sampled.
    fn samples(&self, place: u32) -> bool;
}

/// An observer at a worker's pool.
pub(crate) struct Observed {
    pub map: Arc<Map>,
    pub observer: Box<dyn Observer>,
}

impl Probe for Observed {
    fn note(&mut self, event: PacketEvent, handle: Handle, meta: &Meta, frame: &[u8]) {
        let link = self.map.paths.link(meta.path);
        self.observer.see(event, &Sight { handle, link, meta, frame });
    }
}
