//! What a run reports.

use crate::books::Flow;
use crate::fidelity::{Fidelity, LatenessSummary, OwnLosses, Quantiles};
use longwire_block::change::Blocks;
use longwire_block::{DropReason, NodeStats, PortStats};
use longwire_link::LinkStats;
use longwire_units::Nanos;
use serde::Serialize;
use std::sync::Arc;

/// What a link has counted.
#[derive(Debug, Clone)]
pub struct LinkReport {
    /// Its place in the plan.
    pub place: u32,
    /// Its counters.
    pub stats: LinkStats,
    /// How late packets left it, if it keeps a histogram of that.
    pub lateness: Option<Quantiles>,
    /// What it is made of, if it was changed or is to be.
    pub changed: Option<Arc<Blocks>>,
}

/// What a port has counted.
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
    /// Why it could not be used when it was last asked.
    pub fault: Option<String>,
}

/// What a router has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// The place in the plan of its first port.
    pub port: u16,
    /// Its counters.
    pub stats: NodeStats,
}

/// Packets through the whole engine; segments of a train count one each. taken + made (here and in links) =
/// sent + dropped (here and in links) + consumed (here and by links) + held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowStats {
    /// Taken in by ports.
    pub taken: u64,
    /// Copies made of flooded packets, answers to senders, and what routers make.
    pub made: u64,
    /// Taken by routers that they were for, and by ports that understand NESP.
    pub consumed: u64,
    /// Waiting in routers.
    pub kept: u64,
    /// Sent by ports, or waiting there.
    pub sent: u64,
    /// Received from other workers.
    pub received: u64,
    /// Handed over to other workers.
    pub handed_over: u64,
    /// Dropped outside links, by reason, where any were.
    pub drops: Vec<(&'static str, u64)>,
}

impl FlowStats {
    pub(crate) fn of(flow: &Flow) -> Self {
        let drops = DropReason::ALL.iter().map(|&reason| (reason.name(), flow.drops[reason as usize]));
        Self {
            taken: flow.taken,
            made: flow.made,
            consumed: flow.consumed,
            kept: 0,
            sent: flow.sent,
            received: flow.received,
            handed_over: flow.handed_over,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
        }
    }

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
        // Whichever worker dropped something first.
        self.drops.sort_by_key(|(name, _)| DropReason::ALL.iter().position(|reason| reason.name() == *name));
    }

    /// Counts frames that came in and found the pool full.
    pub(crate) fn refused(&mut self, packets: u64) {
        if packets > 0 {
            let drops = vec![(DropReason::PoolFull.name(), packets)];
            self.add(&Self { taken: packets, drops, ..Self::default() });
        }
    }

    /// Counts what a port was given and did not send as dropped.
    pub(crate) fn not_sent(&mut self, port: &PortStats) {
        let losses = [
            (DropReason::PortDown, port.out_down),
            (DropReason::PortMtu, port.out_oversize),
            (DropReason::PortFull, port.out_full),
        ];
        for (reason, packets) in losses.into_iter().filter(|(_, packets)| *packets > 0) {
            self.sent = self.sent.saturating_sub(packets);
            self.add(&Self { drops: vec![(reason.name(), packets)], ..Self::default() });
        }
    }

    /// Counts frames that ports kept for themselves, and those that they made: they passed no node.
    pub(crate) fn of_ports(&mut self, ports: impl Iterator<Item = PortStats>) {
        for port in ports {
            self.taken += port.in_consumed;
            self.consumed += port.in_consumed;
            self.made += port.out_made;
            self.sent += port.out_made;
        }
    }

    /// Packets dropped outside links for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.iter().filter(|(name, _)| *name == reason.name()).map(|(_, packets)| packets).sum()
    }
}

/// What one worker has to say of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerReport {
    /// Which worker.
    pub worker: u32,
    /// Packets that its ports took in.
    pub taken: u64,
    /// How late packets left by its ports, and its pauses.
    pub lateness: LatenessSummary,
    /// Its packet memory in use, in bytes.
    pub pool_used: u64,
    /// The most that was in use, in bytes.
    pub pool_peak: u64,
}

/// What a run has done, as far as it was asked.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How long it has run, in real time.
    pub elapsed: Nanos,
    /// The links, by place in the plan.
    pub links: Vec<LinkReport>,
    /// The ports, by place in the plan.
    pub ports: Vec<PortReport>,
    /// The routers, by the places of their first ports.
    pub nodes: Vec<NodeReport>,
    /// The workers, in order.
    pub workers: Vec<WorkerReport>,
    /// All packets.
    pub flow: FlowStats,
    /// Packet memory in use, in bytes.
    pub pool_used: u64,
    /// The most that was in use, in bytes.
    pub pool_peak: u64,
    /// Packet memory there is, in bytes.
    pub pool_capacity: u64,
    /// Whether the run kept its promise.
    pub fidelity: Option<Fidelity>,
    /// What went wrong with ports or workers.
    pub errors: Vec<String>,
}

impl Report {
    /// Puts what the workers reported in the plan's order; the queues of a port become one row.
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

    /// Whether every packet is accounted for: in each link and router, and from ports to ports.
    pub fn is_conserved(&self) -> bool {
        self.links.iter().all(|link| link.stats.is_conserved())
            && self.nodes.iter().all(|node| node.stats.come() == node.stats.gone())
            && self.packets_come() == self.packets_gone()
    }

    /// Packets that there were: taken in, received, and made, here (copies of flooded packets, answers) or in
    /// links.
    pub fn packets_come(&self) -> u64 {
        let made: u64 = self.links.iter().map(|link| link.stats.made_packets).sum();
        self.flow.taken + self.flow.made + self.flow.received + made
    }

    /// What became of them: sent, handed over, dropped, consumed by links or routers, or held there. What one
    /// link steers to another is still on its way, and ends here or there.
    pub fn packets_gone(&self) -> u64 {
        let in_link = |link: &LinkStats| {
            link.dropped() + link.consumed_packets + link.queued_packets + link.travelling_packets
        };
        let in_links: u64 = self.links.iter().map(|link| in_link(&link.stats)).sum();
        let dropped: u64 = self.flow.drops.iter().map(|(_, packets)| packets).sum();
        self.flow.sent + self.flow.handed_over + self.flow.consumed + self.flow.kept + dropped + in_links
    }
}

impl Report {
    /// Packets lost by Longwire's own fault.
    pub fn own_losses(&self) -> OwnLosses {
        let of_ports =
            |count: fn(&PortStats) -> u64| self.ports.iter().map(|port| count(&port.stats)).sum::<u64>();
        let in_links = |reason: DropReason| -> u64 {
            let drops = self.links.iter().flat_map(|link| &link.stats.drops);
            drops.filter(|(name, _)| *name == reason.name()).map(|(_, packets)| packets).sum()
        };
        OwnLosses {
            pool: self.flow.dropped(DropReason::PoolFull) + in_links(DropReason::PoolFull),
            port: of_ports(|port| port.in_missed + port.out_full),
            down: of_ports(|port| port.out_down),
            oversize: of_ports(|port| port.out_oversize),
            ring: self.flow.dropped(DropReason::RingFull),
        }
    }
}
