//! Packets over routers in virtual time, and routes that change.

use super::processors::shared;
use super::{HOSTS, between, check, plan};
use crate::support::count;
use longwire_assemble::TO_THE_END;
use longwire_scenario::{parse, plan_of};
use longwire_units::Nanos;
use std::path::PathBuf;

/// Two routers in a row between the hosts, with a link between them.
pub const ROW: &str = r#"
[[router]]
name = "r{n}"
count = 2
ports = [
    { port = "r{n}-lan", addresses = ["10.0.{n}.1/24", "fd0{n}::1/64"] },
    { port = "r{n}-wan", addresses = "10.9.0.{n}/30" },
]
routes = [{ to = "0.0.0.0/0", via = "10.9.0.{3 - n}" }]
[[link]]
name = "lan1"
between = ["a", "r1-lan"]
delay = "1 ms"
[[link]]
name = "lan2"
between = ["b", "r2-lan"]
delay = "2 ms"
[[link]]
name = "wan"
between = ["r1-wan", "r2-wan"]
delay = "30 ms"
"#;

#[test]
fn packets_cross_every_link_and_router_at_their_times() {
    let source = "[[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"10 ms\"\npackets = 5\n";
    let plan = plan(&format!("{ROW}{source}"));
    let report = count(&plan, TO_THE_END);
    assert_eq!((report.flow.sent, report.flow.made, report.flow.drops.len()), (5, 0, 0));
    // The last is sent at 40 ms and takes 1, 30 and 2 ms: counters include what happened until then.
    assert_eq!(count(&plan, Nanos::from_millis(73)).flow.sent, 5);
    assert_eq!(count(&plan, Nanos(72_999_999)).flow.sent, 4);
    assert_eq!(report.nodes.iter().map(|node| node.stats.forwarded).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn a_packet_goes_round_until_its_hops_are_used_up() {
    let loops = ROW.replace("count = 2", "count = 2\nneighbours = []")
        + "[[source]]\nfrom = \"a\"\nto = \"b\"\n\
        destination = \"192.0.2.1\"\ninterval = \"10 ms\"\npackets = 1\n";
    let report = count(&plan(&loops), TO_THE_END);
    // 64 hops, half of them by each router; r2 has the last, and informs a, over the links.
    assert_eq!(report.flow.drops, [("hop-limit", 1)]);
    let forwarded: Vec<u64> = report.nodes.iter().map(|node| node.stats.forwarded).collect();
    assert_eq!((forwarded, report.flow.sent, report.flow.made), (vec![33, 32], 1, 1));
    let wan = report.links.iter().find(|link| link.place == 4).unwrap();
    assert_eq!(wan.stats.out_packets, 32);
}

#[test]
fn a_link_that_says_too_big_says_it_to_the_router_that_sent() {
    let small =
        ROW.replace("delay = \"30 ms\"", "delay = \"30 ms\"\nmtu = { kind = \"too-big\", mtu = 1300 }");
    let source = "[[source]]\nfrom = \"a\"\nto = \"b\"\nsource = \"fd01::9\"\ndestination = \"fd03::9\"\n\
        size = \"1400 B\"\n\
        interval = \"10 ms\"\npackets = 3\n";
    let routes = small.replace(
        "via = \"10.9.0.{3 - n}\" }",
        "via = \"10.9.0.{3 - n}\" }, { to = \"fd03::/64\", via = \"fe80::1\", port = \"r{n}-wan\" }",
    );
    let routes = routes.replace(
        "count = 2",
        "count = 2\n\
        neighbours = [{ address = \"fe80::1\", mac = \"02:00:00:00:00:01\", port = \"r{n}-wan\" }]",
    );
    let report = count(&plan(&format!("{routes}{source}")), TO_THE_END);
    // Each answer enters r1, which forwards it to a.
    assert_eq!((report.flow.sent, report.nodes[0].stats.forwarded), (3, 6), "{report:?}");
    assert_eq!(report.nodes[0].stats.received, 6);
}

#[test]
fn routes_change_at_their_time() {
    let events = "[[at]]\ntime = \"25 ms\"\nrouter = \"r\"\nadd-route = \"blackhole 10.0.2.0/24\"\n\
        [[at]]\ntime = \"40 ms\"\nrouter = \"r\"\nremove-route = \"10.0.2.0/24\"\n\
        add-route = \"10.0.2.0/24 dev b\"\n\
        [[at]]\ntime = \"70 ms\"\nrouter = \"r\"\nremove-route = \"10.8.0.0/16\"\n";
    let source = "[[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"10 ms\"\npackets = 10\n";
    let plan = plan(&between(&format!("{events}{source}")));
    let report = count(&plan, TO_THE_END);
    // A packet at 30 ms is discarded; the change at 40 ms precedes the packet at that time.
    assert_eq!((report.flow.sent, &report.flow.drops[..]), (9, &[("discard", 1)][..]));
    assert_eq!(report.errors.len(), 1, "{:?}", report.errors);
    assert!(
        report.errors[0].contains("router \"r\" at 70 ms") && report.errors[0].contains("no route to 10.8")
    );
}

#[test]
fn a_network_of_a_port_comes_back_and_default_means_both_families() {
    let at = |time: u32, change: &str| format!("[[at]]\ntime = \"{time} ms\"\nrouter = \"r\"\n{change}\n");
    // b's network is behind b again as soon as its other route is removed, at 45 ms; from 65 ms to 85 ms it
    // has none.
    let events = at(25, "add-route = \"unreachable 10.0.2.0/24\"")
        + &at(45, "remove-route = \"10.0.2.0/24\"")
        + &at(65, "remove-route = \"10.0.2.0/24\"")
        + &at(85, "add-route = \"10.0.2.0/24 dev b\"");
    let source = "[[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"10 ms\"\npackets = 10\n";
    let plan_of = |events: &str| plan(&between(&format!("{events}{source}")));
    let report = count(&plan_of(&events), TO_THE_END);
    assert_eq!(report.errors, [""; 0]);
    assert_eq!((report.flow.sent, &report.flow.drops[..]), (6 + 2, &[("discard", 2), ("no-route", 2)][..]));
    // Both default routes are removed at once; a third removal fails.
    let routes =
        "routes = [{ to = \"0.0.0.0/0\", via = \"10.0.2.7\" }, { to = \"::/0\", via = \"fd02::7\" }]\n";
    let twice = at(5, "remove-route = \"default\"") + &at(15, "remove-route = [\"default\"]");
    let plan = plan(&between(&format!("{routes}{twice}{source}")));
    assert_eq!(plan.router_events[0].describe(&plan.routers), "router r: no default route");
    let report = count(&plan, TO_THE_END);
    assert_eq!((report.flow.sent, report.errors.len()), (10, 1), "{:?}", report.errors);
    let error = &report.errors[0];
    assert!(
        error.contains("router \"r\" at 15 ms") && error.contains("there is no default route"),
        "{error}"
    );
}

#[test]
fn a_default_route_is_written_as_one() {
    for (keys, route) in [
        ("via = \"10.0.2.7\"", "0.0.0.0/0 via 10.0.2.7 dev b"),
        ("via = \"fd02::7\"", "::/0 via fd02::7 dev b"),
        ("port = \"b\"", "0.0.0.0/0 dev b"),
        ("discard = true", "blackhole 0.0.0.0/0"),
        (
            "next-hops = [{ via = \"fd01::7\" }, { via = \"fd02::7\" }]",
            "::/0 nexthop via fd01::7 dev a weight 1 nexthop via fd02::7 dev b weight 1",
        ),
    ] {
        let plan = plan(&between(&format!("routes = [{{ to = \"default\", {keys} }}]\n")));
        let router = &plan.routers[0];
        assert_eq!(router.routes.iter().map(|route| router.written(route)).collect::<Vec<_>>(), [route]);
    }
    let both = "routes = [{ to = \"0.0.0.0/0\", port = \"b\" }, { to = \"default\", port = \"a\" }]\n";
    check(&between(both), "7:52: router \"r\", routes: ", "a route to 0.0.0.0/0 already");
    // The route of a host is its gateway.
    let host = |keys: &str| {
        format!("host = [{{ name = \"a\", address = [\"10.0.1.9/24\", \"fd01::9/64\"], {keys} }}]\n")
    };
    let routes =
        "routes = [{ to = \"default\", via = \"10.0.1.3\" }, { to = \"default\", via = \"fd01::3\" }]";
    let plan = plan_of(&host(routes));
    let gateways: Vec<_> = plan.hosts[0].gateways.iter().map(ToString::to_string).collect();
    assert_eq!((gateways, plan.hosts[0].routes.len()), (vec!["10.0.1.3".into(), "fd01::3".into()], 0));
    let twice = format!("gateway = \"10.0.1.2\", {routes}");
    let error = parse("s.toml", &host(&twice)).unwrap_err().to_string();
    assert!(error.contains("10.0.1.3 is a second default gateway of its family"), "{error}");
}

#[test]
fn a_table_comes_from_a_file() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let lines = (0..40_000u32)
        .map(|n| format!("10.{}.{}.0/24 via 10.0.2.{} proto bgp\n", 20 + n / 256, n % 256, 2 + n % 200));
    let text = "# A table.\ndefault via 10.0.1.7 dev a\n\n".to_owned() + &lines.collect::<String>();
    std::fs::write(folder.join("table.txt"), text).unwrap();
    let scenario = format!("{HOSTS}{}", between("routes-file = \"table.txt\"\n"));
    let plan = parse(&folder.join("s.toml").display().to_string(), &scenario).unwrap();
    let router = &plan.routers[0];
    assert_eq!(router.routes.len(), 40_001);
    assert_eq!(router.written(&router.routes[0]), "0.0.0.0/0 via 10.0.1.7 dev a");
    assert_eq!(router.written(&router.routes[300]), "10.21.43.0/24 via 10.0.2.101 dev b");
    assert!(count(&plan, TO_THE_END).nodes[0].stats.table_bytes > 0);
    std::fs::write(folder.join("table.txt"), "10.1.0.0/16 via 10.0.2.2\n10.2.0.0/16 dev c\n").unwrap();
    let error = parse(&folder.join("s.toml").display().to_string(), &scenario).map(|_| ()).unwrap_err();
    assert!(
        error.findings[0].to_string().contains("table.txt:2: \"c\" is not a port of router \"r\""),
        "{error}"
    );
}

#[test]
fn one_entry_changes_routes_and_a_weight() {
    let flows =
        "scheduler = \"drfq\"\ncycles = 1000\nflows = [{ name = \"x\", key = { protocol = \"udp\" } }]\n";
    let source = "[[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"10 ms\"\npackets = 10\n";
    let event = "[[at]]\ntime = \"25 ms\"\nrouter = \"r\"\nadd-route = \"blackhole 10.0.2.0/24\"\n\
        flow = \"x\"\nweight = 3\n";
    // There is no such route: all other changes are made, and the error is reported.
    let missing = "remove-route = [\"10.8.0.0/16\", \"10.9.0.0/16\"]\n";
    for (more, refused) in [
        ("", None),
        (missing, Some("no route to 10.8.0.0/16; there is no route to 10.9.0.0/16 (all else of it was)")),
    ] {
        let plan = plan_of(&shared(&format!("{flows}{source}{event}{more}")));
        let told = plan.router_events[0].describe(&plan.routers);
        assert!(told.ends_with("blackhole 10.0.2.0/24; flow x weighs 3"), "{told}");
        let report = count(&plan, TO_THE_END);
        assert_eq!((report.flow.sent, &report.flow.drops[..]), (3, &[("discard", 7)][..]));
        let flows = &report.nodes[0].stats.processors.as_ref().unwrap().flows;
        assert!(flows.iter().all(|flow| (&*flow.flow, flow.weight) == ("x", 3)), "{flows:?}");
        assert_eq!(report.errors.len(), usize::from(refused.is_some()), "{:?}", report.errors);
        assert!(refused.is_none_or(|refused| report.errors[0].contains(refused)), "{:?}", report.errors);
    }
}
