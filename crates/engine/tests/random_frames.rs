//! Arbitrary bytes of any length through bridge and links, in simulated and in real time: nothing panics, and
//! every frame is sent, held or dropped for a reason.

use crate::support::TestBed;
use longwire_block::{DropReason, Port, Stamp};
use longwire_engine::{Report, Tolerance};
use longwire_packet::MAX_FRAME;
use longwire_port::driver::InterfaceState;
use longwire_port::driver::memory::{Facts, FarEnd, MemoryPort};
use longwire_units::Nanos;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::{Duration, Instant};

const PORTS: u16 = 3;

const BED: TestBed = TestBed {
    links: &[
        &[("rate", "50 Mbit/s"), ("queue", "10 packets"), ("delay", "1 ms"), ("mtu", "1500")],
        &[("loss", "20 %"), ("delay", "200 us"), ("rate", "1 Gbit/s"), ("queue", "20 kB")],
        &[("rate", "300 Mbit/s"), ("queue", "2 ms"), ("delay", "500 us")],
    ],
    routes: &[((0, 1), &[0]), ((1, 0), &[1]), ((0, 2), &[2, 1]), ((2, 0), &[0, 1, 2]), ((1, 2), &[1, 0])],
    workers: 1,
    pool_bytes: 4 << 20,
    lead: Nanos::from_micros(200),
};

/// A frame: its input port, time since the previous frame, bytes, and number of truncated bytes.
type Input = (u16, u64, Vec<u8>, u32);

/// Bytes that resemble a frame, so that they get further than the bridge.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let mac = (0u8..5).prop_map(|station| match station {
        4 => [0xff; 6],
        _ => [2, 0, 0, 0, 0, station],
    });
    let kind = prop_oneof![
        Just(vec![0x08, 0x00, 0x45]),
        Just(vec![0x86, 0xdd, 0x60]),
        Just(vec![0x81, 0x00, 0x00, 0x01, 0x08, 0x00]),
        Just(vec![0x88, 0xa8]),
        Just(vec![0x08, 0x06]),
        vec(any::<u8>(), 0..4),
    ];
    (mac.clone(), mac, kind, vec(any::<u8>(), 0..1600))
        .prop_map(|(to, from, kind, rest)| [&to[..], &from[..], &kind[..], &rest[..]].concat())
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => plausible(),
        2 => vec(any::<u8>(), 0..80),
        1 => vec(any::<u8>(), 0..3000),
        1 => (plausible(), 0..MAX_FRAME + 100, any::<u8>()).prop_map(|(mut frame, len, fill)| {
            frame.resize(len, fill);
            frame
        }),
    ]
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let wait = prop_oneof![Just(0), 0..2000u64, 0..3_000_000u64];
    let cut = prop_oneof![3 => Just(0), 1 => 0..70_000u32];
    vec((0..PORTS, wait, frame(), cut), 1..60)
}

fn ports(stamp: Stamp, bytes: usize) -> (Vec<Box<dyn Port>>, Vec<FarEnd>) {
    let pair = |place: u16| MemoryPort::pair(&format!("p{place}"), stamp, 256, bytes);
    let (ports, ends): (Vec<_>, Vec<_>) = (0..PORTS).map(pair).unzip();
    (ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect(), ends)
}

/// Frames that came to the ports according to a report, stored or not.
fn seen(report: &Report) -> u64 {
    let stats = report.ports.iter().map(|port| &port.stats);
    stats.map(|stats| stats.in_frames + stats.in_bad + stats.in_pool_full).sum()
}

/// Checks that no frame is missing, and that the far ends received what the ports sent.
fn check(report: &Report, inputs: &[Input], ends: &mut [FarEnd]) -> Result<(), TestCaseError> {
    prop_assert!(report.errors.is_empty(), "{:?}", report.errors);
    prop_assert!(report.is_conserved(), "{report:?}");
    prop_assert_eq!(seen(report), inputs.len() as u64);
    let mut taken = 0;
    for end in ends {
        while end.take().is_some() {
            taken += 1;
        }
    }
    let stats = report.ports.iter().map(|port| &port.stats);
    let given: u64 = stats.clone().map(|stats| stats.out_frames).sum();
    let refused: u64 = stats.map(|stats| stats.out_full + stats.out_down + stats.out_oversize).sum();
    prop_assert_eq!((taken, report.flow.sent), (given, given));
    let by_ports = [DropReason::PortDown, DropReason::PortFull, DropReason::PortMtu]
        .map(|reason| report.flow.dropped(reason));
    prop_assert_eq!(by_ports.iter().sum::<u64>(), refused);
    let reasons = report.flow.drops.iter().chain(report.links.iter().flat_map(|link| &link.stats.drops));
    let dropped: u64 = reasons.map(|(_, packets)| packets).sum();
    prop_assert_eq!(report.flow.taken + report.flow.made, report.flow.sent + dropped);
    Ok(())
}

/// Peak memory of the process, reserved or in use, in bytes.
fn most_reserved() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Memory grows with the number of ports, not with its square, which would be 25 GB here.
#[test]
fn ten_thousand_ports() {
    const PORTS: u16 = 10_000;
    let before = most_reserved();
    let pair = |place: u16| MemoryPort::pair(&format!("p{place}"), Stamp::Source, 4, 1 << 12);
    let (ports, mut ends): (Vec<_>, Vec<_>) = (0..PORTS).map(pair).unzip();
    let mut frame = vec![0xff; 60];
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    assert!(ends[0].push_at(Nanos(1), &frame));
    let ports = ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let report = TestBed { links: &[], routes: &[], ..BED }.setup(ports).simulate(Nanos(u64::MAX - 1));
    assert_eq!((report.flow.sent, report.is_conserved()), (u64::from(PORTS) - 1, true));
    let taken = most_reserved() - before;
    assert!(taken < 4 << 30, "{taken}");
}

/// A packet for a port that was down is dropped, is not sent, and makes the run unfaithful.
#[test]
fn a_port_that_is_down_drops() {
    let (ports, mut ends) = ports(Stamp::Source, 8 << 20);
    let mut frame = vec![0xff; 60];
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    ends[1].set_state(InterfaceState::Down);
    assert!(ends[0].push_at(Nanos(1), &frame));
    let report = BED.setup(ports).simulate(Nanos(u64::MAX - 1));
    let sent: u64 = report.ports.iter().map(|port| port.stats.out_frames).sum();
    let others = u64::from(PORTS) - 1;
    assert_eq!(
        (report.flow.sent, sent, report.flow.dropped(DropReason::PortDown)),
        (others - 1, others - 1, 1)
    );
    assert!(report.is_conserved(), "{report:?}");
    let fidelity = report.fidelity.unwrap();
    assert!(!fidelity.faithful && fidelity.causes[0].contains("was down or gone"), "{fidelity:?}");
}

fn facts(time: Nanos, bytes: &[u8], cut: u32) -> Facts {
    Facts { time, wire_len: bytes.len() as u32 + cut, ..Facts::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn simulated(inputs in inputs(), workers in 1..3u32) {
        let (ports, mut ends) = ports(Stamp::Source, 8 << 20);
        let mut at = Nanos(1);
        for (port, wait, bytes, cut) in &inputs {
            at += Nanos(*wait);
            prop_assert!(ends[usize::from(*port)].push_with(bytes, facts(at, bytes, *cut)));
        }
        let bed = TestBed { workers, pool_bytes: 32 << 20, ..BED };
        let report = bed.setup(ports).simulate(Nanos(u64::MAX - 1));
        check(&report, &inputs, &mut ends)?;
        let held: u64 = report.flow.dropped(DropReason::Stopped);
        prop_assert_eq!(held, 0, "a simulated run ends when nothing is left");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn real(inputs in inputs(), workers in 1..3u32) {
        let (ports, mut ends) = ports(Stamp::Poll, 8 << 20);
        let run = TestBed { workers, ..BED }.setup(ports).start();
        for (port, _, bytes, cut) in &inputs {
            prop_assert!(ends[usize::from(*port)].push_with(bytes, facts(Nanos::NEVER, bytes, *cut)));
        }
        let remote = run.remote();
        let begun = Instant::now();
        while seen(&remote.report(Tolerance::default()).unwrap()) < inputs.len() as u64 {
            prop_assert!(begun.elapsed() < Duration::from_secs(20), "the ports do not see all frames");
        }
        check(&run.stop(), &inputs, &mut ends)?;
    }
}
