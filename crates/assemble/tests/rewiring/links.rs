//! Links and ports that join and leave, in real time.

use super::{Net, PORTS, among, link, of, scenario};
use crate::support::memory_ports;
use longwire_assemble::{BuiltEngine, build, rewire};
use longwire_block::path::LinkRef;
use longwire_block::{Dice, Stamp};
use longwire_scenario::{Plan, parse_after, plan_of};
use longwire_units::Nanos;
use std::fmt::Write as _;

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
    let BuiltEngine { layout, .. } = build(&plan, ports, |_| None).unwrap();
    let refused = |text: String| match rewire(&plan, &layout, &plan_of(&text), false) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("not refused:\n{text}"),
    };
    let text = plan.text.to_string();
    assert!(refused(format!("seed = 9\n{text}")).starts_with("seed: it is fixed"));
    let event = "[[at]]\ntime = \"1 s\"\nlink = \"up\"\nrate = \"2 Mbit/s\"\n";
    assert!(refused(format!("{text}{event}")).starts_with("[[at]]: it is fixed"));
}

/// With several workers, which do not get the next map at one instant.
#[test]
fn packets_leave_by_their_own_ports_until_these_have_left() {
    let plan = scenario("workers = 2", &[]);
    let (ports, _ends) = memory_ports(&plan, Stamp::Poll);
    let BuiltEngine { setup, layout, .. } = build(&plan, ports, |_| None).unwrap();
    let next = among(&PORTS[..2], "workers = 2", &[]);
    let next = parse_after(&plan, &next.text, Nanos::ZERO).unwrap();
    let made = rewire(&plan, &layout, &next, false).unwrap();
    assert_eq!(made.old_ports, [2, 3]);
    // Packets to the second of them did not go where the first one was while that was still there.
    assert_eq!(made.rewiring.before.unwrap().port_locations, setup.map.port_locations);
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
        let plan = parse_after(&net.plan, &plan.text, Nanos::ZERO).unwrap();
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

/// Some links are counted as all are, at each worker, when another has left before it and one has joined.
#[test]
fn some_links_are_counted_as_all_are() {
    for engine in ["", "workers = 2"] {
        let before = ["left", "lossy"].map(|name| link(name, "a", "b", "loss = \"30 %\""));
        let mut net = Net::start(scenario(engine, &[&before[..1], &[link("cd", "c", "d", "")]].concat()));
        net.bring(scenario(engine, &[link("cd", "c", "d", ""), before[1].clone()]), false);
        for count in 0..100 {
            [(0, 1), (2, 3)].into_iter().for_each(|(from, to)| net.send(from, to, 60 + count));
        }
        let all = net.settle().links;
        assert_eq!(all.len(), 2);
        let some: Vec<_> = all.iter().map(|counted| net.layout.links[counted.place as usize]).collect();
        for (one, counted) in net.remote.links(&some).unwrap().into_iter().zip(&all) {
            assert!(one.stats.in_packets >= 100, "{one:?}");
            assert_eq!((one.place, one.stats), (counted.place, counted.stats.clone()));
        }
        assert!(net.remote.links(&[some[0], LinkRef::new(0, 1000)]).is_err());
        net.run.stop();
    }
}
