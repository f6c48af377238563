//! A running engine changes from one scenario to another while packets flow: links join and leave, and every
//! packet is accounted for.
#![forbid(unsafe_code)]

mod support;

use longwire_assemble::{Built, Layout, TO_THE_END, build, rewire};
use longwire_block::{Dice, Stamp};
use longwire_engine::{Remote, Report, Run};
use longwire_port::driver::memory::FarEnd;
use longwire_scenario::{Plan, parse, plan_of};
use longwire_units::Nanos;
use std::fmt::Write as _;
use support::{Sight, frame, memory_ports, simulate, source_ports};

const PORTS: [&str; 4] = ["a", "b", "c", "d"];

/// A scenario of these links on one bridge.
fn scenario(engine: &str, links: &[String]) -> Plan {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let ports: String = PORTS.iter().map(|name| port(name)).collect();
    plan_of(&format!("[engine]\npool = \"64 MB\"\n{engine}\n{ports}{}", links.concat()))
}

fn link(name: &str, from: &str, to: &str, keys: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
}

/// A running engine and its plan.
struct Net {
    run: Run,
    remote: Remote,
    ends: Vec<FarEnd>,
    pushed: u64,
    plan: Plan,
    layout: Layout,
}

impl Net {
    fn start(plan: Plan) -> Self {
        let (ports, ends) = memory_ports(&plan, Stamp::Poll);
        let Built { setup, layout, .. } = build(&plan, ports, |_| None).unwrap();
        let run = setup.start();
        let mut net = Self { remote: run.remote(), run, ends, pushed: 0, plan, layout };
        // The bridge learns each station.
        (0..PORTS.len()).for_each(|from| net.send(from, (from + 1) % PORTS.len(), 60));
        net.settle();
        net
    }

    fn send(&mut self, from: usize, to: usize, len: usize) {
        let frame = frame(&self.plan, from, to, len);
        assert!(self.ends[from].push(&frame), "the ring is full");
        self.pushed += 1;
    }

    fn report(&self) -> Report {
        self.remote.report(longwire_engine::Tolerance::default()).unwrap()
    }

    /// Waits until all that was sent has arrived.
    fn settle(&mut self) -> Report {
        loop {
            let report = self.report();
            if report.flow.taken == self.pushed {
                return report;
            }
            std::thread::yield_now();
        }
    }

    fn bring(&mut self, plan: Plan, drained: bool) -> (Vec<u32>, Vec<u32>) {
        let made = rewire(&self.plan, &self.layout, &plan, drained).unwrap_or_else(|error| panic!("{error}"));
        self.remote.rewire(made.rewiring).unwrap();
        (self.plan, self.layout) = (plan, made.layout);
        (made.added, made.removed)
    }

    fn taken(&mut self, port: usize) -> usize {
        std::iter::from_fn(|| self.ends[port].take()).count()
    }
}

fn of<'r>(net: &Net, report: &'r Report, name: &str) -> &'r longwire_link::LinkStats {
    let place = net.plan.links.iter().position(|link| &*link.name == name).unwrap() as u32;
    &report.links.iter().find(|link| link.place == place).unwrap().stats
}

#[test]
fn an_added_link_gets_the_packets_and_a_removed_one_drops_what_it_holds() {
    let up = link("up", "a", "b", "delay = \"90 s\"");
    let mut net = Net::start(scenario("", std::slice::from_ref(&up)));
    (0..10).for_each(|_| net.send(0, 1, 100));
    let before = net.settle();
    assert_eq!(of(&net, &before, "up").in_packets, 11);
    // It precedes the other in the plan, and has another index in the engine.
    let other = link("other", "c", "d", "delay = \"95 s\"");
    assert_eq!(net.bring(scenario("", &[other.clone(), up]), false), (vec![0], vec![]));
    (0..5).for_each(|_| net.send(2, 3, 100));
    (0..3).for_each(|_| net.send(0, 1, 100));
    let report = net.settle();
    assert_eq!((of(&net, &report, "up").in_packets, of(&net, &report, "other").in_packets), (14, 5));
    assert!(report.is_conserved(), "{report:?}");
    assert_eq!(net.bring(scenario("", std::slice::from_ref(&other)), false), (vec![], vec![1]));
    (0..4).for_each(|_| net.send(0, 1, 100));
    let report = net.settle();
    assert_eq!(report.removed.drops, [("link-removed", 14)]);
    assert_eq!((report.links.len(), of(&net, &report, "other").in_packets), (1, 5));
    assert!(report.is_conserved(), "{report:?}");
    // Unimpaired now.
    while net.taken(1) == 0 {
        std::thread::yield_now();
    }
    // The same name again: its counters begin anew, and its index is one that was used before.
    net.bring(scenario("", &[other, link("up", "a", "b", "rate = \"1 Gbit/s\"")]), false);
    net.send(0, 1, 100);
    let report = net.settle();
    assert_eq!((of(&net, &report, "up").in_packets, report.removed.in_packets), (1, 14));
    assert_eq!(net.layout.links.iter().map(|link| link.local()).max(), Some(1));
    let report = net.run.stop();
    assert!(report.is_conserved(), "{report:?}");
}

#[test]
fn a_drained_link_sends_what_it_holds() {
    let mut net = Net::start(scenario("", &[link("up", "a", "b", "delay = \"300 ms\"")]));
    net.taken(1);
    (0..10).for_each(|_| net.send(0, 1, 100));
    net.settle();
    net.bring(scenario("", &[]), true);
    let mut came = 0;
    while came < 11 {
        came += net.taken(1);
        std::thread::yield_now();
    }
    let report = net.run.stop();
    assert_eq!((report.removed.out_packets, report.removed.dropped()), (11, 0));
    assert!(report.is_conserved(), "{report:?}");
}

#[test]
fn what_cannot_change_is_refused_and_nothing_happens() {
    let up = link("up", "a", "b", "rate = \"1 Mbit/s\"");
    let plan = scenario("", std::slice::from_ref(&up));
    let (ports, _ends) = memory_ports(&plan, Stamp::Poll);
    let Built { layout, .. } = build(&plan, ports, |_| None).unwrap();
    let refused = |text: String| match rewire(&plan, &layout, &plan_of(&text), false) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("not refused:\n{text}"),
    };
    let text = plan.text.to_string();
    assert!(refused(format!("seed = 9\n{text}")).starts_with("seed differs"));
    assert!(refused(format!("{text}[[bridge]]\nname = \"bridge\"\n")).starts_with("bridge differs"));
    let event = "[[at]]\ntime = \"1 s\"\nlink = \"up\"\nrate = \"2 Mbit/s\"\n";
    assert!(refused(format!("{text}{event}")).starts_with("at differs"));
}

/// Random links come and go among four ports, with one worker and with two, while packets flow.
#[test]
fn every_packet_is_accounted_for_whatever_comes_and_goes() {
    const KEYS: [&str; 8] = [
        "rate = \"1 Mbit/s\"",
        "delay = \"1 ms\"",
        "delay = \"100 s\"",
        "rate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nloss = \"20 %\"",
        "rate = \"2 Mbit/s\"\nqueue = \"fq-codel\"",
        "delay = { kind = \"jitter\", delay = \"2 ms\", jitter = \"1 ms\" }",
        "rate = \"5 Mbit/s\"\nduplicate = \"10 %\"",
        "rate = \"1 Mbit/s\"\nbackground = { kind = \"poisson\", rate = \"500 kbit/s\" }",
    ];
    let mut removed = 0;
    for case in 0..6 {
        let dice = &mut Dice::named(case, "rewiring");
        let engine = if case % 2 == 0 { "" } else { "workers = 2" };
        let choose = |dice: &mut Dice| {
            let mut links = Vec::new();
            for (at, from) in PORTS.iter().enumerate() {
                for to in PORTS.iter().skip(at % 2).filter(|to| *to != from) {
                    if dice.below(2) == 0 {
                        let keys = KEYS[dice.below(KEYS.len() as u64) as usize];
                        links.push(link(&format!("{from}{to}{}", dice.below(2)), from, to, keys));
                    }
                }
            }
            scenario(engine, &links)
        };
        let mut net = Net::start(choose(dice));
        for _ in 0..25 {
            for _ in 0..40 {
                let from = dice.below(4) as usize;
                net.send(from, (from + 1 + dice.below(3) as usize) % 4, 60 + dice.below(900) as usize);
            }
            let plan = choose(dice);
            removed += net.bring(plan, dice.below(4) == 0).1.len();
            (0..PORTS.len()).for_each(|port| _ = net.taken(port));
        }
        net.settle();
        let report = net.run.stop();
        assert!(report.is_conserved(), "case {case}: {report:?}");
        assert!(report.errors.is_empty(), "case {case}: {:?}", report.errors);
        assert!(report.removed.in_packets > 0, "case {case}");
    }
    assert!(removed > 200, "{removed} links were removed");
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
    let look = |sight: &Sight<'_>| (sight.left && sight.meta.out_port == 1).then_some(sight.time / 1000);
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
        ("add = { bridge = { name = \"x\" } }", "it adds to bridge"),
        ("add = { link = { from = \"a\", to = \"b\" } }\nevery = \"1 s\"", "stands alone and happens once"),
        ("add = { link = { from = \"a\", to = \"b\" } }\nlink = \"x\"", "stands alone and happens once"),
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
            |sight: &Sight<'_>| sight.left.then_some((sight.time, sight.meta.out_port, sight.meta.in_port));
        let run = || simulate(&plan, source_ports(&plan), TO_THE_END, look);
        let (one, other) = (run(), run());
        assert!(one.0.len() > 500 && one.0 == other.0, "case {case}");
        assert_eq!(format!("{:?}", one.1.removed), format!("{:?}", other.1.removed), "case {case}");
        dropped +=
            one.1.removed.drops.iter().filter(|(why, _)| *why == "link-removed").map(|(_, n)| n).sum::<u64>();
    }
    assert!(removed > 200 && dropped > 100, "{removed} links were removed, {dropped} packets dropped");
}
