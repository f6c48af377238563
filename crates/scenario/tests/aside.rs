//! Packets that leave a link otherwise than at its end: steered to another link, or answered.
#![forbid(unsafe_code)]

use longwire_block::{Port, Stamp};
use longwire_engine::Report;
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_scenario::{Plan, TO_THE_END, build, parse};
use longwire_units::Nanos;

const PORTS: &str = "[[port]]\nname = \"a\"\ndriver = \"memory\"\naddresses = \"10.0.0.1/32\"\n\
    [[port]]\nname = \"b\"\ndriver = \"memory\"\naddresses = \"10.0.0.2/32\"\n";

/// An IPv4 packet of UDP from a to b, to this UDP port, that must not be fragmented.
fn frame(plan: &Plan, to: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..6].copy_from_slice(&plan.ports[1].mac.0);
    frame[6..12].copy_from_slice(&plan.ports[0].mac.0);
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
    frame[20..24].copy_from_slice(&[0x40, 0, 64, 17]);
    frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
    frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
    frame[36..38].copy_from_slice(&to.to_be_bytes());
    frame
}

/// Frames, and when they came out, in µs.
type Frames = Vec<(u64, Vec<u8>)>;

/// Sends frames from a to b, 1 ms apart from 1 ms on; answers what came out of either port, and when.
fn run(plan: &Plan, frames: &[Vec<u8>]) -> ([Frames; 2], Report) {
    let (ports, mut ends): (Vec<Box<dyn Port>>, Vec<FarEnd>) = plan
        .ports
        .iter()
        .map(|port| {
            let (port, end) = MemoryPort::pair(&port.name, Stamp::Source, 1 << 10, 8 << 20);
            (Box::new(port) as Box<dyn Port>, end)
        })
        .unzip();
    // The bridge learns where b is from a frame that b sends to itself.
    let mut greeting = frame(plan, 0, 60);
    greeting[6..12].copy_from_slice(&plan.ports[1].mac.0);
    assert!(ends[1].push_at(Nanos::ZERO, &greeting));
    for (n, frame) in (1u64..).zip(frames) {
        assert!(ends[0].push_at(Nanos::from_millis(n), frame));
    }
    let report = build(plan, ports, |_| None).unwrap().setup.simulate(TO_THE_END);
    let mut out = [Vec::new(), Vec::new()];
    for (list, end) in out.iter_mut().zip(&mut ends) {
        while let Some(frame) = end.take() {
            list.push((frame.facts.time.0 / 1000, frame.bytes));
        }
    }
    (out, report)
}

/// Packets to port 443 take the second link, over one hop and over two.
#[test]
fn steered_packets_take_the_other_link() {
    let one = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"10 ms\"\n\
        filter = [\"steer sky if udp dst port 443\"]\n\
        [[link]]\nname = \"sky\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"300 ms\"\n";
    let two = "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n\
        [[link]]\nname = \"in\"\nfrom = \"a\"\nto = \"x\"\ndelay = \"1 ms\"\n\
        [[link]]\nname = \"up\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"10 ms\"\n\
        filter = [\"steer sky if udp dst port 443\"]\n\
        [[link]]\nname = \"sky\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"300 ms\"\n\
        [[link]]\nname = \"out\"\nfrom = \"y\"\nto = \"b\"\ndelay = \"2 ms\"\n";
    for (links, more) in [(one, 0), (two, 3000)] {
        for workers in [1, 2] {
            let text = format!("[engine]\nworkers = {workers}\n{PORTS}{links}");
            let plan = parse("aside.toml", &text).unwrap_or_else(|error| panic!("{error}"));
            let frames: Vec<_> = [80, 443, 80, 443].map(|port| frame(&plan, port, 200)).into();
            let ([_, out], report) = run(&plan, &frames);
            let mut times: Vec<u64> = out.iter().map(|(time, _)| time - more).collect();
            times.sort_unstable();
            assert_eq!(times, [11_000, 13_000, 302_000, 304_000], "{workers} workers");
            assert!(report.is_conserved(), "{report:?}");
            let steered: u64 = report.links.iter().map(|link| link.stats.steered_packets).sum();
            assert_eq!(steered, 2);
        }
    }
}

#[test]
fn a_link_to_steer_to_must_be_there() {
    let text = |target: &str| {
        format!(
            "{PORTS}[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nfilter = \"steer {target}\"\n\
             [[link]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\n"
        )
    };
    for (target, wanted) in
        [("sky", "there is no such link"), ("back", "goes elsewhere"), ("up", "this link")]
    {
        let error = parse("aside.toml", &text(target)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Links that steer to each other, and are no packet's way otherwise, would be passed by without a word.
#[test]
fn a_ring_of_steers_is_refused() {
    let ring = |more: &str| {
        format!(
            "{PORTS}[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nfilter = \"steer sky if tcp\"\n{more}\
             [[link]]\nname = \"sky\"\nfrom = \"a\"\nto = \"b\"\nfilter = \"steer up if udp\"\n"
        )
    };
    let error = parse("aside.toml", &ring("")).unwrap_err().to_string();
    assert!(error.contains("no packet comes to it") && error.contains("\"up\""), "{error}");
    let first = "[[link]]\nname = \"first\"\nfrom = \"a\"\nto = \"b\"\nfilter = \"steer up if udp\"\n";
    parse("aside.toml", &ring(first)).unwrap_or_else(|error| panic!("{error}"));
    let matched = "match = [{ source = \"10.0.0.1\", destination = \"10.0.0.2\" }]\n";
    parse("aside.toml", &ring(matched)).unwrap_or_else(|error| panic!("{error}"));
}

/// What is too long is dropped, and its sender told at once, by the port it came from.
#[test]
fn senders_of_what_is_too_big_are_told() {
    let links = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"10 ms\"\n\
        mtu = { kind = \"too-big\", mtu = 1000 }\n";
    let plan = parse("aside.toml", &format!("{PORTS}{links}")).unwrap();
    let ([back, out], report) = run(&plan, &[frame(&plan, 80, 1015), frame(&plan, 80, 1014)]);
    assert_eq!(out.len(), 1);
    let [(time, answer)] = &back[..] else { panic!("{back:?}") };
    assert_eq!(*time, 1000);
    assert_eq!(answer[..12], [plan.ports[0].mac.0, plan.ports[1].mac.0].concat());
    assert_eq!((answer[34], answer[35], &answer[40..42]), (3, 4, &1000u16.to_be_bytes()[..]));
    assert!(report.is_conserved(), "{report:?}");
}
