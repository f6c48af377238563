//! The fast path: workers whose links lead only to ports, so that links are independent and each is served
//! for a whole step at once.
//!
//! A received packet whose path is one link here enters it; a due link releases all packets that leave by
//! now; both go to their ports' batches. Everything else (other workers, other nodes, other effects of
//! judges, replies of links) takes the general path, in other files: [`Worker::enter`], [`Worker::leave`].

use super::Worker;
use crate::emulation::Emulation;
use crate::ports::{Exit, NOWHERE_HERE};
use longwire_block::path::{DIRECT, LinkRef, Paths};
use longwire_link::{Departed, Stop};
use longwire_packet::{AHEAD, BATCH, Handle, Meta};
use longwire_units::Nanos;

/// Links taken out of the wheel at once.
const DUE: usize = 64;

impl Worker {
    /// Serves arrivals first, then each due link.
    pub(crate) fn serve_by_link(&mut self, ready: &[Handle], now: Nanos) {
        if self.observing.on {
            return self.serve_observed(ready, now);
        }
        if self.emulation.links.are_many() {
            self.enter_plain::<true>(ready);
        } else {
            self.enter_plain::<false>(ready);
        }
        let mut due = [0; DUE];
        loop {
            let count = self.emulation.wheel.take_due(now, &mut due);
            if count == 0 {
                return;
            }
            self.serve_due(&mut due[..count], now);
        }
    }

    /// Serves links that were taken out of the wheel, in groups. While one is served, the packets of the next
    /// are prefetched, and the links of the one after it.
    fn serve_due(&mut self, mut due: &mut [u32], now: Nanos) {
        self.prefetch_links(due, 0);
        self.prefetch_links(due, AHEAD);
        self.prefetch_firsts(due);
        while !due.is_empty() {
            let (group, behind) = due.split_at_mut(AHEAD.min(due.len()));
            self.prefetch_firsts(behind);
            self.prefetch_links(behind, AHEAD);
            let mut count = group.len();
            while count > 0 {
                count = self.release_one_each(&mut group[..count], now);
            }
            due = behind;
        }
    }

    /// Prefetches a group of links that begins at `from`.
    #[inline(always)]
    fn prefetch_links(&self, due: &[u32], from: usize) {
        due.iter().skip(from).take(AHEAD).for_each(|&link| self.emulation.links.prefetch_link(link));
    }

    /// Prefetches the packets that leave the first group next.
    #[inline(always)]
    fn prefetch_firsts(&self, due: &[u32]) {
        due.iter().take(AHEAD).for_each(|&link| self.emulation.links.prefetch_first(&self.pool, link));
    }

    /// Lets packets enter their links. `MANY`: there are many links, which are prefetched.
    fn enter_plain<const MANY: bool>(&mut self, ready: &[Handle]) {
        let here = LinkRef::first_of(self.index);
        for mut rest in ready.chunks(BATCH) {
            if MANY {
                let soon = rest.iter().take(AHEAD).map(|&handle| self.pool.meta(handle).path ^ here);
                soon.for_each(|link| self.emulation.links.prefetch(link));
            }
            while !rest.is_empty() {
                let (entered, stop) = self.enter_run::<MANY>(here, rest);
                rest = &rest[entered..];
                match stop {
                    Stop::Done | Stop::Full => {}
                    Stop::Left(mut left) => {
                        while let Some(handle) = left.pop(&self.pool) {
                            self.leave(handle);
                        }
                    }
                    Stop::Elsewhere => rest = &rest[self.enter_elsewhere(rest)..],
                }
            }
        }
    }

    /// Lets packets, a batch at most, enter links. Returns how many did, and why it stopped.
    #[inline(never)]
    fn enter_run<const MANY: bool>(&mut self, here: u32, packets: &[Handle]) -> (usize, Stop) {
        let Self { emulation: Emulation { links, firsts, .. }, pool, ports, .. } = self;
        let mut outlet = ports.open();
        let entered =
            links.enter::<MANY>(pool, here, packets, firsts, |Departed { handle, leave, link, out_port }| {
                ports.push_out(&mut outlet, out_port, (handle, 1, leave, link))
            });
        let exit = ports.close(outlet);
        self.see_to(exit);
        self.emulation.arm_firsts();
        entered
    }

    /// Sends a full batch, or handles a packet that can't go to a port at once.
    #[inline]
    fn see_to(&mut self, exit: Exit) {
        match exit {
            Exit::Open => {}
            Exit::Full(slot) => self.flush_port(slot),
            Exit::Elsewhere(handle) => self.leave(handle),
        }
    }

    /// Handles the leading packets without a link, or a first one with a link elsewhere; returns how many.
    #[inline(never)]
    fn enter_elsewhere(&mut self, packets: &[Handle]) -> usize {
        let Self { pool, ports, .. } = self;
        let (mut outlet, mut count) = (ports.open(), 0);
        for &handle in packets {
            let meta = pool.meta_mut(handle);
            if meta.path != DIRECT {
                break;
            }
            let leave = meta.arrival;
            meta.set_leave(leave);
            count += 1;
            if ports.push_out(&mut outlet, meta.out_port, (handle, meta.segments, Nanos(leave), NOWHERE_HERE))
            {
                break;
            }
        }
        match (ports.close(outlet), packets) {
            (_, &[first, ..]) if count == 0 => {
                self.enter(first);
                count = 1;
            }
            (Exit::Elsewhere(handle), _) => self.egress(handle),
            (exit, _) => self.see_to(exit),
        }
        count
    }

    /// Releases one packet from each link of a `group`. Those that may have more are moved to the front, and
    /// their number is returned; the others are rescheduled.
    fn release_one_each(&mut self, group: &mut [u32], now: Nanos) -> usize {
        let (mut next, mut served, mut left) = ([Nanos::ZERO; AHEAD], 0, 0);
        while served < group.len() {
            let (count, exit) = self.release_run(&group[served..], &mut next, now);
            for (at, &next) in (served..).zip(&next[..count]) {
                let link = group[at];
                if next <= now {
                    group[left] = link;
                    left += 1;
                } else {
                    self.emulation.arm_at(link, next);
                }
            }
            served += count;
            self.see_to(exit);
        }
        left
    }

    /// Releases one packet from each of the `due` links, until there is something else to do. Returns how
    /// many links were served; their deadlines are then in `next`.
    #[inline(never)]
    fn release_run(&mut self, due: &[u32], next: &mut [Nanos], now: Nanos) -> (usize, Exit) {
        let Self { emulation: Emulation { links, .. }, pool, ports, .. } = self;
        let (mut outlet, mut served) = (ports.open(), 0);
        for (&link, next) in due.iter().zip(next) {
            let mut stops = false;
            *next = links.release_first(pool, link, now, |handle, meta| {
                let (segments, leave) = (meta.segments, Nanos(meta.leave()));
                if meta.flags & Meta::DIVERTED == 0 && Paths::is_one_link(meta.path) {
                    stops = ports.push_out(&mut outlet, meta.out_port, (handle, segments, leave, link));
                } else {
                    (outlet.exit, stops) = (Exit::Elsewhere(handle), true);
                }
            });
            served += 1;
            if stops {
                break;
            }
        }
        (served, ports.close(outlet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::Order;
    use crate::{Map, PortLocation, PortSetup, Setup, WorkerSetup};
    use longwire_block::path::Paths;
    use longwire_block::{Dice, Node, Port, PortError, PortStats, Stamp, Values};
    use longwire_link::classify::Classifier;
    use longwire_link::{LinkConfig, Links, registry};
    use longwire_packet::{Batch, Gso, Pool, Train};
    use longwire_router::Bridge;
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    const HEADERS: usize = 54;
    /// Links of most cases: more than two groups of those that are due. And of the others: so many that they
    /// are prefetched, and are taken out of the wheel in turns.
    const LINKS: [u32; 2] = [20, 300];

    /// Arrival time, number, payload bytes of each segment, segments.
    type Sent = (u64, u32, usize, u16);
    /// Number, departure time, bytes, segments.
    type Left = (u32, u64, u32, u16);

    /// A port that delivers its frames at their times, and records sent frames.
    struct Noting {
        station: u8,
        sent: VecDeque<Sent>,
        links: u32,
        /// Packets in a row with the same address.
        alike: u32,
        left: Arc<Mutex<Vec<Left>>>,
    }

    impl Port for Noting {
        fn name(&self) -> &str {
            "noting"
        }

        fn describe(&self) -> String {
            "noting".into()
        }

        fn stamp(&self) -> Stamp {
            Stamp::Source
        }

        fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
            while let Some((at, number, payload, segments)) = self.sent.pop_front_if(|sent| sent.0 <= now.0) {
                let mut frame = vec![0; HEADERS + payload * usize::from(segments)];
                frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1 - self.station, 2, 0, 0, 0, 0, self.station]);
                (frame[12], frame[14], frame[23], frame[46]) = (8, 0x45, 6, 0x50);
                let total = (frame.len() - 14) as u16;
                frame[16..18].copy_from_slice(&total.to_be_bytes());
                // One more address than there are links: its packets take no link.
                let address = (number / self.alike % (self.links + 1)) as u16;
                frame[28..30].copy_from_slice(&address.to_be_bytes());
                frame[33] = 1;
                // Ports, and the number in a header field that segments keep: the acknowledgement.
                frame[42..46].copy_from_slice(&number.to_be_bytes());
                let handle = pool.insert(&frame).unwrap();
                let meta = pool.meta_mut(handle);
                meta.arrival = at;
                if segments > 1 {
                    let (gso_size, header_len) = (payload as u16, HEADERS as u16);
                    meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size, header_len });
                }
                batch.push(handle);
            }
            Ok(())
        }

        fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
            for &handle in batch.as_slice() {
                let (meta, frame) = (pool.meta(handle), pool.data(handle));
                let number = frame[42..46].try_into().map_or(0, u32::from_be_bytes);
                self.left.lock().unwrap().push((number, meta.leave(), meta.wire_len, meta.segments));
                pool.free(handle);
            }
            Ok(())
        }

        fn stats(&self) -> PortStats {
            PortStats::default()
        }
    }

    const BLOCKS: [(&str, &str, &str); 16] = [
        ("rate", "constant", "rate=100 Mbit/s"),
        ("rate", "constant", "rate=10 Mbit/s, framing=ip"),
        ("rate", "token-bucket", "rate=20 Mbit/s, burst=3 kB"),
        ("delay", "constant", "delay=3 ms"),
        ("delay", "constant", "delay=20 us"),
        ("delay", "jitter", "delay=1 ms, jitter=300 us"),
        ("queue", "tail-drop", "limit=4 packets"),
        ("queue", "tail-drop", "limit=2 ms"),
        ("queue", "red", "min=2, max=6, weight=0.1"),
        ("queue", "fq-codel", ""),
        ("loss", "independent", "probability=10 %"),
        ("loss", "independent", "probability=10 %, where=wire"),
        ("loss", "gilbert-elliott", "p=5 %, r=25 %"),
        ("duplicate", "independent", "probability=20 %"),
        ("reorder", "independent", "probability=20 %"),
        ("mtu", "drop", "mtu=600"),
    ];

    fn links(count: u32, dice: &mut Dice) -> Links {
        let mut links = Links::with_capacity(count as usize, 1, Nanos::from_micros(10));
        for link in 0..count {
            let mut config = LinkConfig::default();
            for _ in 0..dice.below(5) {
                let (key, kind, text) = BLOCKS[dice.below(BLOCKS.len() as u64) as usize];
                let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
                let given: Vec<_> = text.split(", ").filter_map(|pair| pair.split_once('=')).collect();
                config = config.with(spec, Values::read(spec, &given).unwrap());
            }
            links.add(link, &link.to_string(), &config);
        }
        links
    }

    /// Frames, times of steps, the last arrival, and how many in a row have the same address.
    fn frames(many: bool, dice: &mut Dice) -> (VecDeque<Sent>, Vec<u64>, u64, u32) {
        let mut sent = VecDeque::new();
        let (mut at, mut steps) = (1_000_000, Vec::new());
        // Many at once fill a port's batch, without links too.
        let (most, alike) = [(20, 3), (BATCH as u32, BATCH as u32)][dice.below(2) as usize];
        // Of many links, each gets a packet soon after the one before, so that many are due in a step.
        let (most, alike, longest, last) =
            if many { (BATCH as u32, 1, 10_000, 4_000_000) } else { (most, alike, 400_000, 1_000_000) };
        for number in 0..600 {
            let pause = [1, longest / 20, longest][dice.below(3) as usize];
            at += dice.below(pause);
            let segments = [1, 1, 1, 1, 5][dice.below(5) as usize];
            sent.push_back((at, number, dice.below(1000) as usize + 1, segments));
            if number % most == most - 1 || most == 20 && dice.below(4) == 0 {
                steps.push(at + dice.below(50_000));
                // Nothing that comes later is received in the same step.
                at = at.max(*steps.last().unwrap_or(&at)) + 1;
            }
        }
        steps.extend((1..=400_000_000 / last).map(|step| at + step * last));
        (sent, steps, at, alike)
    }

    /// Departures, sorted, and link counters of one random case, served in this order.
    fn run(case: u64, order: Order) -> (Vec<Left>, Vec<String>) {
        let dice = &mut Dice::named(case, "plain");
        let count = LINKS[usize::from(case % 10 == 9)];
        let links = links(count, dice);
        assert_eq!(links.are_many(), count == LINKS[1]);
        let (sent, steps, at, alike) = frames(links.are_many(), dice);
        let left = Arc::<Mutex<Vec<Left>>>::default();
        let port = |station, sent| {
            let port = Box::new(Noting { station, sent, links: count, alike, left: Arc::clone(&left) });
            PortSetup { place: station.into(), node: 0, port }
        };
        // The first frame announces the location of its station.
        let greeting = VecDeque::from([(0, u32::MAX, 1, 1)]);
        let mut paths = Paths::default();
        let rules: Vec<_> = (0..count).map(|link| ((link, 1), paths.add(&[LinkRef::new(0, link)]))).collect();
        let setup = WorkerSetup {
            ports: vec![port(0, sent), port(1, greeting)],
            nodes: vec![Box::new(Bridge::new(vec![0, 1], Nanos::from_secs(300), 64)) as Box<dyn Node>],
            ..WorkerSetup::new(Pool::new(32 << 20).unwrap(), links)
        };
        let port_locations = vec![PortLocation::single(0, 0), PortLocation::single(0, 1)];
        let map = Map::new(Classifier::new(&rules, &[], &[]), paths, port_locations);
        let mut worker = Worker::of(Setup::new(vec![setup], map)).remove(0);
        assert_eq!(worker.order, Order::ByLink);
        worker.order = order;
        steps.into_iter().for_each(|now| _ = worker.step(Nanos(now), Nanos::ZERO));
        let mut left = std::mem::take(&mut *left.lock().unwrap());
        left.sort_unstable();
        let stats = (0..count).map(|link| {
            let stats = worker.emulation.links.stats(&mut worker.pool, link, Nanos(at + 1_000_000_000));
            assert!(stats.is_conserved(), "case {case}: {stats:?}");
            // Lateness is particular to each run.
            let stats = longwire_link::LinkStats { late_packets: 0, max_late: Nanos::ZERO, ..stats };
            format!("{stats:?}")
        });
        (left, stats.collect())
    }

    /// For any links, serving each link for a whole step has the same results, packet by packet, as serving
    /// all events in exact order.
    #[test]
    fn the_fast_path_does_what_the_pump_does() {
        let mut packets = 0;
        for case in 0..300 {
            let (fast, exact) = (run(case, Order::ByLink), run(case, Order::Exact));
            packets += fast.0.len();
            assert_eq!(fast, exact, "case {case}");
        }
        assert!(packets > 100_000, "{packets} packets are too few to say anything");
    }
}
