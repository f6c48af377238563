//! Traffic made by the engine itself: UDP datagrams at exact times, in virtual or real time, and the sink
//! that measures what became of them.

mod flow;
mod seen;
mod tally;

pub use flow::{Flow, FlowError, MIN_FRAME_V4, MIN_FRAME_V6};
pub use longwire_random::process::{Interval, Model};
pub use tally::{Received, Sent, Tally};

use flow::Template;
use longwire_block::flow::{Course, FLOW};
use longwire_block::{Dice, Port, PortError, PortStats, Spec, Stamp, Values};
use longwire_packet::{Batch, Pool};
use longwire_random::process::Process;
use longwire_units::Nanos;

/// A flow that is running.
struct Running {
    /// As it is now; its start is when it began.
    flow: Flow,
    template: Template,
    process: Process,
    /// When its own time was 0: later by all the time for which that stood still.
    origin: Nanos,
    /// Since when it stands still because the flow is down.
    halted: Option<Nanos>,
    sequence: u64,
    /// When its next packet is due; [`Nanos::NEVER`] when there is none.
    next: Nanos,
}

impl Running {
    fn new(flow: &Flow, dice: Dice) -> Result<Self, FlowError> {
        let mut running = Self {
            template: Template::new(flow)?,
            process: Process::new(flow.model.clone(), dice),
            origin: flow.start,
            halted: (!flow.up).then_some(flow.start),
            sequence: 0,
            next: Nanos::NEVER,
            flow: flow.clone(),
        };
        running.look();
        Ok(running)
    }

    /// Works out when the next packet is due.
    fn look(&mut self) {
        let (due, flow) = (self.process.peek(), &self.flow);
        let time = self.origin + due;
        let over = self.sequence >= flow.count || time >= flow.until;
        self.next = if over || self.halted.is_some() || due == Nanos::NEVER { Nanos::NEVER } else { time };
    }

    /// Lets its own time stand still for as long as it did: while it was down, and while a packet was due
    /// that no longer came because there had been enough.
    fn catch_up(&mut self, now: Nanos) {
        if let Some(since) = &mut self.halted {
            self.origin += now.since((*since).max(self.flow.start));
            *since = now.max(*since);
        } else if self.next == Nanos::NEVER && self.process.peek() != Nanos::NEVER {
            self.origin += now.since(self.origin + self.process.peek());
        }
    }

    /// Another model, or other values of [`FLOW`]. Whether it can be so.
    fn change(&mut self, now: Nanos, spec: &'static Spec, values: &Values) -> bool {
        let mut flow = self.flow.clone();
        let course = spec.is(&FLOW).then(|| Course::of(values));
        match course {
            None => flow.model = Model::read(spec, values),
            Some(course) => {
                flow.destination_mac = course.aim.mac;
                flow.destination.set_ip(course.destination);
                flow.count = course.packets;
                flow.until = flow.start + course.duration;
                flow.up = course.up;
            }
        }
        let Ok(template) = Template::new(&flow) else { return false };
        self.catch_up(now);
        if course.is_none() {
            self.process.set(flow.model.clone(), now.since(self.origin));
        }
        self.halted = (!flow.up).then_some(self.halted.unwrap_or(now));
        (self.flow, self.template) = (flow, template);
        self.look();
        true
    }
}

/// A port at which flows begin and end.
///
/// Packets are stamped with the exact time at which they are due. What is sent to the port is measured and
/// freed.
pub struct SourcePort {
    name: String,
    flows: Vec<Running>,
    tally: Tally,
    stats: PortStats,
}

impl SourcePort {
    /// A port that sends `flows`, merged in order of time, equal times in the order given. Flows of the whole
    /// run are numbered below `flow_count`, so that this port can measure those that other ports send; `seed`
    /// is the run's.
    ///
    /// # Errors
    /// A flow can't be: the error names the field and the fix.
    pub fn new(name: &str, flows: &[Flow], flow_count: u16, seed: u64) -> Result<Self, FlowError> {
        let running = |flow: &Flow| {
            if flow.id >= flow_count {
                return Err(FlowError::Id { id: flow.id, count: flow_count });
            }
            Running::new(flow, Dice::named(seed, &format!("ports/{name}/flows/{}", flow.id)))
        };
        Ok(Self {
            name: name.into(),
            flows: flows.iter().map(running).collect::<Result<_, _>>()?,
            tally: Tally::new(flow_count),
            stats: PortStats::default(),
        })
    }

    /// What this port has sent and received, by flow. The handle stays good when the port has gone to its
    /// worker.
    pub fn tally(&self) -> Tally {
        self.tally.clone()
    }
}

/// The flow whose packet is due first; of several the first in the list, since `min_by_key` keeps the first.
fn due(flows: &mut [Running]) -> Option<&mut Running> {
    flows.iter_mut().min_by_key(|flow| flow.next).filter(|flow| flow.next != Nanos::NEVER)
}

impl Port for SourcePort {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        format!("traffic source of {} flows", self.flows.len())
    }

    fn stamp(&self) -> Stamp {
        Stamp::Source
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let mut table = self.tally.lock();
        while !batch.is_full() {
            let Some(flow) = due(&mut self.flows).filter(|flow| flow.next <= now) else { break };
            let (time, size) = (flow.next, flow.process.next().1);
            let len = flow.template.len(size);
            match pool.alloc(len) {
                Some(handle) => {
                    let (meta, data) = pool.parts_mut(handle);
                    meta.arrival = time.0;
                    flow.template.write(data, flow.sequence, time);
                    self.stats.in_frames += 1;
                    self.stats.in_bytes += len as u64;
                    batch.push(handle);
                }
                None => self.stats.in_pool_full += 1,
            }
            flow.sequence += 1;
            flow.look();
            table.give(flow.flow.id, time, len);
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let mut table = self.tally.lock();
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            self.stats.out_frames += u64::from(meta.segments);
            self.stats.out_bytes += meta.segment_bytes();
            table.take(Nanos(meta.leave().max(meta.arrival)), meta.wire_len, pool.data(handle));
            pool.free(handle);
        }
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        Some(due(&mut self.flows).map_or(Nanos::NEVER, |flow| flow.next))
    }

    fn change_source(&mut self, now: Nanos, source: &str, spec: &'static Spec, values: &Values) -> bool {
        let named = self.flows.iter_mut().find(|flow| flow.flow.name == source);
        named.is_some_and(|flow| flow.change(now, spec, values))
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_random::process::spec;
    use longwire_units::Rate;

    fn flow(id: u16, model: Model) -> Flow {
        Flow {
            name: format!("flow {id}"),
            id,
            destination_mac: [2, 0, 0, 0, 0, 2],
            source_mac: [2, 0, 0, 0, 0, 1],
            source: "10.0.0.1:5000".parse().unwrap(),
            destination: "10.0.0.2:5001".parse().unwrap(),
            model,
            start: Nanos(1000),
            until: Nanos::NEVER,
            count: u64::MAX,
            up: true,
        }
    }

    fn times(port: &mut SourcePort, until: u64) -> Vec<u64> {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut batch = Batch::new();
        let mut seen = Vec::new();
        while port.next_arrival().unwrap() <= Nanos(until) {
            batch.clear();
            port.receive(&mut pool, Nanos(until), &mut batch).unwrap();
            seen.extend(batch.as_slice().iter().map(|&handle| pool.meta(handle).arrival));
            batch.as_slice().iter().for_each(|&handle| pool.free(handle));
        }
        seen
    }

    #[test]
    fn constant_rate_keeps_every_time_exactly() {
        // 100 bytes at 3 Gbit/s take 266 and 2/3 ns.
        let rate = Interval::at_rate(Rate(3_000_000_000), 100).unwrap();
        let mut port = SourcePort::new("a", &[flow(0, Model::Cbr { every: rate, size: 100 })], 1, 1).unwrap();
        assert_eq!(port.next_arrival(), Some(Nanos(1000)));
        assert_eq!(times(&mut port, 2400), [1000, 1266, 1533, 1800, 2066, 2333]);
        // 30 000 packets later: 8 ms to the nanosecond.
        let later = times(&mut port, 8_001_000);
        assert_eq!(later.last(), Some(&8_001_000));
        assert_eq!(later.len() + 6, 30_001);
    }

    #[test]
    fn flows_merge_in_time_order_and_stop_at_their_limits() {
        let every = |nanos| Model::Cbr { every: Interval::of(Nanos(nanos)).unwrap(), size: 100 };
        let counted = Flow { count: 3, ..flow(0, every(100)) };
        let timed = Flow { until: Nanos(1250), start: Nanos(1050), ..flow(1, every(50)) };
        let mut port = SourcePort::new("a", &[counted, timed], 2, 1).unwrap();
        assert_eq!(times(&mut port, 10_000), [1000, 1050, 1100, 1100, 1150, 1200, 1200]);
        assert_eq!(port.next_arrival(), Some(Nanos::NEVER));
        assert_eq!((port.tally().packets_sent(0), port.tally().packets_sent(1)), (3, 4));
    }

    #[test]
    fn poisson_has_the_asked_mean_and_follows_its_seed() {
        let model = Model::Poisson { every: Interval::of(Nanos(1000)).unwrap(), size: 100 };
        let run = |seed| {
            let mut port =
                SourcePort::new("a", &[Flow { count: 100_000, ..flow(0, model.clone()) }], 1, seed).unwrap();
            times(&mut port, u64::MAX - 1)
        };
        let one = run(1);
        assert_eq!(one, run(1));
        assert_ne!(one, run(2));
        // The sum of n exponential gaps has standard deviation mean·√n: five of them are 1.6 %.
        let mean = (one[one.len() - 1] - 1000) as f64 / one.len() as f64;
        assert!((mean - 1000.0).abs() < 16.0, "{mean}");
        // Gaps above the mean: e⁻¹ = 36.79 %, standard deviation 0.15 %.
        let long = one.windows(2).filter(|pair| pair[1] - pair[0] > 1000).count();
        assert!((36_000..37_600).contains(&long), "{long}");
    }

    #[test]
    fn the_far_side_measures_delay_and_loss() {
        let every = Interval::per_second(1_000_000).unwrap();
        for (source, destination, size) in [
            ("10.0.0.1:1", "10.0.0.2:2", 60),
            ("[fd00::1]:1", "[fd00::2]:2", 80),
            ("10.0.0.1:1", "10.0.0.2:2", 1514),
        ] {
            let flow = Flow {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
                count: 5,
                ..flow(1, Model::Cbr { every, size })
            };
            let mut from = SourcePort::new("a", &[flow], 2, 1).unwrap();
            let mut to = SourcePort::new("b", &[], 2, 1).unwrap();
            let mut pool = Pool::new(1 << 20).unwrap();
            let mut batch = Batch::new();
            from.receive(&mut pool, Nanos(1_000_000), &mut batch).unwrap();
            let mut across = Batch::new();
            // The third is lost; the n-th takes 500 + n ns.
            for (n, &handle) in batch.as_slice().iter().enumerate() {
                let meta = pool.meta_mut(handle);
                meta.set_leave(meta.arrival + 500 + n as u64);
                if n == 2 { pool.free(handle) } else { across.push(handle) }
            }
            across.push(pool.insert(&[0; 60]).unwrap());
            to.transmit(&mut pool, &across).unwrap();
            let got = to.tally().received(1);
            assert_eq!((from.tally().packets_sent(1), got.packets, got.lost(5)), (5, 4, 1));
            assert_eq!((got.first, got.last), (Nanos(1500), Nanos(5504)));
            assert_eq!((got.delay_min, got.delay_max, got.delay_sum), (Nanos(500), Nanos(504), 2008));
            assert_eq!((got.bytes, got.reordered), (4 * u64::from(size), 0));
            assert_eq!((to.tally().others(), pool.live()), (1, 0));
        }
    }

    /// Of five packets the first is lost, the second comes twice, the third thrice and late, the fourth with
    /// a wrong bit in its time, its copy whole, and the fifth with one behind the tag.
    #[test]
    fn copies_and_wrong_bits_are_counted_apart() {
        let every = Interval::per_second(1_000_000).unwrap();
        let flow = Flow { count: 5, ..flow(1, Model::Cbr { every, size: 100 }) };
        let mut from = SourcePort::new("a", &[flow], 2, 1).unwrap();
        let mut to = SourcePort::new("b", &[], 2, 1).unwrap();
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut batch = Batch::new();
        from.receive(&mut pool, Nanos(1_000_000), &mut batch).unwrap();
        let sent = batch.as_slice().to_vec();
        let mut across = Batch::new();
        for (n, delay, wrong) in [
            (1, 10, None),
            (1, 20_000, None),
            (2, 40, None),
            (2, 50, None),
            (2, 60, None),
            (3, 30, Some(14 + 20 + 8 + 10)),
            (3, 20, None),
            (4, 30, Some(99)),
        ] {
            let copy = pool.duplicate(sent[n]).unwrap();
            let meta = pool.meta_mut(copy);
            meta.set_leave(meta.arrival + delay);
            if let Some(wrong) = wrong {
                pool.parts_mut(copy).1[wrong] ^= 0x40;
            }
            across.push(copy);
        }
        sent.into_iter().for_each(|handle| pool.free(handle));
        to.transmit(&mut pool, &across).unwrap();
        let (sent, got) = (from.tally().sent(1), to.tally().received(1));
        assert_eq!((got.packets, got.copies, got.corrupt, got.lost(sent.packets)), (3, 3, 2, 2));
        assert_eq!((got.delay_min, got.delay_max, got.delay_sum), (Nanos(10), Nanos(40), 70));
        assert_eq!((got.bytes, got.reordered, to.tally().others(), pool.live()), (300, 0, 0, 0));
    }

    #[test]
    fn a_source_changes_while_it_runs() {
        let values = |given| Values::read(spec("cbr").unwrap(), given).unwrap();
        // 100 bytes at 8 Mbit/s: a packet every 100 µs from 1 µs on.
        let slow = Model::read(spec("cbr").unwrap(), &values(&[("rate", "8 Mbit/s"), ("size", "100 B")]));
        let mut port = SourcePort::new("a", &[Flow { count: 7, ..flow(0, slow) }], 1, 1).unwrap();
        assert_eq!(times(&mut port, 150_000), [1_000, 101_000]);
        let fast = values(&[("rate", "80 Mbit/s"), ("size", "200 B")]);
        assert!(!port.change_source(Nanos(151_000), "flow 1", spec("cbr").unwrap(), &fast));
        assert!(port.change_source(Nanos(151_000), "flow 0", spec("cbr").unwrap(), &fast));
        // Half a gap is left, now of 10 µs for half of 200 bytes; the count goes on.
        assert_eq!(times(&mut port, 1_000_000), [161_000, 181_000, 201_000, 221_000, 241_000]);
        assert_eq!(port.stats().in_bytes, 2 * 100 + 5 * 200);
    }

    /// 100 bytes at 8 Mbit/s, a packet every 100 µs from 1 µs on: what stops goes on where it stood.
    #[test]
    fn a_source_that_stood_still_goes_on_where_it_was() {
        let aim = longwire_block::flow::Aim { port: 3, mac: [2, 0, 0, 0, 0, 9] };
        let course = |packets, duration, up| {
            let destination = "10.0.0.9".parse().unwrap();
            Course { aim, destination, packets, duration: Nanos(duration), up }.values("c")
        };
        let model = Model::Cbr { every: Interval::at_rate(Rate(8_000_000), 100).unwrap(), size: 100 };
        let mut port = SourcePort::new("a", &[Flow { count: 2, ..flow(0, model) }], 1, 1).unwrap();
        let at = |port: &mut SourcePort, now: u64, (packets, duration, up), until| {
            let mut seen = times(port, now);
            assert!(port.change_source(Nanos(now), "flow 0", &FLOW, &course(packets, duration, up)));
            seen.extend(times(port, until));
            seen
        };
        // It had ended at 2 packets: the third is due at once. The fourth and fifth come after it; then half
        // a gap passes.
        assert_eq!(
            at(&mut port, 401_000, (9, u64::MAX, true), 640_000),
            [1000, 101_000, 401_000, 501_000, 601_000]
        );
        assert_eq!(at(&mut port, 651_000, (9, u64::MAX, false), 900_000), [0; 0]);
        assert_eq!(at(&mut port, 951_000, (9, u64::MAX, true), 1_100_000), [1_001_000]);
        // While it is down, its rate doubles: of half a gap a quarter is left.
        assert_eq!(at(&mut port, 1_151_000, (9, u64::MAX, false), 1_160_000), [1_101_000]);
        let fast = Values::read(spec("cbr").unwrap(), &[("rate", "16 Mbit/s"), ("size", "100 B")]).unwrap();
        assert!(port.change_source(Nanos(1_200_000), "flow 0", spec("cbr").unwrap(), &fast));
        assert_eq!(at(&mut port, 2_000_000, (9, u64::MAX, true), 2_026_000), [2_025_000]);
        // A time counts from its start, however long it stood still: none comes at 2 101 000 or later.
        assert_eq!(at(&mut port, 2_026_000, (9, 2_100_000, true), u64::MAX - 1), [2_075_000]);
        assert_eq!(at(&mut port, 3_000_000, (3, u64::MAX, true), u64::MAX - 1), [0; 0]);
        assert_eq!(port.tally().packets_sent(0), 9);
        assert_eq!(port.flows[0].flow.destination_mac, aim.mac);
    }
}
