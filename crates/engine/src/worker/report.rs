use super::Worker;
use crate::fidelity::{Quantiles, Sample, TunnelRecord};
use crate::own_losses::OwnLosses;
use crate::ports::{GONE_PORT, PortSlot};
use crate::stats::{LinkReport, NodeReport, PortReport, Report, WorkerReport};
use longwire_block::DropReason;
use longwire_link::GONE;
use longwire_units::Nanos;
use std::ops::Range;
use std::sync::Arc;

/// Most links that are counted between two batches of packets: these wait meanwhile.
pub(crate) const COUNTED_AT_ONCE: u32 = 1024;

impl Worker {
    /// Copies the records of fidelity, without looking at each link.
    pub(crate) fn sample(&mut self, sample: &mut Sample) {
        self.counters.lateness.sample(&mut sample.lateness);
        sample.losses = OwnLosses {
            pool: self.pool.refused(),
            ring: self.counters.drops[DropReason::RingFull as usize],
            ..self.ports.losses()
        };
        sample.tunnels.clear();
        sample.tunnels.extend(self.ports.slots.iter().filter_map(PortSlot::tunnel_record));
        TunnelRecord::merge(&mut sample.tunnels, &self.ports.closed.tunnels);
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

    /// Adds all of this worker's counters up to `now`.
    pub(crate) fn add_to(&mut self, report: &mut Report, now: Nanos) {
        self.add_links(report, 0..self.emulation.links.len() as u32, now);
        self.add_totals(report, now);
    }

    /// Adds the counters of the links from `first` on, but of at most [`COUNTED_AT_ONCE`], and returns where
    /// to go on; behind the last link also all other counters.
    pub(crate) fn add_part(&mut self, report: &mut Report, first: u32, now: Nanos) -> Option<u32> {
        let all = self.emulation.links.len() as u32;
        let end = all.min(first.saturating_add(COUNTED_AT_ONCE));
        self.add_links(report, first..end, now);
        if end < all {
            self.emulation.arm_dirty();
            return Some(end);
        }
        self.add_totals(report, now);
        None
    }

    fn add_links(&mut self, report: &mut Report, links: Range<u32>, now: Nanos) {
        for link in links {
            let counted = self.count_link(link, now);
            if counted.place == GONE {
                report.removed.add(&counted.stats);
            } else {
                report.links.push(counted);
            }
        }
    }

    fn add_totals(&mut self, report: &mut Report, now: Nanos) {
        // Changes that wait for a node's next decision come before its counters.
        self.nodes.change_all(now);
        report.rewired = report.rewired.max(self.rewired);
        report.removed.add(self.emulation.links.retired());
        self.emulation.arm_dirty();
        report.removed_ports.add(&self.ports.closed);
        for slot in &self.ports.slots {
            if slot.place == GONE_PORT {
                slot.add_to(&mut report.removed_ports, now);
                continue;
            }
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
        let refused = self.schedules.refused().chain(&self.nodes.changes.refused);
        report.errors.extend(refused.cloned());
        let mut flow = self.counters.all_flow();
        flow.kept = self.nodes.all.iter().map(|node| node.kept()).sum();
        let ports = self.ports.slots.iter().map(|slot| slot.port.stats()).chain([self.ports.closed.stats]);
        ports.for_each(|stats| flow.add_port(&stats));
        report.flow.add(&flow);
        report.pool_used += self.pool.used_bytes();
        report.pool_peak += self.pool.peak_bytes();
        report.pool_capacity += self.pool.capacity_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::{Command, Remote};
    use crate::rewiring_step::RewiringStep;
    use crate::{InnerPort, Map, NodeEvent, Part, PortSetup, Rewiring, Setup, Tolerance, WorkerSetup};
    use longwire_block::path::Paths;
    use longwire_block::{Node, NodeStats, Outbox, Port, PortError, PortStats, Stamp, Underlay};
    use longwire_link::classify::Classifier;
    use longwire_link::{Joining, LinkConfig, Links};
    use longwire_packet::{Batch, Pool};
    use std::any::Any;
    use std::sync::mpsc;

    const LINKS: u32 = 2 * COUNTED_AT_ONCE + 100;

    fn map() -> Map {
        Map::new(Classifier::new(&[], &[], &[]), Paths::default(), vec![])
    }

    /// A worker with links of the odd places in the plan.
    fn worker() -> Worker {
        let mut links = Links::with_capacity(LINKS as usize, 1, Nanos::from_micros(10));
        (0..LINKS).for_each(|link| {
            links.add(2 * link + 1, "", &LinkConfig::default());
        });
        let setup = WorkerSetup::new(Pool::new(8 << 20).unwrap(), links);
        Worker::of(Setup::new(vec![setup], map())).remove(0)
    }

    #[test]
    fn very_many_links_are_counted_in_parts() {
        let mut worker = worker();
        let (mut first, mut parts) = (Some(0), Vec::new());
        while let Some(from) = first {
            let mut part = Report::default();
            first = worker.add_part(&mut part, from, Nanos(5));
            parts.push(part);
        }
        let lengths: Vec<_> = parts.iter().map(|part| part.links.len() as u32).collect();
        assert_eq!(lengths, [COUNTED_AT_ONCE, COUNTED_AT_ONCE, 100]);
        let totals: Vec<_> = parts.iter().map(|part| part.workers.len()).collect();
        assert_eq!(totals, [0, 0, 1], "with the last links");
        let mut all = Report::default();
        worker.add_to(&mut all, Nanos(5));
        let places = |links: &[LinkReport]| -> Vec<u32> { links.iter().map(|link| link.place).collect() };
        let links: Vec<_> = parts.into_iter().flat_map(|part| part.links).collect();
        assert_eq!((places(&links), all.workers.len()), (places(&all.links), 1));
    }

    #[test]
    fn a_report_has_all_parts_in_order() {
        let mut workers = [worker(), worker()];
        let (inboxes, commands): (Vec<_>, Vec<_>) = workers.iter().map(|_| mpsc::channel()).unzip();
        let bells = Arc::clone(&workers[0].peers.bells);
        let remote = Remote::new(inboxes, bells);
        let report = std::thread::scope(|scope| {
            let asked = scope.spawn(|| remote.report(Tolerance::default()).unwrap());
            while !asked.is_finished() {
                for (worker, inbox) in workers.iter_mut().zip(&commands) {
                    worker.obey(inbox, Nanos(5));
                }
                std::thread::yield_now();
            }
            asked.join().unwrap()
        });
        assert_eq!(report.links.len(), 2 * LINKS as usize);
        assert!(report.links.is_sorted_by_key(|link| link.place));
        assert_eq!((report.workers.len(), report.fidelity.is_some()), (2, true));
    }

    /// A node whose changes are its packets.
    struct Changed(u64);

    impl Node for Changed {
        fn forward(&mut self, _: &mut Pool, _: &Batch, _: &mut Outbox) {}

        fn ports(&self) -> &[u16] {
            &[0]
        }

        fn stats(&self) -> Option<NodeStats> {
            Some(NodeStats { received: self.0, ..NodeStats::default() })
        }
    }

    #[test]
    fn changes_that_wait_for_a_node_come_before_its_counters() {
        let act = |node: &mut dyn Node, _: Nanos| -> Result<(), String> {
            let node: &mut dyn Any = node;
            node.downcast_mut::<Changed>().ok_or("it is another node")?.0 += 1;
            Ok(())
        };
        let mut setup = WorkerSetup::new(Pool::new(1 << 20).unwrap(), Links::with_capacity(0, 1, Nanos(1)));
        setup.nodes.push(Box::new(Changed(0)));
        setup.agenda.nodes.push(NodeEvent { time: Nanos(5), node: 0, name: "it".into(), act: Arc::new(act) });
        let mut worker = Worker::of(Setup::new(vec![setup], map())).remove(0);
        let mut report = Report::default();
        worker.add_to(&mut report, Nanos(5));
        assert_eq!(report.nodes[0].stats.received, 1);
    }

    /// A tunnel that has lost packets, as has the network under it.
    struct LossyTunnel;

    impl Port for LossyTunnel {
        fn name(&self) -> &'static str {
            "far"
        }

        fn describe(&self) -> String {
            "tunnel".into()
        }

        fn stamp(&self) -> Stamp {
            Stamp::Sender
        }

        fn receive(&mut self, _: &mut Pool, _: Nanos, _: &mut Batch) -> Result<(), PortError> {
            Ok(())
        }

        fn transmit(&mut self, _: &mut Pool, _: &Batch) -> Result<(), PortError> {
            Ok(())
        }

        fn stats(&self) -> PortStats {
            PortStats { in_missed: 3, out_down: 4, ..PortStats::default() }
        }

        fn underlay(&self) -> Option<Underlay> {
            Some(Underlay { lost: 2, clock_error: Some(Nanos(9)), ..Underlay::default() })
        }
    }

    /// Removing a port that lost packets makes neither the run nor a window faithful, and what is still sent
    /// to it is no loss.
    #[test]
    fn losses_of_removed_ports_are_kept() {
        let mut setup = WorkerSetup::new(Pool::new(1 << 20).unwrap(), Links::with_capacity(0, 1, Nanos(1)));
        setup.ports.push(PortSetup { place: 0, node: 0, port: Box::new(LossyTunnel) });
        let mut worker = Worker::of(Setup::new(vec![setup], map())).remove(0);
        let look = |worker: &mut Worker| {
            let (mut sample, mut report) = (Sample::default(), Report::default());
            worker.sample(&mut sample);
            worker.add_to(&mut report, Nanos(5));
            assert_eq!((report.own_losses(), report.tunnels()), (sample.losses, sample.tunnels.clone()));
            (sample.losses, sample.tunnels)
        };
        let (losses, tunnels) = look(&mut worker);
        assert_eq!((losses.port, losses.down, tunnels[0].lost), (3, 4, 2));
        let exchange = |worker: &mut Worker, place, port| {
            let port = Some(PortSlot::new(PortSetup { place, node: 0, port }));
            worker.rewire(&mut RewiringStep { ports: vec![(0, port)], ..RewiringStep::default() }, Nanos(5));
        };
        exchange(&mut worker, GONE_PORT, Box::new(InnerPort::removed()));
        let kept = TunnelRecord { clock_error: None, ..tunnels[0].clone() };
        assert_eq!(look(&mut worker), (losses, vec![kept]));
        let mut batch = Batch::new();
        batch.push(worker.pool.insert(&[0; 60]).unwrap());
        worker.ports.slots[0].port.transmit(&mut worker.pool, &batch).unwrap();
        assert_eq!(look(&mut worker).0, losses);
        // It comes back, and counts from zero.
        exchange(&mut worker, 0, Box::new(LossyTunnel));
        let (all, tunnels) = look(&mut worker);
        assert_eq!((all, tunnels.len(), tunnels[0].lost), (losses.plus(losses), 1, 4));
        assert_eq!(tunnels[0].clock_error, Some(Nanos(9)));
    }

    /// Links that leave do so when all have been counted.
    #[test]
    fn nothing_is_rewired_while_links_are_counted() {
        let mut worker = worker();
        let (inbox, commands) = mpsc::channel();
        let remote = Remote::new(vec![inbox.clone()], Arc::clone(&worker.peers.bells));
        let none = Links::with_capacity(0, 1, Nanos::from_micros(10));
        let joining = Joining::new(none, vec![], vec![GONE; LINKS as usize], false);
        let leaving = (0..LINKS).collect();
        let part = Part { joining: Some(joining), leaving, ..Part::default() };
        let rewiring = Rewiring { map: map(), before: None, parts: vec![part] };
        let report = std::thread::scope(|scope| {
            let asked = scope.spawn(|| remote.report(Tolerance::default()).unwrap());
            let first = commands.recv().unwrap();
            assert!(matches!(first, Command::Report { first: 0, .. }));
            let rewired = scope.spawn(|| remote.rewire(rewiring).unwrap());
            for _ in 0..1000 {
                assert!(commands.try_recv().is_err(), "all links have to be counted first");
                std::thread::yield_now();
            }
            inbox.send(first).unwrap();
            while !rewired.is_finished() {
                worker.obey(&commands, Nanos(5));
                std::thread::yield_now();
            }
            assert!(rewired.join().unwrap().errors.is_empty());
            asked.join().unwrap()
        });
        assert_eq!((report.links.len() as u32, worker.rewired), (LINKS, 1));
        let mut after = Report::default();
        worker.add_to(&mut after, Nanos(5));
        assert!(after.links.is_empty());
    }
}
