//! Bridges and routers that join and leave, in real time, and ports that are attached anew.

use super::{Net, link, routed};
use longwire_assemble::rewire;
use longwire_block::Dice;
use longwire_scenario::{parse_after, plan_of};
use longwire_units::Nanos;
use std::fmt::Write as _;

/// What is a host in one scenario and a declared port in the next, or the reverse, is attached anew.
#[test]
fn a_host_and_a_port_of_one_name_replace_each_other() {
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
    let host = "[[host]]\nname = \"c\"\naddress = \"10.0.0.3/24\"\n".to_owned();
    let to_and_fro = link("ac", "a", "c", "delay = \"1 ms\"") + &link("ca", "c", "a", "delay = \"2 ms\"");
    for engine in ["", "workers = 2"] {
        let with = |c: &str| {
            let ports = [port("a"), port("b"), c.to_owned(), to_and_fro.clone()];
            plan_of(&format!("[engine]\npool = \"64 MB\"\n{engine}\n{}", ports.concat()))
        };
        let mut net = Net::start(with(&host));
        let place = |net: &Net, name: &str| {
            let mut names = net.plan.ports.iter().map(|port| &*port.name);
            names.position(|known| known == name).unwrap()
        };
        for round in 0..6 {
            let next = if round % 2 == 0 { port("c") } else { host.clone() };
            net.bring(with(&next), false);
            let (a, c) = (place(&net, "a"), place(&net, "c"));
            assert_eq!(net.plan.ports[c].attachment.host().is_some(), round % 2 == 1);
            for (from, to) in [(a, c), (c, a)] {
                let len = 100 + round;
                net.send(from, to, len);
                while net.taken_of(to, len) == 0 {
                    std::thread::yield_now();
                }
            }
            let report = net.settle();
            assert_eq!(report.ports.len(), 3);
            assert!(report.is_conserved(), "{report:?}");
        }
        let report = net.run.stop();
        assert!(report.is_conserved() && report.errors.is_empty(), "{report:?}");
    }
}

/// Routers come and go in real time, with packets that wait for neighbours and for their processor.
#[test]
fn every_packet_is_accounted_for_whatever_routers_come_and_go() {
    const BRIDGES: &str = "[engine]\npool = \"64 MB\"\n[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n";
    const ITEMS: [&str; 3] = [
        "[[router]]\nname = \"r\"\nports = [{ port = \"rx\", bridge = \"x\", addresses = \"10.0.0.1/25\" }, \
         { port = \"ry\", bridge = \"y\", addresses = \"10.0.0.129/25\" }]\n",
        "[[router]]\nname = \"q\"\nports = [{ port = \"qx\", addresses = \"10.0.0.2/25\" }, \
         { port = \"qy\", bridge = \"y\", addresses = \"10.0.0.130/25\" }]\n\
         [[link]]\nname = \"qx\"\nbetween = [\"qx\", \"x\"]\ndelay = \"1 ms\"\n",
        "[[port]]\nname = \"e\"\ndriver = \"memory\"\n[[router]]\nname = \"p\"\nscheduler = \"gmr3\"\n\
         ports = [{ port = \"px\", bridge = \"x\", addresses = \"10.0.0.3/25\" }, \
         { port = \"e\", addresses = \"10.9.0.1/24\" }]\n",
    ];
    let mut crossed = 0;
    for case in 0..4 {
        let dice = &mut Dice::named(case, "routers");
        let port = |name: &str, bridge: &str| {
            format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\nbridge = \"{bridge}\"\n")
        };
        let base = BRIDGES.to_owned() + &port("a", "x") + &port("b", "y") + &port("c", "x");
        let mut choose = || {
            let mut text = base.clone();
            text.extend(ITEMS.into_iter().filter(|_| dice.below(2) == 0));
            plan_of(&text)
        };
        let mut net = Net::start(plan_of(&base));
        for round in 0..25 {
            let ports = net.plan.routers.iter().flat_map(|router| &router.ports);
            let macs: Vec<_> = ports.map(|port| port.mac.0).collect();
            for at in 0..20 {
                // To stations that exist, and to one that does not: the packet waits for it.
                let mac = macs.get(at % 5).copied().unwrap_or(net.plan.ports[(at + 1) % 3].mac.0);
                let last = if at % 4 == 0 { 200 } else { at as u8 };
                net.push(at % 3, &routed(&net.plan, at % 3, mac, [10, 0, 0, last]));
            }
            net.settle();
            let plan = choose();
            net.bring(plan, round % 3 == 0);
            let there = net.there();
            crossed += there.iter().map(|&port| net.taken(port)).sum::<usize>();
            let report = net.settle();
            assert!(report.is_conserved(), "case {case}, round {round}: {report:?}");
            assert_eq!(report.nodes.len(), net.plan.routers.len(), "case {case}, round {round}");
        }
        let report = net.run.stop();
        assert!(report.is_conserved() && report.errors.is_empty(), "case {case}: {report:?}");
    }
    assert!(crossed > 200, "{crossed} frames came out");
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

/// Bridges with their ports, and routers on ports of their own, come and go with several workers.
#[test]
fn nodes_come_and_go_with_several_workers_where_their_ports_are() {
    const NETS: [&str; 5] = ["p", "q", "r", "s", "t"];
    let (mut crossed, mut left) = (0, 0);
    for case in 0..4 {
        let dice = &mut Dice::named(case, "nodes of several workers");
        let mut choose = || {
            let mut text = format!("[engine]\npool = \"64 MB\"\nworkers = {}\n", 2 + case % 2);
            for (at, net) in NETS.iter().enumerate().filter(|(at, _)| *at == 0 || dice.below(3) > 0) {
                let ports = [1, 2].map(|number| format!("{net}{number}"));
                let is_router = at % 2 == 1;
                for port in &ports {
                    let _ = write!(text, "[[port]]\nname = \"{port}\"\ndriver = \"memory\"\n");
                    if !is_router {
                        let _ = writeln!(text, "bridge = \"{net}\"");
                    }
                }
                if is_router {
                    let _ = write!(text, "[[router]]\nname = \"{net}\"\nports = [");
                    for (port, last) in ports.iter().zip([1, 129]) {
                        let _ = write!(text, "{{ port = \"{port}\", addresses = \"10.0.{at}.{last}/25\" }},");
                    }
                    text += "]\n";
                } else {
                    let _ = writeln!(text, "[[bridge]]\nname = \"{net}\"");
                    text += &link(&format!("{net}l"), &ports[0], &ports[1], "delay = \"1 ms\"");
                }
            }
            plan_of(&text)
        };
        let mut net = Net::start(choose());
        for round in 0..25 {
            let len = 101 + round;
            let pairs: Vec<_> = net.plan.bridges.iter().map(|bridge| bridge.ports.clone()).collect();
            for pair in &pairs {
                let [one, other] = [pair[0], pair[1]].map(usize::from);
                net.send(one, other, len);
                net.send(other, one, len);
            }
            for router in net.plan.routers.clone() {
                // It waits for a neighbour that does not answer.
                let std::net::IpAddr::V4(near) = router.ports[1].addresses[0].address else { continue };
                let [a, b, c, _] = near.octets();
                let (from, mac) = (usize::from(router.ports[0].place), router.ports[0].mac.0);
                net.push(from, &routed(&net.plan, from, mac, [a, b, c, 200]));
            }
            let mut waited: Vec<usize> = pairs.iter().flatten().copied().map(usize::from).collect();
            while !waited.is_empty() {
                waited.retain(|&port| net.taken_of(port, len) == 0);
                std::thread::yield_now();
            }
            crossed += 2 * pairs.len();
            let before = net.there();
            net.settle();
            net.bring(choose(), round % 4 == 0);
            left += before.iter().filter(|place| !net.there().contains(place)).count();
            let report = net.settle();
            assert_eq!(report.nodes.len(), net.plan.routers.len(), "case {case}, round {round}");
        }
        let report = net.run.stop();
        assert!(report.is_conserved() && report.errors.is_empty(), "case {case}: {report:?}");
    }
    assert!(crossed > 300 && left > 100, "{crossed} {left}");
}

/// What would put ports of two workers at one bridge is refused.
#[test]
fn ports_stay_at_their_workers() {
    let two = |more: &str| {
        let port = |name: &str, bridge: &str| {
            format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\nbridge = \"{bridge}\"\n")
        };
        let ports = [port("a", "x"), port("b", "x"), port("c", "y"), port("d", "y")].concat();
        let bridges = "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n";
        plan_of(&format!("[engine]\nworkers = 2\npool = \"64 MB\"\n{ports}{bridges}{more}"))
    };
    let net = Net::start(two(""));
    let joined = two(&link("xy", "x", "y", ""));
    let joined = parse_after(&net.plan, &joined.text, Nanos::ZERO).unwrap();
    let refused = rewire(&net.plan, &net.layout, &joined, false).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("as ports of another worker")));
    assert!(net.run.stop().is_conserved());
}
