//! Responsive senders, as in RFC 7928's scenarios, on a bottleneck of 10 Mbit/s with a base round-trip time
//! of 40 ms.
//!
//! Each sender has a window that grows by a packet per round trip and halves at a loss or mark, at most once
//! per round trip; a scalable one (for DualPI2) is reduced by half a packet at every mark instead. Losses are
//! detected when a later packet is acknowledged, or after a second without any.

use super::bench::{Bench, ECT_0, ECT_1, MS, NOT_ECT, SECOND};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const ROUND_TRIP: u64 = 40 * MS;
const PACKET: u64 = 1000;
const END: u64 = 60 * SECOND;
/// Earlier measurements are ignored.
const SETTLED: u64 = 20 * SECOND;

#[derive(Debug, Clone, Copy)]
struct Sender {
    field: u8,
    window: f64,
    in_flight: f64,
    /// Packets sent; the number of the next to be acknowledged; until when the window is not halved again.
    sent: u64,
    expected: u64,
    recovered: u64,
    /// The expected acknowledgement when the timer last expired.
    timer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ack { flow: usize, number: u64, marked: bool },
    Timer { flow: usize },
}

/// Results of a run, after it has settled.
#[derive(Debug)]
struct Outcome {
    /// Mean time in the queue and in transmission, in ms, and bytes of each flow.
    waits: Vec<f64>,
    bytes: Vec<u64>,
}

impl Outcome {
    fn wait(&self) -> f64 {
        self.waits.iter().sum::<f64>() / self.waits.len() as f64
    }

    /// Utilization of the link.
    fn used(&self) -> f64 {
        self.bytes.iter().sum::<u64>() as f64 * 8.0 / (10e6 * (END - SETTLED) as f64 / 1e9)
    }
}

fn run(kind: &str, given: &[(&str, &str)], fields: &[u8]) -> Outcome {
    let mut bench = Bench::new(kind, given, "10 Mbit/s");
    let sender = |&field| Sender {
        field,
        window: 2.0,
        in_flight: 0.0,
        sent: 0,
        expected: 0,
        recovered: 0,
        timer: u64::MAX,
    };
    let mut senders: Vec<Sender> = fields.iter().map(sender).collect();
    // Senders start in sequence.
    let mut events: BinaryHeap<_> =
        (0..senders.len()).map(|flow| Reverse((1 + flow as u64 * 37 * MS, Event::Timer { flow }))).collect();
    // The number in its flow of each packet on the link.
    let mut numbers: Vec<u64> = Vec::new();
    let (mut waits, mut counts) = (vec![0.0; fields.len()], vec![0u64; fields.len()]);
    while let Some(Reverse((at, event))) = events.pop() {
        if bench.deadline() < at {
            events.push(Reverse((at, event)));
            let deadline = bench.deadline();
            bench.advance(deadline);
            for left in std::mem::take(&mut bench.left) {
                let flow = usize::from(left.flow);
                let ack = Event::Ack { flow, number: numbers[left.number as usize], marked: left.marked };
                events.push(Reverse((left.leave + ROUND_TRIP, ack)));
                if left.arrival > SETTLED {
                    waits[flow] += (left.leave - left.arrival) as f64 / MS as f64;
                    counts[flow] += 1;
                }
            }
            continue;
        }
        if at > END {
            break;
        }
        let (Event::Ack { flow, .. } | Event::Timer { flow }) = event;
        let sender = &mut senders[flow];
        match event {
            Event::Ack { number, marked, .. } => sender.acknowledge(number, marked),
            Event::Timer { .. } => {
                events.push(Reverse((at + SECOND, Event::Timer { flow })));
                sender.time_out();
            }
        }
        while sender.in_flight < sender.window {
            let number = bench.arrive(at, flow as u16, sender.field, PACKET);
            assert_eq!(number, numbers.len() as u64);
            numbers.push(sender.sent);
            sender.sent += 1;
            sender.in_flight += 1.0;
        }
    }
    let waits = waits.iter().zip(&counts).map(|(wait, &count)| wait / count as f64).collect();
    Outcome { waits, bytes: counts.iter().map(|count| count * PACKET).collect() }
}

impl Sender {
    fn acknowledge(&mut self, number: u64, marked: bool) {
        if number < self.expected {
            return;
        }
        let lost = number - self.expected;
        self.expected = number + 1;
        self.in_flight = (self.in_flight - lost as f64 - 1.0).max(0.0);
        if self.field == ECT_1 && marked {
            self.window -= 0.5;
        } else if (lost > 0 || marked) && number >= self.recovered {
            self.window /= 2.0;
            self.recovered = self.sent;
        } else {
            self.window += 1.0 / self.window;
        }
        self.window = self.window.max(1.0);
    }

    /// Handles a second without acknowledgements: everything is lost.
    fn time_out(&mut self) {
        if self.timer == self.expected && self.expected < self.sent {
            (self.expected, self.recovered) = (self.sent, self.sent);
            (self.in_flight, self.window) = (0.0, 1.0);
        }
        self.timer = self.expected;
    }
}

/// RFC 7928, section 5: ten senders. Tail drop fills its queue; each AQM keeps its intended delay, and the
/// link stays busy.
#[test]
fn delay_is_held_and_the_link_busy() {
    let tail = run("tail-drop", &[("limit", "500 packets")], &[NOT_ECT; 10]);
    assert!(tail.wait() > 200.0 && tail.used() > 0.99, "{tail:?}");
    // (kind, least and most mean wait in ms): 0.8 ms is one packet, 5 to 15 packets are 4 to 12 ms. Where ten
    // flows take turns, a turn comes every 8 ms, and a flow is not controlled while it has at most one packet
    // behind the one it sends: one to three turns.
    for (kind, least, most) in [
        ("red", 4.0, 20.0),
        ("ared", 4.0, 12.0),
        ("fred", 2.0, 12.0),
        ("codel", 2.0, 15.0),
        ("fq-codel", 8.0, 24.0),
        ("pie", 7.5, 22.5),
        ("fq-pie", 8.0, 24.0),
        ("dualpi2", 7.5, 22.5),
    ] {
        let outcome = run(kind, &[], &[NOT_ECT; 10]);
        assert!((least..most).contains(&outcome.wait()), "{kind}: {} {outcome:?}", outcome.wait());
        assert!(outcome.used() > 0.85, "{kind}: {}", outcome.used());
    }
}

/// ARED finds the probability that holds the average within its target, 9 to 11 packets: 7.2 to 8.8 ms at 10
/// Mbit/s, for few and many senders, and the packet itself takes another 0.8 ms. Half a packet is tolerated
/// because the averages differ in definition.
#[test]
fn ared_holds_its_target() {
    for senders in [10, 30] {
        let outcome = run("ared", &[], &vec![ECT_0; senders]);
        assert!((7.6..10.0).contains(&outcome.wait()), "{senders}: {}", outcome.wait());
    }
}

/// RFC 9332: five scalable and five classic senders. The low-latency queue waits at most about the step, the
/// classic one about the target, and both kinds get comparable rates.
#[test]
fn dualpi2_couples_the_rates() {
    let fields = [ECT_1, ECT_1, ECT_1, ECT_1, ECT_1, ECT_0, ECT_0, ECT_0, ECT_0, ECT_0];
    let outcome = run("dualpi2", &[], &fields);
    let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len() as f64;
    let (low, classic) = (mean(&outcome.waits[..5]), mean(&outcome.waits[5..]));
    assert!(low < 2.5, "step 1 ms, a packet being sent and its own 0.8 ms: {low} ms");
    assert!((7.5..22.5).contains(&classic), "{classic} ms");
    let sum = |bytes: &[u64]| bytes.iter().sum::<u64>() as f64;
    let ratio = sum(&outcome.bytes[..5]) / sum(&outcome.bytes[5..]);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    assert!(outcome.used() > 0.9, "{}", outcome.used());
}
