//! Reports of a run.

use crate::fidelity::{Fidelity, LatenessSummary, Quantiles, TunnelRecord, WindowVerdicts};
use crate::own_losses::OwnLosses;
use longwire_block::change::Blocks;
use longwire_block::{DropReason, NodeStats, PortStats, Underlay};
use longwire_link::LinkStats;
use longwire_units::Nanos;
use serde::Serialize;
use std::sync::Arc;

/// Counters of a link.
#[derive(Debug, Clone)]
pub struct LinkReport {
    /// Its place in the plan.
    pub place: u32,
    /// Its counters.
    pub stats: LinkStats,
    /// Lateness, if the link keeps a histogram.
    pub lateness: Option<Quantiles>,
    /// Current blocks, if it was changed or has pending changes.
    pub changed: Option<Arc<Blocks>>,
}

/// Counters of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortReport {
    /// Its place in the plan.
    pub place: u16,
    /// Its name.
    pub name: String,
    /// Driver and mode.
    pub driver: String,
    /// Its counters.
    pub stats: PortStats,
    /// The network under it, if it is a tunnel.
    pub underlay: Option<Underlay>,
    /// Failure at its last use, if any.
    pub fault: Option<String>,
}

/// Sum of the counters of removed ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovedPorts {
    /// Counters of all.
    pub stats: PortStats,
    /// Counters of the networks under tunnels.
    pub underlay: Underlay,
    /// Packets lost until they were removed.
    pub losses: OwnLosses,
    /// Tunnels that were not faithful, by name.
    pub tunnels: Vec<TunnelRecord>,
}

impl RemovedPorts {
    /// Adds the counters of other removed ports.
    pub(crate) fn add(&mut self, other: &Self) {
        self.stats = self.stats.plus(&other.stats);
        self.underlay = self.underlay.plus(&other.underlay);
        self.losses = self.losses.plus(other.losses);
        TunnelRecord::merge(&mut self.tunnels, &other.tunnels);
    }
}

/// Counters of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The place in the plan of its first port.
    pub port: u16,
    /// Its counters.
    pub stats: NodeStats,
}

/// Packets through the whole engine, counted in segments. taken + made (here and in links) = sent + dropped
/// (here and in links) + consumed (here and by links) + held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowStats {
    /// Taken in by ports.
    pub taken: u64,
    /// Copies of flooded packets, replies to senders, and packets made by routers.
    pub made: u64,
    /// Consumed by routers that they were addressed to, and by ports that handle NESP.
    pub consumed: u64,
    /// Waiting in routers.
    pub kept: u64,
    /// Sent by ports, or waiting there.
    pub sent: u64,
    /// Received from other workers.
    pub received: u64,
    /// Handed over to other workers.
    pub handed_over: u64,
    /// Dropped outside links, by reason; only reasons with a count.
    pub drops: Vec<(&'static str, u64)>,
}

impl FlowStats {
    pub(crate) fn add(&mut self, other: &Self) {
        self.taken += other.taken;
        self.made += other.made;
        self.consumed += other.consumed;
        self.kept += other.kept;
        self.sent += other.sent;
        self.received += other.received;
        self.handed_over += other.handed_over;
        for (name, packets) in &other.drops {
            match self.drops.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += packets,
                None => self.drops.push((name, *packets)),
            }
        }
        // Sorted, because workers may drop in any order.
        self.drops.sort_by_key(|(name, _)| DropReason::ALL.iter().position(|reason| reason.name() == *name));
    }

    /// Counts what passed no node: frames that a port consumed or made, received frames that it dropped
    /// because the pool was full, and packets that it accepted and did not send, as dropped.
    pub(crate) fn add_port(&mut self, port: &PortStats) {
        self.taken += port.in_consumed + port.in_pool_full;
        self.consumed += port.in_consumed;
        self.made += port.out_made;
        let losses = [
            (DropReason::PortDown, port.out_down),
            (DropReason::PortMtu, port.out_oversize),
            (DropReason::PortFull, port.out_full),
        ];
        let not_sent: u64 = losses.iter().map(|(_, packets)| packets).sum();
        self.sent = (self.sent + port.out_made).saturating_sub(not_sent);
        let drops = losses.into_iter().chain([(DropReason::PoolFull, port.in_pool_full)]);
        let drops = drops.filter(|(_, packets)| *packets > 0).map(|(reason, count)| (reason.name(), count));
        self.add(&Self { drops: drops.collect(), ..Self::default() });
    }

    /// Packets dropped outside links for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.iter().filter(|(name, _)| *name == reason.name()).map(|(_, packets)| packets).sum()
    }
}

/// Report of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    /// Which worker.
    pub worker: u32,
    /// Packets received by its ports.
    pub taken: u64,
    /// Lateness of packets sent by its ports, and its pauses.
    pub lateness: LatenessSummary,
    /// Its packet memory in use, in bytes.
    pub pool_used: u64,
    /// Peak use, in bytes.
    pub pool_peak: u64,
}

/// Report of a run, at its end or at the time of a query.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Duration in real time.
    pub elapsed: Nanos,
    /// The links, by place in the plan.
    pub links: Vec<LinkReport>,
    /// Sum of the counters of removed links. Those being drained may still hold packets.
    pub removed: LinkStats,
    /// Number of planned rewirings so far: the plan is that of the last one.
    pub rewired: usize,
    /// The ports, by place in the plan.
    pub ports: Vec<PortReport>,
    /// Sum of the counters of removed ports.
    pub removed_ports: RemovedPorts,
    /// The routers, by the places of their first ports.
    pub nodes: Vec<NodeReport>,
    /// The workers, in order.
    pub workers: Vec<WorkerReport>,
    /// All packets.
    pub flow: FlowStats,
    /// Packet memory in use, in bytes.
    pub pool_used: u64,
    /// Peak use, in bytes.
    pub pool_peak: u64,
    /// Capacity of packet memory, in bytes.
    pub pool_capacity: u64,
    /// The fidelity verdict.
    pub fidelity: Option<Fidelity>,
    /// Verdicts on windows of a run in real time, once the first is over.
    pub window: Option<WindowVerdicts>,
    /// Errors of ports or workers.
    pub errors: Vec<String>,
}

impl Report {
    /// Sorts the workers' reports in the plan's order; the queues of a port become one row.
    pub(crate) fn put_in_order(&mut self) {
        self.links.sort_by_key(|link| link.place);
        self.nodes.sort_by_key(|node| node.port);
        self.workers.sort_by_key(|worker| worker.worker);
        self.ports.sort_by_key(|port| port.place);
        self.ports.dedup_by(|next, first| {
            let is_same = next.place == first.place;
            if is_same {
                first.stats = first.stats.plus(&next.stats);
                first.fault = first.fault.take().or(next.fault.take());
            }
            is_same
        });
    }

    /// Adds another worker's report, or part of one, in no order.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.links.extend(other.links);
        self.removed.add(&other.removed);
        self.ports.extend(other.ports);
        self.removed_ports.add(&other.removed_ports);
        self.nodes.extend(other.nodes);
        self.workers.extend(other.workers);
        self.flow.add(&other.flow);
        self.pool_used += other.pool_used;
        self.pool_peak += other.pool_peak;
        self.pool_capacity += other.pool_capacity;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.errors.extend(other.errors);
    }

    /// The counters of each link, and the sum of removed ones.
    pub fn all_links(&self) -> impl Iterator<Item = &LinkStats> {
        self.links.iter().map(|link| &link.stats).chain([&self.removed])
    }

    /// The counters of each port, and the sum of removed ones.
    pub fn all_ports(&self) -> impl Iterator<Item = &PortStats> {
        self.ports.iter().map(|port| &port.stats).chain([&self.removed_ports.stats])
    }

    /// Counters of the network under each tunnel, and the sum of removed ones.
    pub fn all_underlays(&self) -> impl Iterator<Item = &Underlay> {
        self.ports.iter().filter_map(|port| port.underlay.as_ref()).chain([&self.removed_ports.underlay])
    }

    /// Whether every packet is accounted for: in each link and router, and from ports to ports.
    pub fn is_conserved(&self) -> bool {
        self.all_links().all(LinkStats::is_conserved)
            && self.nodes.iter().all(|node| node.stats.come() == node.stats.gone())
            && self.packets_come() == self.packets_gone()
    }

    /// Packets in: taken, received, and made here (copies of flooded packets, replies) or in links.
    pub fn packets_come(&self) -> u64 {
        let made: u64 = self.all_links().map(|stats| stats.made_packets).sum();
        self.flow.taken + self.flow.made + self.flow.received + made
    }

    /// Packets out: sent, handed over, dropped, consumed by links or routers, or held there. Packets steered
    /// from one link to another are in flight, and end here or there.
    pub fn packets_gone(&self) -> u64 {
        let in_link = |link: &LinkStats| {
            link.dropped() + link.consumed_packets + link.queued_packets + link.travelling_packets
        };
        let in_links: u64 = self.all_links().map(in_link).sum();
        let dropped: u64 = self.flow.drops.iter().map(|(_, packets)| packets).sum();
        self.flow.sent + self.flow.handed_over + self.flow.consumed + self.flow.kept + dropped + in_links
    }

    /// Packets lost by Longwire itself.
    pub fn own_losses(&self) -> OwnLosses {
        let in_links = |reason: DropReason| -> u64 {
            let drops = self.all_links().flat_map(|stats| &stats.drops);
            drops.filter(|(name, _)| *name == reason.name()).map(|(_, packets)| packets).sum()
        };
        let ports = self.ports.iter().map(|port| OwnLosses::of_port(&port.stats));
        OwnLosses {
            pool: self.flow.dropped(DropReason::PoolFull) + in_links(DropReason::PoolFull),
            ring: self.flow.dropped(DropReason::RingFull),
            ..ports.fold(self.removed_ports.losses, OwnLosses::plus)
        }
    }

    /// The tunnels' part in the verdict.
    pub fn tunnels(&self) -> Vec<TunnelRecord> {
        let of = |port: &PortReport| Some(TunnelRecord::of(port.name.as_str().into(), &port.underlay?));
        let mut all = self.ports.iter().filter_map(of).collect();
        TunnelRecord::merge(&mut all, &self.removed_ports.tunnels);
        all
    }
}
