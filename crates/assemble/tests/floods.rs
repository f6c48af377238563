//! Flooded frames pass each link once, and are copied where their paths diverge, whatever the number of
//! workers.

use crate::support::{memory_ports, port, simulate, source_ports};
use longwire_assemble::TO_THE_END;
use longwire_block::Stamp;
use longwire_engine::Report;
use longwire_scenario::plan_of;
use longwire_units::Nanos;

/// A departure: port and time in µs.
type Departure = (String, u64);

/// ```text
/// a --up-- left --trunk-- right --rc-- c
///           |                |
///           lb               d (no link)
///           |
///           b
/// ```
const BRIDGES: &str = r#"
[[bridge]]
name = "left"
[[bridge]]
name = "right"
[[link]]
name = "lb"
between = ["left", "b"]
delay = "2 ms"
[[link]]
name = "trunk"
between = ["left", "right"]
delay = "4 ms"
[[link]]
name = "rc"
between = ["right", "c"]
delay = "3 ms"
"#;

/// The link "up", both ways.
const BETWEEN: &str = "between = [\"a\", \"left\"]\n";

/// Departures, and by link (its name and "in" packets) the traffic, if `packets` frames come to `a` (or
/// another port) for an unknown address: 1000 bytes per millisecond.
fn run(
    from: &str,
    up: &str,
    rest: &str,
    packets: u32,
    workers: u32,
) -> (Vec<Departure>, Vec<(String, u64)>, Report) {
    let ports = [("a", 1, ""), ("b", 2, ""), ("c", 3, ""), ("d", 4, "bridge = \"right\"")];
    let ports = ports.map(|(name, number, more)| port(name, "source", number, more)).concat();
    let text = format!(
        "{BRIDGES}{ports}[[link]]\nname = \"up\"\ndelay = \"1 ms\"\n{up}\n{rest}\n\
         [[source]]\nname = \"s\"\nfrom = \"{from}\"\nto = \"b\"\nrate = \"8 Mbit/s\"\npackets = {packets}\n\
         [engine]\nworkers = {workers}\npool = \"8 MiB\"\n"
    );
    let mut plan = plan_of(&text);
    let source = &mut plan.sources[0];
    (source.mac.0, source.destination) = ([0xff; 6], "10.0.0.255".parse().unwrap());
    let look =
        |view: &crate::support::PacketView<'_>| view.left.then_some((view.meta.out_port, view.time / 1000));
    let (seen, report) = simulate(&plan, source_ports(&plan), TO_THE_END, look);
    let named = |(port, time): (u16, u64)| (plan.ports[usize::from(port)].name.to_string(), time);
    let mut left: Vec<Departure> = seen.into_iter().map(named).collect();
    left.sort();
    let passed = report.links.iter().filter(|link| link.stats.in_packets > 0);
    let passed = passed.map(|link| (plan.links[link.place as usize].name.to_string(), link.stats.in_packets));
    let passed = passed.collect();
    (left, passed, report)
}

fn left(expected: &[(&str, u64)]) -> Vec<Departure> {
    expected.iter().map(|&(port, time)| (port.to_string(), time)).collect()
}

/// The names of `between`'s links, and how often each was passed.
fn passed(links: &[(String, u64)]) -> Vec<(&str, u64)> {
    links.iter().map(|(name, packets)| (&name[..], *packets)).collect()
}

#[test]
fn each_link_is_passed_once() {
    for workers in [1, 2, 3] {
        let (out, links, report) = run("a", BETWEEN, "", 1, workers);
        assert_eq!(out, left(&[("b", 3000), ("c", 8000), ("d", 5000)]), "{workers} workers");
        assert!(links.len() == 4 && links.iter().all(|(_, packets)| *packets == 1), "{links:?}");
        assert_eq!((report.flow.taken, report.flow.made, report.flow.sent), (1, 2, 3));
    }
}

#[test]
fn what_comes_in_past_all_links_is_copied_at_once() {
    for workers in [1, 2, 3] {
        let (out, links, report) = run("d", BETWEEN, "", 1, workers);
        assert_eq!(out, left(&[("a", 5000), ("b", 6000), ("c", 3000)]), "{workers} workers");
        assert!(links.len() == 4 && links.iter().all(|(_, packets)| *packets == 1), "{links:?}");
        assert_eq!(report.flow.made, 2);
    }
}

/// The first of three frames is lost on the link that all paths share, for all receivers.
#[test]
fn what_is_lost_on_the_shared_link_is_lost_for_all() {
    for workers in [1, 2] {
        let lossy = format!("{BETWEEN}loss = {{ kind = \"pattern\", list = \"1\" }}");
        let (out, ..) = run("a", &lossy, "", 3, workers);
        let expected = [("b", 4000), ("b", 5000), ("c", 9000), ("c", 10_000), ("d", 6000), ("d", 7000)];
        assert_eq!(out, left(&expected), "{workers} workers");
    }
}

/// A shared link with a rate sends 1004 bytes, with the check sequence, in 1.004 ms, once.
#[test]
fn the_shared_link_carries_one_frame() {
    let (out, ..) = run("a", &format!("{BETWEEN}rate = \"8 Mbit/s\""), "", 1, 1);
    assert_eq!(out, left(&[("b", 4004), ("c", 9004), ("d", 6004)]));
}

/// Frames that a filter steers from the shared link to another diverge behind that one.
#[test]
fn steered_frames_part_behind_the_other_link() {
    let up = "from = \"a\"\nto = \"left\"\nfilter = [\"steer sky if udp\"]\n";
    let sky = "[[link]]\nname = \"sky\"\nfrom = \"a\"\nto = \"left\"\ndelay = \"10 ms\"\n\
        [[link]]\nname = \"down\"\nfrom = \"left\"\nto = \"a\"\n";
    for workers in [1, 2] {
        let (out, links, _) = run("a", up, sky, 1, workers);
        assert_eq!(out, left(&[("b", 12_000), ("c", 17_000), ("d", 14_000)]), "{workers} workers");
        assert!(links.iter().all(|(_, packets)| *packets == 1), "{:?}", passed(&links));
    }
}

/// Two frames come at one moment: a flooded one, and behind it one for the first station only. They leave
/// their first link in this order, whatever the number of workers.
#[test]
fn a_flooded_frame_is_not_overtaken() {
    let text = "[[bridge]]\nname = \"b\"\n\
        [[port]]\nname = \"p{n - 1}\"\ncount = 3\ndriver = \"memory\"\nbridge = \"b\"\n\
        addresses = \"10.0.0.{n}/32\"\n\
        [[link]]\nname = \"l0\"\nbetween = [\"p0\", \"b\"]\nrate = \"8 Mbit/s\"\n[[link]]\nname = \"l1\"\n\
        between = [\"p1\", \"b\"]\nrate = { kind = \"trace\", file = \"0;1;1;4;9\" }\n\
        [[link]]\nname = \"l2\"\nbetween = [\"p2\", \"b\"]\n";
    let plain = |from: u8, to: [u8; 6], number: u8| {
        let mut frame = vec![number; 60];
        frame[..6].copy_from_slice(&to);
        frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, from, 0x88, 0xb5]);
        frame
    };
    for workers in [1, 2, 3] {
        let text = format!("{text}[engine]\nworkers = {workers}\npool = \"8 MiB\"\n");
        let plan = plan_of(&text);
        let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
        // The bridge learns the port of the first station.
        assert!(ends[0].push_at(Nanos::ZERO, &plain(0, [0xff; 6], 0)));
        assert!(ends[1].push_at(Nanos::from_millis(1), &plain(1, [0xff; 6], 1)));
        assert!(ends[1].push_at(Nanos::from_millis(1), &plain(1, [2, 0, 0, 0, 0, 0], 2)));
        simulate::<()>(&plan, ports, TO_THE_END, |_| None);
        let numbers: Vec<u8> = std::iter::from_fn(|| ends[0].take()).map(|frame| frame.bytes[20]).collect();
        assert_eq!(numbers, [1, 2], "{workers} workers");
    }
}
