use super::Worker;
use crate::fidelity::{OwnLosses, Quantiles, Sample};
use crate::ports::{GONE_PORT, PortSlot};
use crate::stats::{FlowStats, LinkReport, NodeReport, PortReport, Report, WorkerReport};
use longwire_block::DropReason;
use longwire_link::GONE;
use longwire_units::Nanos;
use std::sync::Arc;

impl Worker {
    /// Copies the records of fidelity, without looking at each link.
    pub(crate) fn sample(&mut self, sample: &mut Sample) {
        self.counters.lateness.sample(&mut sample.lateness);
        sample.losses = OwnLosses {
            pool: self.pool.refused(),
            ring: self.counters.flow.drops[DropReason::RingFull as usize],
            ..self.ports.losses()
        };
        sample.tunnels.clear();
        sample.tunnels.extend(self.ports.slots.iter().filter_map(PortSlot::tunnel_record));
    }

    /// A link's counters up to `now`.
    pub(crate) fn count_link(&mut self, link: u32, now: Nanos) -> LinkReport {
        LinkReport {
            place: self.emulation.links.place(link),
            stats: self.emulation.links.stats(&mut self.pool, link, now.min(Nanos(u64::MAX - 1))),
            lateness: self.emulation.links.histogram(link).map(Quantiles::of),
            changed: self.schedules.links.made_of(link).map(Arc::clone),
        }
    }

    /// Adds this worker's counters up to `now`.
    pub(crate) fn add_to(&mut self, report: &mut Report, now: Nanos) {
        for link in 0..self.emulation.links.len() as u32 {
            let counted = self.count_link(link, now);
            if counted.place == GONE {
                report.removed.add(&counted.stats);
            } else {
                report.links.push(counted);
            }
        }
        report.rewired = report.rewired.max(self.rewired);
        report.removed.add(self.emulation.links.retired());
        self.emulation.arm_dirty();
        for slot in self.ports.slots.iter().filter(|slot| slot.place != GONE_PORT) {
            report.ports.push(PortReport {
                place: slot.place,
                name: slot.port.name().into(),
                driver: slot.port.describe(),
                stats: slot.stats(now),
                underlay: slot.underlay(),
                fault: slot.fault.as_ref().map(ToString::to_string),
            });
        }
        for node in &self.nodes.all {
            if let (Some(stats), Some(&port)) = (node.stats(), node.ports().first()) {
                report.nodes.push(NodeReport { port, stats });
            }
        }
        report.workers.push(WorkerReport {
            worker: self.index,
            taken: self.counters.flow.taken,
            lateness: self.counters.lateness.summary(self.counters.tolerance),
            pool_used: self.pool.used_bytes(),
            pool_peak: self.pool.peak_bytes(),
        });
        self.nodes.change_all(now);
        let refused = self.schedules.refused().chain(&self.nodes.changes.refused);
        report.errors.extend(refused.cloned());
        let mut flow = FlowStats::of(&self.counters.flow);
        flow.kept = self.nodes.all.iter().map(|node| node.kept()).sum();
        // Frames that a port received but could not store are counted as received and dropped.
        let of_ports = || self.ports.slots.iter().map(|slot| slot.port.stats()).chain([self.ports.closed]);
        flow.refused(of_ports().map(|stats| stats.in_pool_full).sum());
        flow.of_ports(of_ports());
        of_ports().for_each(|stats| flow.not_sent(&stats));
        report.flow.add(&flow);
        report.pool_used += self.pool.used_bytes();
        report.pool_peak += self.pool.peak_bytes();
        report.pool_capacity += self.pool.capacity_bytes();
    }
}
