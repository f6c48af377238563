//! A running engine is brought from one scenario to the next while packets flow: links and ports join and
//! leave, and every packet is accounted for.
#![forbid(unsafe_code)]

mod support;

use longwire_assemble::{Built, Layout, TO_THE_END, build, rewire};
use longwire_block::Port;
use longwire_block::{Dice, Stamp};
use longwire_engine::{Remote, Report, Run};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_scenario::{Plan, parse, parse_after, plan_of};
use longwire_units::Nanos;
use std::fmt::Write as _;
use support::{PacketView, frame, memory_ports, simulate, source_ports};

const PORTS: [&str; 4] = ["a", "b", "c", "d"];

/// A scenario of these links on one bridge.
fn scenario(engine: &str, links: &[String]) -> Plan {
    among(&PORTS, engine, links)
}

/// A scenario of these ports and links on one bridge.
fn among(ports: &[&str], engine: &str, links: &[String]) -> Plan {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let ports: String = ports.iter().map(|name| port(name)).collect();
    plan_of(&format!("[engine]\npool = \"64 MB\"\n{engine}\n{ports}{}", links.concat()))
}

fn link(name: &str, from: &str, to: &str, keys: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
}

/// A running engine and its plan.
struct Net {
    run: Run,
    remote: Remote,
    /// By a port's place; none where a port has left.
    ends: Vec<Option<FarEnd>>,
    pushed: u64,
    plan: Plan,
    layout: Layout,
}

impl Net {
    fn start(plan: Plan) -> Self {
        let (ports, ends) = memory_ports(&plan, Stamp::Poll);
        let Built { setup, layout, .. } = build(&plan, ports, |_| None).unwrap();
        let run = setup.start();
        let ends = ends.into_iter().map(Some).collect();
        let mut net = Self { remote: run.remote(), run, ends, pushed: 0, plan, layout };
        // Each station tells the bridge where it is.
        let count = net.ends.len();
        (0..count).for_each(|from| net.send(from, (from + 1) % count, 60));
        net.settle();
        net
    }

    fn send(&mut self, from: usize, to: usize, len: usize) {
        let frame = frame(&self.plan, from, to, len);
        let end = self.ends[from].as_mut().expect("a port that is there");
        assert!(end.push(&frame), "the ring is full");
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
        let plan = parse_after(&self.plan, &plan.text).unwrap();
        let mut made =
            rewire(&self.plan, &self.layout, &plan, drained).unwrap_or_else(|error| panic!("{error}"));
        self.ends.resize_with(plan.ports.len(), || None);
        let (ports, ends): (Vec<Box<dyn Port>>, Vec<_>) = made
            .new_ports
            .iter()
            .map(|&place| {
                let name = &plan.ports[usize::from(place)].name;
                let (port, end) = MemoryPort::pair(name, Stamp::Poll, 1 << 14, 16 << 20);
                (Box::new(port) as Box<dyn Port>, (place, end))
            })
            .unzip();
        made.old_ports.iter().for_each(|&place| self.ends[usize::from(place)] = None);
        ends.into_iter().for_each(|(place, end)| self.ends[usize::from(place)] = Some(end));
        made.give_ports(ports);
        self.remote.rewire(made.rewiring).unwrap();
        (self.plan, self.layout) = (plan, made.layout);
        (made.added, made.removed)
    }

    fn taken(&mut self, port: usize) -> usize {
        let end = self.ends[port].as_mut();
        end.map_or(0, |end| std::iter::from_fn(|| end.take()).count())
    }

    /// How many frames of this length to a port's own station have come there.
    fn taken_of(&mut self, port: usize, len: usize) -> usize {
        let own = self.plan.ports[port].mac.0;
        let Some(end) = self.ends[port].as_mut() else { return 0 };
        let frames = std::iter::from_fn(|| end.take());
        frames.filter(|frame| frame.bytes.len() == len && frame.bytes[..6] == own).count()
    }

    /// Places of the ports that are there.
    fn there(&self) -> Vec<usize> {
        (0..self.ends.len()).filter(|&place| self.ends[place].is_some()).collect()
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
    assert!(refused(format!("seed = 9\n{text}")).starts_with("seed: it is fixed"));
    let event = "[[at]]\ntime = \"1 s\"\nlink = \"up\"\nrate = \"2 Mbit/s\"\n";
    assert!(refused(format!("{text}{event}")).starts_with("[[at]]: it is fixed"));
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

/// Ports come and go with their links, in the middle of others, at one worker and at two, with ticks and
/// without.
#[test]
fn every_packet_is_accounted_for_whatever_ports_come_and_go() {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    const KEYS: [&str; 4] =
        ["rate = \"1 Mbit/s\"", "delay = \"2 ms\"", "delay = \"100 s\"", "loss = \"20 %\""];
    let mut left = 0;
    for case in 0..6 {
        let dice = &mut Dice::named(case, "ports");
        let engine = ["", "workers = 2", "tick = \"1 ms\""][case as usize % 3];
        let choose = |dice: &mut Dice| {
            let mut names: Vec<&str> = NAMES.into_iter().filter(|_| dice.below(3) > 0).collect();
            if names.len() < 2 {
                names = vec!["b", "e"];
            }
            let mut links = Vec::new();
            for from in &names {
                for to in names.iter().filter(|to| *to != from) {
                    if dice.below(2) == 0 {
                        links.push(link(&format!("{from}{to}"), from, to, KEYS[dice.below(4) as usize]));
                    }
                }
            }
            among(&names, engine, &links)
        };
        let mut net = Net::start(choose(dice));
        for _ in 0..25 {
            let there = net.there();
            for _ in 0..30 {
                let at = dice.below(there.len() as u64) as usize;
                let to = (at + 1 + dice.below(there.len() as u64 - 1) as usize) % there.len();
                net.send(there[at], there[to], 60 + dice.below(900) as usize);
            }
            // What a port that leaves has not taken in is lost with it.
            net.settle();
            let plan = choose(dice);
            let before = net.there();
            net.bring(plan, dice.below(4) == 0);
            let after = net.there();
            left += before.iter().filter(|place| !after.contains(place)).count();
            after.iter().for_each(|&port| _ = net.taken(port));
        }
        // Without links all of them reach each other.
        net.bring(among(&NAMES, engine, &[]), false);
        let there = net.there();
        assert_eq!(there.len(), NAMES.len());
        for &from in &there {
            there.iter().filter(|to| **to != from).for_each(|&to| net.send(from, to, 77));
        }
        for &port in &there {
            let mut came = 0;
            while came < NAMES.len() - 1 {
                let end = net.ends[port].as_mut().unwrap();
                came += std::iter::from_fn(|| end.take()).filter(|frame| frame.bytes.len() == 77).count();
                std::thread::yield_now();
            }
        }
        let report = net.run.stop();
        assert!(report.is_conserved(), "case {case}: {report:?}");
        assert!(report.errors.is_empty(), "case {case}: {:?}", report.errors);
        assert_eq!(report.ports.len(), NAMES.len(), "case {case}");
    }
    assert!(left > 100, "{left} ports left");
}

/// Bridges come and go, are joined by links and parted, and ports change from one to another: at each time
/// frames reach the stations that they can reach, once, and no others.
#[test]
fn bridges_come_and_go_and_frames_stay_on_theirs() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    const BRIDGES: [&str; 3] = ["x", "y", "z"];
    let (mut lonely, mut joined) = (0, 0);
    for case in 0..8 {
        let dice = &mut Dice::named(case, "bridges");
        let mut choose = || {
            let there: Vec<usize> =
                (0..3).filter(|&at| at == case as usize % 3 || dice.below(3) > 0).collect();
            let port_locations: Vec<usize> =
                NAMES.iter().map(|_| there[dice.below(there.len() as u64) as usize]).collect();
            let mut text = String::from("[engine]\npool = \"64 MB\"\n");
            for &at in &there {
                let ageing = if dice.below(4) == 0 { "100 s" } else { "300 s" };
                let _ = write!(text, "[[bridge]]\nname = \"{}\"\nageing = \"{ageing}\"\n", BRIDGES[at]);
            }
            for (name, &home) in NAMES.iter().zip(&port_locations) {
                let _ = write!(
                    text,
                    "[[port]]\nname = \"{name}\"\ndriver = \"memory\"\nbridge = \"{}\"\n",
                    BRIDGES[home]
                );
            }
            // The component of each bridge.
            let mut parts = [0, 1, 2];
            for pair in there.windows(2).filter(|_| dice.below(2) == 0) {
                let (one, other) = (parts[pair[0]], parts[pair[1]]);
                parts.iter_mut().filter(|part| **part == other).for_each(|part| *part = one);
                let ends = [BRIDGES[pair[0]], BRIDGES[pair[1]]];
                text += &link(&ends.concat(), ends[0], ends[1], "rate = \"10 Gbit/s\"");
                text += &link(&format!("{}{}", ends[1], ends[0]), ends[1], ends[0], "");
            }
            let parts: Vec<usize> = port_locations.iter().map(|&home| parts[home]).collect();
            (plan_of(&text), parts)
        };
        let (plan, mut parts) = choose();
        let mut net = Net::start(plan);
        for round in 0..25 {
            let len = 100 + round;
            for from in 0..NAMES.len() {
                (0..NAMES.len()).filter(|to| *to != from).for_each(|to| net.send(from, to, len));
            }
            let wanted = |to: usize| parts.iter().filter(|part| **part == parts[to]).count() - 1;
            let mut came = [0; NAMES.len()];
            while (0..NAMES.len()).any(|to| came[to] < wanted(to)) {
                for (to, came) in came.iter_mut().enumerate() {
                    *came += net.taken_of(to, len);
                }
                std::thread::yield_now();
            }
            let report = net.settle();
            let wanted: Vec<_> = (0..NAMES.len()).map(wanted).collect();
            assert_eq!(came.as_slice(), wanted, "case {case}, round {round}:\n{}", net.plan.text);
            assert!(report.is_conserved(), "case {case}: {report:?}");
            (0..NAMES.len()).for_each(|port| assert_eq!(net.taken_of(port, len), 0, "case {case}"));
            lonely += wanted.iter().filter(|wanted| **wanted == 0).count();
            joined += wanted.iter().filter(|wanted| **wanted == 4).count();
            let (plan, next) = choose();
            net.bring(plan, false);
            parts = next;
        }
        let report = net.run.stop();
        assert!(report.is_conserved() && report.errors.is_empty(), "case {case}: {report:?}");
    }
    assert!(lonely > 20 && joined > 20, "{lonely} {joined}");
}

/// Paths lead over bridges whose links several workers have, and get longer and shorter.
#[test]
fn every_packet_is_accounted_for_where_paths_have_several_links() {
    const ENDS: [(&str, &str); 4] = [("a", "x"), ("b", "x"), ("c", "y"), ("d", "z")];
    const BETWEEN: [(&str, &str, &str); 4] =
        [("x", "y", "1 ms"), ("y", "x", "0 ms"), ("y", "z", "2 ms"), ("z", "y", "1 ms")];
    const KEYS: [&str; 4] =
        ["rate = \"2 Mbit/s\"", "delay = \"2 ms\"", "delay = \"100 s\"", "loss = \"10 %\""];
    let mut removed = 0;
    for case in 0..4 {
        let dice = &mut Dice::named(case, "chains");
        let mut choose = |links: u64| {
            let mut text = format!("[engine]\npool = \"64 MB\"\nworkers = {}\n", 2 + case % 2);
            text.extend(["x", "y", "z"].map(|name| format!("[[bridge]]\nname = \"{name}\"\n")));
            for (port, bridge) in ENDS {
                let _ =
                    write!(text, "[[port]]\nname = \"{port}\"\ndriver = \"memory\"\nbridge = \"{bridge}\"\n");
            }
            for (from, to, delay) in BETWEEN {
                text += &link(&format!("{from}{to}"), from, to, &format!("delay = \"{delay}\""));
            }
            for (port, bridge) in ENDS {
                for (from, to) in [(port, bridge), (bridge, port)] {
                    if dice.below(4) < links {
                        text += &link(&format!("{from}{to}"), from, to, KEYS[dice.below(4) as usize]);
                    }
                }
            }
            (plan_of(&text), dice.below(4) == 0)
        };
        let mut net = Net::start(choose(2).0);
        for round in 0..25 {
            for at in 0..30 {
                net.send(at % 4, (at + 1 + round % 3) % 4, 60 + at * 30);
            }
            let (plan, drained) = choose(2);
            removed += net.bring(plan, drained).1.len();
            (0..ENDS.len()).for_each(|port| _ = net.taken(port));
        }
        net.settle();
        net.bring(choose(0).0, false);
        for from in 0..ENDS.len() {
            (0..ENDS.len()).filter(|to| *to != from).for_each(|to| net.send(from, to, 77));
        }
        for port in 0..ENDS.len() {
            let mut came = 0;
            while came < ENDS.len() - 1 {
                came += net.taken_of(port, 77);
                std::thread::yield_now();
            }
        }
        let report = net.run.stop();
        assert!(report.is_conserved(), "case {case}: {report:?}");
        assert!(report.errors.is_empty(), "case {case}: {:?}", report.errors);
    }
    assert!(removed > 100, "{removed} links were removed");
}

/// Links come and go beside a medium, whose stations stay.
#[test]
fn links_come_and_go_beside_a_medium() {
    let medium = "[[medium]]\nname = \"air\"\nkind = \"dcf\"\nprofile = \"802.11b\"\n";
    let station = |name: &str, from: &str, to: &str| link(name, from, to, "medium = \"air\"");
    let stations = [station("ab", "a", "b"), station("ba", "b", "a")].concat() + medium;
    let own = |number: usize| link(&format!("own{number}"), "c", "d", "delay = \"100 s\"");
    let with = |links: &[String]| scenario("", &[std::slice::from_ref(&stations), links].concat());
    let mut net = Net::start(with(&[]));
    for round in 0..20 {
        net.bring(with(&[own(round), link("dc", "d", "c", "rate = \"1 Mbit/s\"")]), false);
        for _ in 0..5 {
            [(0, 1), (1, 0), (2, 3), (3, 2)].into_iter().for_each(|(from, to)| net.send(from, to, 200));
        }
        let report = net.settle();
        assert_eq!(of(&net, &report, &format!("own{round}")).in_packets, 5);
        assert!(report.is_conserved(), "{report:?}");
        (0..PORTS.len()).for_each(|port| _ = net.taken(port));
    }
    let report = net.report();
    assert_eq!(report.removed.drops, [("link-removed", 19 * 5)]);
    assert!(of(&net, &report, "ab").in_packets > 100);
    let refused = |net: &Net, plan: Plan| {
        let plan = parse_after(&net.plan, &plan.text).unwrap();
        rewire(&net.plan, &net.layout, &plan, false).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let moved = [station("ab", "a", "c"), station("ba", "b", "a")].concat() + medium;
    assert!(refused(&net, scenario("", &[moved])).contains("link \"ab\" is a station"));
    // Each has taken one of 64 places; the link back has one, too.
    let full = (20..100).find(|&number| {
        let why = refused(&net, with(&[own(number)]));
        assert!(why.is_empty() || why.contains("room for 64 links"), "{why}");
        if why.is_empty() {
            net.bring(with(&[own(number)]), false);
        }
        !why.is_empty()
    });
    assert_eq!(full, Some(63));
    let report = net.run.stop();
    assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
}

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
        ("add = { router = { name = \"x\" } }", "it adds to router"),
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
