//! Links with delivery opportunities, compared with a separate model of mahimahi's `mm-link`.

use super::bench::{Bench, MS, NOT_ECT, SECOND};
use longwire_block::Dice;
use std::collections::VecDeque;

/// Bytes of an opportunity.
const OPPORTUNITY: u64 = 1504;

/// A waiting packet of the model: its number, arrival, and counted bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    number: u64,
    arrival: u64,
    bytes: u64,
}

/// The model's queue: admission, drops, and the next packet for the transmitter.
trait Model {
    fn enqueue(&mut self, queue: &mut VecDeque<Waiting>, packet: Waiting);
    /// The packet to be sent at `now`, if the queue has one that it does not drop.
    fn dequeue(&mut self, queue: &mut VecDeque<Waiting>, _now: u64) -> Option<Waiting> {
        queue.pop_front()
    }
}

/// `mm-link`'s link: before a packet is queued, earlier opportunities are spent. Each takes packets out of
/// the queue while it has bytes left; a partly taken packet is in transmission, outside the queue.
struct Link<M> {
    /// Opportunities in nanoseconds, and the number used or lost.
    times: Vec<u64>,
    gone: usize,
    queue: VecDeque<Waiting>,
    sending: Option<Waiting>,
    model: M,
    left: Vec<(u64, u64)>,
}

impl<M: Model> Link<M> {
    fn new(times: &[u64], model: M) -> Self {
        let round = times[times.len() - 1];
        let times = (0..400).flat_map(|n| times.iter().map(move |at| (n * round + at) * MS)).collect();
        Self { times, gone: 0, queue: VecDeque::new(), sending: None, model, left: Vec::new() }
    }

    fn advance(&mut self, now: u64) {
        while self.times[self.gone] <= now {
            let at = self.times[self.gone];
            self.gone += 1;
            let mut bytes = OPPORTUNITY;
            while bytes > 0 {
                let Some(mut packet) =
                    self.sending.take().or_else(|| self.model.dequeue(&mut self.queue, at))
                else {
                    break;
                };
                let part = packet.bytes.min(bytes);
                (packet.bytes, bytes) = (packet.bytes - part, bytes - part);
                if packet.bytes == 0 {
                    self.left.push((packet.number, at));
                } else {
                    self.sending = Some(packet);
                }
            }
        }
    }

    fn arrive(&mut self, packet: Waiting) {
        self.advance(packet.arrival);
        self.model.enqueue(&mut self.queue, packet);
    }
}

/// Tail drop with a limit in packets, or bytes, or without any.
struct Tail {
    packets: u64,
    bytes: u64,
}

impl Model for Tail {
    fn enqueue(&mut self, queue: &mut VecDeque<Waiting>, packet: Waiting) {
        let bytes: u64 = queue.iter().map(|packet| packet.bytes).sum();
        if (queue.len() as u64) < self.packets && bytes + packet.bytes <= self.bytes {
            queue.push_back(packet);
        }
    }
}

/// Drops packets beyond a limit in packets from the head.
struct Head {
    packets: usize,
}

impl Model for Head {
    fn enqueue(&mut self, queue: &mut VecDeque<Waiting>, packet: Waiting) {
        queue.push_back(packet);
        while queue.len() > self.packets {
            queue.pop_front();
        }
    }
}

/// CoDel by the pseudo-code of RFC 8289, section 5, with square roots in floating point.
struct Codel {
    packets: usize,
    target: u64,
    interval: u64,
    longest: u64,
    first_above: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    dropped: u64,
}

impl Codel {
    fn new(packets: usize, target: u64, interval: u64) -> Self {
        Self {
            packets,
            target,
            interval,
            longest: 0,
            first_above: 0,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
            dropped: 0,
        }
    }

    fn take(&mut self, queue: &mut VecDeque<Waiting>, now: u64) -> (Option<Waiting>, bool) {
        let Some(packet) = queue.pop_front() else {
            self.first_above = 0;
            return (None, false);
        };
        let behind: u64 = queue.iter().map(|packet| packet.bytes).sum();
        if now - packet.arrival < self.target || behind <= self.longest {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + self.interval;
        } else if now >= self.first_above {
            return (Some(packet), true);
        }
        (Some(packet), false)
    }

    fn law(&self, from: u64) -> u64 {
        from + (self.interval as f64 / (self.count as f64).sqrt()) as u64
    }
}

impl Model for Codel {
    fn enqueue(&mut self, queue: &mut VecDeque<Waiting>, packet: Waiting) {
        self.longest = self.longest.max(packet.bytes);
        if queue.len() < self.packets {
            queue.push_back(packet);
        }
    }

    fn dequeue(&mut self, queue: &mut VecDeque<Waiting>, now: u64) -> Option<Waiting> {
        let (mut packet, mut may_drop) = self.take(queue, now);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                self.dropped += 1;
                (packet, may_drop) = self.take(queue, now);
                if may_drop {
                    self.drop_next = self.law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            self.dropped += 1;
            (packet, _) = self.take(queue, now);
            self.dropping = true;
            let more = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_sub(self.drop_next) < 16 * self.interval;
            self.count = if more > 1 && recent { more } else { 1 };
            self.drop_next = self.law(now);
            self.last_count = self.count;
        }
        packet
    }
}

/// A link and its model with the same packets. A frame of `bytes` bytes with FCS counts 14 less: the IP
/// packet and the 4 bytes before it.
struct Pair<M> {
    bench: Bench,
    model: Link<M>,
}

impl<M: Model> Pair<M> {
    fn new(times: &[u64], queue: (&str, &[(&str, &str)]), model: M) -> Self {
        let text: String = times.iter().map(|time| format!("{time};")).collect();
        let bench = Bench::with(("trace", &[("file", &text)]), queue);
        Self { bench, model: Link::new(times, model) }
    }

    fn arrive(&mut self, at: u64, bytes: u64) {
        let number = self.bench.arrive(at, 1, NOT_ECT, bytes);
        self.model.arrive(Waiting { number, arrival: at, bytes: bytes - 14 });
    }

    /// Executes all remaining departures, and compares number and time of every packet. Returns their number.
    #[track_caller]
    fn compare(mut self, until: u64) -> (usize, M) {
        self.bench.advance(until);
        self.model.advance(until);
        let left: Vec<(u64, u64)> = self.bench.left.iter().map(|left| (left.number, left.leave)).collect();
        assert_eq!(left, self.model.left);
        assert_eq!(self.bench.stats(until).queued_packets, 0);
        (left.len(), self.model.model)
    }
}

/// Opportunities up to 40 ms apart, sometimes several at once, and sometimes none for 300 ms.
fn drawn(dice: &mut Dice) -> Vec<u64> {
    let mut at = 0;
    let mut times: Vec<u64> = (0..300)
        .map(|_| {
            at += match dice.below(40) {
                0 => 300,
                1..10 => 0,
                _ => dice.below(12),
            };
            at
        })
        .collect();
    times.push(at + 1);
    times
}

/// Arrivals in bursts, of which some come at the very moment of an opportunity, for about three seconds.
fn packets(dice: &mut Dice) -> Vec<(u64, u64)> {
    let mut now = 0;
    let mut packets = Vec::new();
    while now < 3 * SECOND {
        now += [0, dice.below(MS), dice.below(20 * MS), dice.below(8 * MS)][dice.below(4) as usize];
        if dice.below(4) == 0 {
            now = now.next_multiple_of(MS);
        }
        packets.push((now, 64 + dice.below(1455)));
    }
    packets
}

#[test]
fn queues_do_what_mm_link_does() {
    let limits = [
        ("unlimited", u64::MAX, u64::MAX),
        ("1 packets", 1, u64::MAX),
        ("7 packets", 7, u64::MAX),
        ("1600 B", u64::MAX, 1600),
        ("20 kB", u64::MAX, 20_000),
    ];
    for seed in 0..10 {
        let mut dice = Dice::named(seed, "opportunities");
        let (times, arrivals) = (drawn(&mut dice), packets(&mut dice));
        for (limit, packets, bytes) in limits {
            let mut pair = Pair::new(&times, ("tail-drop", &[("limit", limit)]), Tail { packets, bytes });
            arrivals.iter().for_each(|&(at, bytes)| pair.arrive(at, bytes));
            let (left, _) = pair.compare(100 * SECOND);
            assert!(left > 50 && (left < arrivals.len() || limit == "unlimited"), "{limit}: {left}");
        }
        let mut pair = Pair::new(&times, ("head-drop", &[("limit", "5 packets")]), Head { packets: 5 });
        arrivals.iter().for_each(|&(at, bytes)| pair.arrive(at, bytes));
        assert!(pair.compare(100 * SECOND).0 < arrivals.len());
    }
}

#[test]
fn codel_sees_what_it_sees_in_mm_link() {
    let mut dropped = 0;
    for seed in 0..10 {
        let mut dice = Dice::named(seed, "codel");
        let (times, arrivals) = (drawn(&mut dice), packets(&mut dice));
        let given = [("limit", "100 packets"), ("target", "5 ms"), ("interval", "20 ms")];
        let mut pair = Pair::new(&times, ("codel", &given), Codel::new(100, 5 * MS, 20 * MS));
        arrivals.iter().for_each(|&(at, bytes)| pair.arrive(at, bytes));
        dropped += pair.compare(100 * SECOND).1.dropped;
    }
    assert!(dropped > 200, "{dropped}");
}

/// Opportunities every 10 ms, and packets that take one of them, or one and two thirds. The limit is two. The
/// first is sent at 10 ms, or in transmission from then on, and in both cases takes no room: one of two that
/// come at 11 ms is admitted.
#[test]
fn the_packet_in_transmission_takes_no_room() {
    for (overhead, held, leaves) in [("0", 2, [10, 20, 30]), ("1000", 3, [20, 40, 50])] {
        let trace = [("file", "10;"), ("overhead", overhead)];
        let mut bench = Bench::with(("trace", &trace), ("tail-drop", &[("limit", "2 packets")]));
        bench.arrive(0, 1, NOT_ECT, 1518);
        // Before its opportunity it waits, and takes one of two places.
        assert_eq!(bench.stats(9 * MS).queued_packets, 1);
        bench.arrive(9 * MS, 1, NOT_ECT, 1518);
        bench.arrive(9 * MS, 1, NOT_ECT, 1518);
        assert_eq!(bench.dropped(9 * MS, "queue-full"), 1);
        bench.arrive(11 * MS, 1, NOT_ECT, 1518);
        bench.arrive(11 * MS, 1, NOT_ECT, 1518);
        assert_eq!((bench.dropped(11 * MS, "queue-full"), bench.stats(11 * MS).queued_packets), (2, held));
        bench.advance(SECOND);
        let left: Vec<u64> = bench.left.iter().map(|left| left.leave / MS).collect();
        assert_eq!(left, leaves, "{overhead}");
    }
}

/// An outage of a second: a packet from its beginning is still in the queue at its end, and CoDel sees its
/// delay. Taken on arrival, it would have had none.
#[test]
fn an_idle_link_takes_nothing_in_an_outage() {
    let given = [("limit", "unlimited"), ("target", "5 ms"), ("interval", "100 ms")];
    let mut bench = Bench::with(("trace", &[("file", "1000;1200;1201")]), ("codel", &given));
    for n in 0..20 {
        bench.arrive(n * MS, 1, NOT_ECT, 1518);
    }
    bench.advance(10 * SECOND);
    // At 1 s the first is found to have waited longer than the target. At 1.2 s the second is dropped, and
    // the third sent.
    let left: Vec<(u64, u64)> = bench.left.iter().map(|left| (left.number, left.leave / MS)).collect();
    assert_eq!(left[..2], [(0, 1000), (2, 1200)]);
}

/// Packets that wait for an opportunity move to another transmitter, and back; the packet in transmission
/// keeps its sent part.
#[test]
fn a_change_of_the_transmitter_keeps_all() {
    let trace = [("file", "100;"), ("framing", "ethernet")];
    let mut bench = Bench::with(("trace", &trace), ("tail-drop", &[("limit", "3 packets")]));
    for _ in 0..3 {
        bench.arrive(0, 1, NOT_ECT, 1514);
    }
    // 1514 bytes at 12.112 Mbit/s take 1 ms.
    bench.change(10 * MS, "rate", "constant", &[("rate", "12112 kbit/s")]);
    bench.advance(11 * MS);
    assert_eq!(bench.left.iter().map(|left| left.leave).collect::<Vec<_>>(), [11 * MS]);
    // The second is half sent, and no longer counts towards the limit.
    bench.change(11 * MS + MS / 2, "rate", "trace", &trace);
    bench.arrive(12 * MS, 1, NOT_ECT, 1514);
    bench.arrive(12 * MS, 1, NOT_ECT, 1514);
    bench.arrive(12 * MS, 1, NOT_ECT, 1514);
    assert_eq!((bench.dropped(12 * MS, "queue-full"), bench.stats(12 * MS).queued_packets), (1, 4));
    // Its 757 bytes and 747 of the third go at 100 ms. Then the rate is constant again: 767 bytes take 506.6
    // us, and are waiting.
    bench.advance(100 * MS);
    bench.change(100 * MS, "rate", "constant", &[("rate", "12112 kbit/s")]);
    bench.arrive(100 * MS, 1, NOT_ECT, 1514);
    assert_eq!(bench.dropped(100 * MS, "queue-full"), 2);
    bench.change(100 * MS, "queue", "head-drop", &[("limit", "5 packets")]);
    bench.advance(SECOND);
    let left: Vec<u64> = bench.left.iter().map(|left| left.leave).collect();
    assert_eq!(left, [11 * MS, 100 * MS, 100_506_605, 101_506_605, 102_506_605]);
}

/// A change of the queue while packets wait for an opportunity does not let them leave earlier.
#[test]
fn a_change_of_the_queue_waits_for_the_opportunity() {
    for (kind, given) in
        [("codel", &[("limit", "unlimited")][..]), ("tail-drop", &[]), ("drr", &[]), ("head-drop", &[])]
    {
        let mut bench = Bench::with(("trace", &[("file", "100;")]), ("tail-drop", &[]));
        bench.arrive(0, 1, NOT_ECT, 1514);
        bench.arrive(0, 1, NOT_ECT, 1514);
        bench.change(50 * MS, "queue", kind, given);
        bench.change(60 * MS, "rate", "trace", &[("file", "70;150")]);
        bench.advance(SECOND);
        let left: Vec<u64> = bench.left.iter().map(|left| left.leave / MS).collect();
        assert_eq!(left, [70, 150], "{kind}");
    }
}

/// A trace that has ended limits nothing: waiting packets leave with its end, and later ones at once.
#[test]
fn after_the_end_nothing_waits() {
    let ended = [("file", "5;10"), ("end", "clear")];
    for queue in ["tail-drop", "codel"] {
        let mut bench = Bench::with(("trace", &ended), (queue, &[]));
        for _ in 0..4 {
            bench.arrive(0, 1, NOT_ECT, 1518);
        }
        bench.advance(20 * MS);
        bench.arrive(20 * MS, 1, NOT_ECT, 1518);
        let left: Vec<u64> = bench.left.iter().map(|left| left.leave / MS).collect();
        assert_eq!(left, [5, 10, 10, 10, 20], "{queue}");
    }
}
