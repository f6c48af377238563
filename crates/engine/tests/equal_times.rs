//! More frames at one instant than fit a batch, from two ports onto the same links: their order is that of
//! the ports, whatever the batches and the number of workers.

use crate::support::TestBed;
use longwire_block::path::LinkRef;
use longwire_block::{Port, Stamp};
use longwire_port::driver::memory::MemoryPort;
use longwire_units::Nanos;

const BED: TestBed = TestBed {
    links: &[
        &[("loss", "10 %"), ("delay", "1 ms"), ("rate", "1 Gbit/s")],
        &[("rate", "100 Mbit/s"), ("queue", "100 packets")],
    ],
    routes: &[((0, 2), &[0, 1]), ((1, 2), &[0, 1])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

/// Departure time and number of each frame; the hundreds encode its port.
fn left(workers: u32) -> Vec<(Nanos, u32)> {
    let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
    let (ports, mut ends): (Vec<_>, Vec<_>) = ["p0", "p1", "p2"].map(pair).into_iter().unzip();
    let frame = |to: u8, from: u8, number: u32| {
        [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5][..], &number.to_be_bytes(), &[0; 42]].concat()
    };
    assert!(ends[2].push_at(Nanos(1), &frame(0, 2, 0)));
    for from in [0, 1] {
        for number in 0..150 {
            let frame = frame(2, from, u32::from(from) * 1000 + number);
            assert!(ends[usize::from(from)].push_at(Nanos(1_000_000), &frame));
        }
    }
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let report = TestBed { workers, ..BED }.setup(ports).simulate(Nanos(u64::MAX - 1));
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    let taken = std::iter::from_fn(|| ends[2].take());
    taken.map(|f| (f.facts.time, u32::from_be_bytes(f.bytes[14..18].try_into().unwrap()))).collect()
}

/// One link leads to two, of 1 ms and 2 ms, and these lead together to one that has room for one packet.
const MEETING: TestBed = TestBed {
    links: &[
        &[("delay", "1 ms")],
        &[("delay", "1 ms")],
        &[("delay", "2 ms")],
        &[("delay", "1 ms"), ("rate", "1 Mbit/s"), ("queue", "1 packets")],
    ],
    routes: &[((0, 1), &[0, 1, 3]), ((0, 2), &[0, 2, 3])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

/// At 13 ms the first packet leaves the third link, the second the second link, and a third one, if it is
/// there, the first for the third.
#[test]
fn links_in_the_order_of_the_plan_whatever_enters_them() {
    for workers in [1, 2, 3] {
        for count in [2, 3] {
            let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
            let (ports, mut ends): (Vec<_>, Vec<_>) = ["p0", "p1", "p2"].map(pair).into_iter().unzip();
            let frame = |to: u8, from: u8| {
                [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5][..], &[0; 46]].concat()
            };
            for port in [1, 2] {
                assert!(ends[usize::from(port)].push_at(Nanos(1), &frame(0, port)));
            }
            for (ms, to) in [(10, 2), (11, 1), (12, 2)].into_iter().take(count) {
                assert!(ends[0].push_at(Nanos::from_millis(ms), &frame(to, 0)));
            }
            let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
            let report = TestBed { workers, ..MEETING }.setup(ports).simulate(Nanos(u64::MAX - 1));
            assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
            let mut times = |end: usize| {
                let taken = std::iter::from_fn(|| ends[end].take()).map(|frame| frame.facts.time.0 / 1000);
                // Without the frames that announced stations to the bridge.
                taken.filter(|&micros| micros > 1).collect::<Vec<_>>()
            };
            // 64 bytes take 512 µs at 1 Mbit/s. A packet that comes by the second link at 13 ms finds room,
            // and so does one by the third at 15 ms.
            let by_third = if count == 3 { vec![16_512] } else { vec![] };
            assert_eq!((times(1), times(2)), (vec![14_512], by_third), "{workers} workers, {count} packets");
        }
    }
}

/// The first link leads to the third, and this to the second. The third steers long packets to the fifth.
const STEERED: TestBed = TestBed {
    links: &[
        &[("delay", "1 ms")],
        &[("delay", "1 ms")],
        &[("delay", "1 ms"), ("filter", "steer aside if greater 500")],
        &[("delay", "1 ms")],
        &[("delay", "5 ms")],
    ],
    routes: &[((0, 1), &[0, 2, 1]), ((0, 2), &[0, 4, 3])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

/// Sends frames (milliseconds, port, bytes) from the first port, with long packets steered from the third
/// link to the fifth, and returns when frames left by the others (microseconds), and their lengths.
fn steered(bed: TestBed, frames: &[(u64, u8, usize)]) -> [Vec<(u64, usize)>; 2] {
    let pair = |name| MemoryPort::pair(name, Stamp::Source, 512, 1 << 17);
    let (ports, mut ends): (Vec<_>, Vec<_>) = ["p0", "p1", "p2"].map(pair).into_iter().unzip();
    let frame = |to: u8, from: u8, length: usize| {
        [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5][..], &vec![0; length - 14][..]].concat()
    };
    for port in [1, 2] {
        assert!(ends[usize::from(port)].push_at(Nanos(1), &frame(0, port, 60)));
    }
    for &(ms, to, length) in frames {
        assert!(ends[0].push_at(Nanos::from_millis(ms), &frame(to, 0, length)));
    }
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let workers = bed.workers;
    let mut setup = bed.setup(ports);
    let [link, aside] = [2, 4].map(|place| LinkRef::new(place % workers, place / workers));
    for path in setup.map.paths.before(link) {
        let instead = setup.map.paths.add_instead(path, aside);
        setup.map.steered.add(path, 0, instead);
    }
    let report = setup.simulate(Nanos(u64::MAX - 1));
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    [1, 2].map(|end| {
        let taken = std::iter::from_fn(|| ends[end].take());
        let left = taken.map(|frame| (frame.facts.time.0 / 1000, frame.bytes.len()));
        // Without the frame by which a port announced its station.
        left.filter(|(micros, _)| *micros > 0).collect()
    })
}

/// A short and a long packet come to the third link at one instant. With two workers the first makes the link
/// due at once, because it leads to the other worker.
#[test]
fn what_is_steered_at_a_link_that_is_due_takes_its_own_path() {
    for workers in [1, 2] {
        let [left, _] = steered(TestBed { workers, ..STEERED }, &[(10, 1, 60), (10, 1, 1000)]);
        assert_eq!(left, [(13_000, 60), (17_000, 1000)], "{workers} workers");
    }
}

/// The first link leads to the third, and the second to the fifth, to which the third steers long packets.
/// Both lead to the fourth.
const STEERED_TO_OTHERS: TestBed = TestBed {
    links: &[
        &[("delay", "1 ms")],
        &[("delay", "1 ms")],
        &[("delay", "1 ms"), ("filter", "steer aside if greater 500")],
        &[("delay", "1 ms")],
        &[("rate", "1 Mbit/s"), ("delay", "5 ms")],
    ],
    routes: &[((0, 1), &[0, 2, 3]), ((0, 2), &[1, 4, 3])],
    workers: 1,
    pool_bytes: 8 << 20,
    lead: Nanos::from_millis(1),
};

/// At 12 ms a short packet leaves the third link, and a long one comes to it by the first, and is steered to
/// the fifth, to which another goes by the second. Whether the third link is due then depends on its worker.
#[test]
fn what_is_steered_goes_on_before_links_whose_turn_comes_later() {
    for workers in [1, 2] {
        let frames = [(10, 1, 60), (11, 1, 1000), (11, 2, 60)];
        let [by_first, by_second] = steered(TestBed { workers, ..STEERED_TO_OTHERS }, &frames);
        // 1004 bytes take 8032 µs, and 64 bytes 512 µs; the fourth link takes a further millisecond.
        assert_eq!(by_first, [(13_000, 60), (26_032, 1000)], "{workers} workers");
        assert_eq!(by_second, [(26_544, 60)], "{workers} workers");
    }
}

#[test]
fn come_in_the_order_of_ports() {
    let one = left(1);
    assert!(one.len() > 90 && one.is_sorted_by_key(|(_, number)| *number), "{one:?}");
    assert_eq!(one, left(2));
}
