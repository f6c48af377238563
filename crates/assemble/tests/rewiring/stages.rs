//! What events add and remove in virtual time.

use super::{PORTS, link};
use crate::support::{PacketView, frame, memory_ports, simulate, source_ports};
use longwire_assemble::TO_THE_END;
use longwire_block::{Dice, Port, PortStats, Stamp};
use longwire_engine::Report;
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_scenario::{parse, plan_of};
use longwire_units::Nanos;
use std::fmt::Write as _;

/// Links between bridges, ports and a bridge with its port come and go at random times while frames are sent,
/// many of them to all: every packet is accounted for, and a second run is the same.
#[test]
fn random_stages_of_ports_and_bridges_account_for_every_packet_and_are_repeatable() {
    const ADDED: [(&str, &str); 3] = [
        (
            "[\"xy\"]",
            "[at.add.link]\nname = \"xy\"\nbetween = [\"x\", \"y\"]\ndelay = \"3 ms\"\nloss = \"5 %\"",
        ),
        ("[\"e\"]", "[at.add.port]\nname = \"e\"\ndriver = \"memory\"\nbridge = \"y\""),
        (
            "[\"f\", \"z\"]",
            "[at.add.bridge]\nname = \"z\"\n\
             [at.add.port]\nname = \"f\"\ndriver = \"memory\"\nbridge = \"z\"\n\
             [at.add.link]\nname = \"xz\"\nbetween = [\"x\", \"z\"]\nrate = \"1 Mbit/s\"",
        ),
    ];
    let (mut reached, mut dropped) = ([0; 6], 0);
    for case in 0..30 {
        let dice = &mut Dice::named(case, "bridge stages");
        let mut text = String::from("[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n");
        for (port, bridge) in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")] {
            let _ = write!(text, "[[port]]\nname = \"{port}\"\ndriver = \"memory\"\nbridge = \"{bridge}\"\n");
        }
        let (mut there, mut time) = ([false; 3], 0);
        for _ in 0..20 {
            time += dice.below(5_000_000);
            let which = dice.below(3) as usize;
            let (names, sections) = ADDED[which];
            let what = if there[which] { format!("remove = {names}") } else { sections.to_owned() };
            there[which] = !there[which];
            let _ = writeln!(text, "[[at]]\ntime = \"{time} ns\"\n{what}");
        }
        let plan = plan_of(&text);
        let mut frames: Vec<_> =
            (0..200).map(|_| (dice.below(60_000_000), dice.below(4), dice.below(6))).collect();
        frames.sort_unstable();
        let look =
            |view: &PacketView<'_>| view.left.then_some((view.time, view.meta.out_port, view.meta.in_port));
        let run = || {
            let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
            for &(time, from, to) in &frames {
                let mut bytes = frame(&plan, from as usize, (to % 4) as usize, 100);
                if to >= 4 {
                    bytes[..6].fill(0xff);
                }
                assert!(ends[from as usize].push_at(Nanos(time), &bytes));
            }
            simulate(&plan, ports, TO_THE_END, look)
        };
        let (one, other) = (run(), run());
        assert!(one.0 == other.0, "case {case}");
        assert_eq!(format!("{:?}", one.1.removed), format!("{:?}", other.1.removed), "case {case}");
        // The last may come when no frame is there any more.
        assert!(one.1.rewired > 10, "case {case}");
        one.0.iter().for_each(|(_, port, _)| reached[usize::from(*port).min(5)] += 1);
        let of_removed = one.1.removed.drops.iter().filter(|(why, _)| *why == "link-removed");
        dropped += of_removed.map(|(_, packets)| packets).sum::<u64>();
    }
    assert!(reached.iter().all(|packets| *packets > 50) && dropped > 50, "{reached:?} {dropped}");
}

#[test]
fn in_virtual_time_ports_come_and_go_at_their_nanosecond() {
    let text = "[[at]]\ntime = \"2 ms\"\nadd = { port = { name = \"c\", driver = \"memory\" }, \
        link = { name = \"l\", from = \"a\", to = \"c\", delay = \"3 ms\" } }\n\
        [[at]]\ntime = \"4 ms\"\nremove = \"c\"\n";
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let plan = plan_of(&format!("{}{}{text}", port("a"), port("b")));
    let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
    let mut to_all = frame(&plan, 0, 1, 100);
    to_all[..6].fill(0xff);
    for at in [1999, 2000, 3999, 4000] {
        assert!(ends[0].push_at(Nanos::from_micros(at), &to_all));
    }
    let look = |view: &PacketView<'_>| view.left.then_some((view.time / 1000, view.meta.out_port));
    let (mut left, report) = simulate(&plan, ports, TO_THE_END, look);
    left.sort_unstable();
    // What is on its way to the port when it leaves is dropped with its link.
    assert_eq!(left, [(1999, 1), (2000, 1), (3999, 1), (4000, 1)]);
    assert_eq!(report.removed.drops, [("link-removed", 2)]);
}

#[test]
fn counters_of_removed_ports_are_kept() {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let remove = "[[at]]\ntime = \"2 ms\"\nremove = \"c\"\n";
    let plan = plan_of(&format!("{}{}{}{remove}", port("a"), port("b"), port("c")));
    let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
    for at in [1000, 1999] {
        assert!(ends[2].push_at(Nanos::from_micros(at), &frame(&plan, 2, 1, 100)));
    }
    assert!(ends[0].push_at(Nanos::from_micros(3000), &frame(&plan, 0, 1, 100)));
    let (_, report) = simulate(&plan, ports, TO_THE_END, |_| None::<()>);
    let in_frames: Vec<_> = report.ports.iter().map(|port| port.stats.in_frames).collect();
    assert_eq!((in_frames, report.removed_ports.stats.in_frames), (vec![1, 0], 2));
    assert_eq!(report.all_ports().map(|stats| stats.in_frames).sum::<u64>(), 3);
}

/// Removing a port that lost packets does not make the run faithful.
#[test]
fn losses_of_removed_ports_count_in_the_verdict() {
    struct Lossy;
    impl Interceptor for Lossy {
        fn stats(&self, port: &dyn Port) -> PortStats {
            PortStats { in_missed: 3, ..port.stats() }
        }
    }
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    for remove in ["", "[[at]]\ntime = \"2 ms\"\nremove = \"c\"\n"] {
        let plan = plan_of(&format!("{}{}{}{remove}", port("a"), port("b"), port("c")));
        let (mut ports, mut ends) = memory_ports(&plan, Stamp::Source);
        let last = ports.pop().unwrap();
        ports.push(Box::new(InterceptedPort::new(last, Lossy)));
        assert!(ends[0].push_at(Nanos::from_micros(3000), &frame(&plan, 0, 1, 100)));
        let (_, report) = simulate(&plan, ports, TO_THE_END, |_| None::<()>);
        assert_eq!(report.ports.len(), if remove.is_empty() { 3 } else { 2 });
        let brief = report.fidelity.and_then(|fidelity| fidelity.brief);
        assert_eq!(brief.as_deref(), Some("port overflowed (3 packets dropped)"), "{remove}");
    }
}

/// Departure times (µs) of frames from a to b that arrive at `arrivals` (µs), and what was counted.
fn leaves(text: &str, arrivals: &[u64]) -> (Vec<u64>, Report) {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let plan = plan_of(&format!("{}{}{text}", port("a"), port("b")));
    let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
    // The bridge learns b's port before the run's first event.
    assert!(ends[1].push_at(Nanos::ZERO, &frame(&plan, 1, 0, 60)));
    for &at in arrivals {
        assert!(ends[0].push_at(Nanos::from_micros(at), &frame(&plan, 0, 1, 100)));
    }
    let look = |view: &PacketView<'_>| (view.left && view.meta.out_port == 1).then_some(view.time / 1000);
    simulate(&plan, ports, TO_THE_END, look)
}

#[test]
fn in_virtual_time_links_come_and_go_at_their_nanosecond() {
    let add = "[[at]]\ntime = \"2 ms\"\n\
        add = { link = { name = \"l\", from = \"a\", to = \"b\", delay = \"9 ms\" } }\n";
    assert_eq!(leaves(add, &[1999, 2000, 3000]).0, [1999, 11_000, 12_000]);
    // As a table, too. Held packets are dropped; one that departs at that time has departed.
    let table =
        "[[at]]\ntime = \"2 ms\"\n[at.add.link]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"9 ms\"\n";
    let remove = "[[at]]\ntime = \"12 ms\"\nremove = \"l\"\n";
    let (left, report) = leaves(&format!("{remove}{table}"), &[2000, 3000, 3001, 11_999, 12_000]);
    assert_eq!(left, [11_000, 12_000, 12_000]);
    assert_eq!((report.removed.drops.as_slice(), report.rewired), (&[("link-removed", 2)][..], 2));
    let (left, report) =
        leaves(&format!("{table}{remove}drain = true\n"), &[2000, 3000, 3001, 11_999, 12_000]);
    assert_eq!(left, [11_000, 12_000, 12_000, 12_001, 20_999]);
    assert_eq!(report.removed.dropped(), 0);
    // A remaining link keeps its packets, and the new one starts empty.
    let stays = link("l", "a", "b", "rate = \"80 kbit/s\"\nframing = \"ip\"");
    let back = "[[at]]\ntime = \"4 ms\"\n[at.add.link]\nname = \"back\"\n\
        from = \"b\"\nto = \"a\"\ndelay = \"1 s\"\n";
    assert_eq!(leaves(&format!("{stays}{back}"), &[0, 0, 5000]).0, [8600, 17_200, 25_800]);
}

#[test]
fn what_an_event_cannot_add_or_remove_is_an_error_of_the_scenario() {
    let ports = "[[port]]\nname = \"a\"\ndriver = \"memory\"\n[[port]]\nname = \"b\"\ndriver = \"memory\"\n";
    for (event, wrong) in [
        ("remove = \"x\"", "is called \"x\""),
        (
            "add = { link = { name = \"x\", from = \"a\", to = \"c\" } }",
            "there is no host, port or bridge \"c\"",
        ),
        ("add = { link = { from = \"a\", to = \"b\", rat = \"1\" } }", "rat"),
        ("add = { router = { name = \"x\" } }", "\"ports\" is missing"),
        ("add = { medium = { name = \"x\" } }", "it adds to medium"),
        ("add = { link = { from = \"a\", to = \"b\" } }\nevery = \"1 s\"", "stands alone and happens once"),
        ("add = { link = { from = \"a\", to = \"b\" } }\nlink = \"x\"", "stands alone and happens once"),
        ("add = \"[[lin\"", "what it adds is not TOML: "),
        ("add = 7", ""),
        ("add = { link = 7 }", ""),
    ] {
        let error =
            parse("s.toml", &format!("{ports}[[at]]\ntime = \"1 s\"\n{event}\n")).unwrap_err().to_string();
        assert!(error.contains(wrong) && error.contains("s.toml:7"), "{event}: {error}");
    }
}

/// Random links come and go at random times while sources send: every packet is accounted for, and a second
/// run is the same.
#[test]
fn random_stages_account_for_every_packet_and_are_repeatable() {
    const KEYS: [&str; 5] = [
        "rate = \"300 kbit/s\"",
        "delay = \"20 ms\", loss = \"20 %\"",
        "delay = \"300 ms\"",
        "rate = \"1 Mbit/s\", delay = \"5 ms\", queue = \"fq-codel\"",
        "delay = { kind = \"jitter\", delay = \"30 ms\", jitter = \"20 ms\" }",
    ];
    let (mut removed, mut dropped) = (0, 0);
    for case in 0..40 {
        let dice = &mut Dice::named(case, "stages");
        let mut text = String::from("[engine]\npool = \"16 MiB\"\n");
        for (at, name) in PORTS.iter().enumerate() {
            let _ = write!(
                text,
                "[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.0.{}/32\"\n",
                at + 1
            );
        }
        for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")] {
            let _ = write!(
                text,
                "[[source]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\nmodel = \"poisson\"\n\
                 rate = \"500 kbit/s\"\nsize = \"200 B\"\nfor = \"1 s\"\n"
            );
        }
        let mut there: Vec<(usize, usize)> = Vec::new();
        let mut time = 0;
        for _ in 0..20 {
            time += dice.below(90_000_000);
            let from = dice.below(4) as usize;
            let ends = (from, (from + 1) % 4);
            let name = format!("{}{}", PORTS[ends.0], PORTS[ends.1]);
            let _ = write!(text, "[[at]]\ntime = \"{time} ns\"\n");
            if let Some(at) = there.iter().position(|known| *known == ends) {
                there.swap_remove(at);
                let _ = write!(text, "remove = \"{name}\"\ndrain = {}\n", dice.below(3) == 0);
                removed += 1;
            } else {
                there.push(ends);
                let keys = KEYS[dice.below(KEYS.len() as u64) as usize];
                let (from, to) = (PORTS[ends.0], PORTS[ends.1]);
                let _ = writeln!(
                    text,
                    "add = {{ link = {{ name = \"{name}\", from = \"{from}\", to = \"{to}\", {keys} }} }}"
                );
            }
        }
        let plan = plan_of(&text);
        let look =
            |view: &PacketView<'_>| view.left.then_some((view.time, view.meta.out_port, view.meta.in_port));
        let run = || simulate(&plan, source_ports(&plan), TO_THE_END, look);
        let (one, other) = (run(), run());
        assert!(one.0.len() > 500 && one.0 == other.0, "case {case}");
        assert_eq!(format!("{:?}", one.1.removed), format!("{:?}", other.1.removed), "case {case}");
        dropped +=
            one.1.removed.drops.iter().filter(|(why, _)| *why == "link-removed").map(|(_, n)| n).sum::<u64>();
    }
    assert!(removed > 200 && dropped > 100, "{removed} links were removed, {dropped} packets dropped");
}
