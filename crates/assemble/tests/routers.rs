//! Routers in scenarios: plans, errors, and behaviour in virtual time.
#![forbid(unsafe_code)]

mod support;

use longwire_assemble::TO_THE_END;
use longwire_scenario::{Plan, parse, plan_of};
use longwire_units::Nanos;
use std::path::PathBuf;
use support::count;

/// Two hosts on lines 1 and 2.
const HOSTS: &str = "host = [{ name = \"a\", address = [\"10.0.1.9/24\", \"fd01::9/64\"] },\n\
    { name = \"b\", address = [\"10.0.2.9/24\", \"fd02::9/64\"] }]\n";

fn plan(text: &str) -> Plan {
    plan_of(&format!("{HOSTS}{text}"))
}

/// Checks that one of the errors is at `place` (line:column) and contains `wanted`.
fn check(text: &str, place: &str, wanted: &str) {
    let error = parse("s.toml", &format!("{HOSTS}{text}")).map(|_| ()).unwrap_err();
    let mut told = error.findings.iter().map(ToString::to_string);
    let meant = |told: &String| told.starts_with(&format!("s.toml:{place}")) && told.contains(wanted);
    assert!(told.any(|told| meant(&told)), "wanted {place} {wanted}\n{error}\nin:\n{text}");
}

/// A router between the two hosts, with more configuration.
fn between(more: &str) -> String {
    format!(
        "[[router]]\nname = \"r\"\nports = [{{ port = \"a\", addresses = [\"10.0.1.1/24\", \"fd01::1/64\"] \
         }},\n\
         {{ port = \"b\", addresses = [\"10.0.2.1/24\", \"fd02::1/64\"] }}]\n{more}"
    )
}

/// Two routers in a row between the hosts, with a link between them.
const ROW: &str = r#"
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
fn a_router_sits_on_hosts() {
    let plan = plan(&between("routes = [{ to = \"192.0.2.0/24\", via = \"10.0.2.7\" }]\n"));
    let router = &plan.routers[0];
    assert_eq!(router.ports.iter().map(|port| port.place).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(router.ports[0].mac.to_string(), "02:4c:57:01:00:00");
    assert_eq!(router.written(&router.routes[0]), "192.0.2.0/24 via 10.0.2.7 dev b");
    let gateways: Vec<String> = plan.hosts[1].gateways.iter().map(ToString::to_string).collect();
    assert_eq!(gateways, ["10.0.2.1", "fd02::1"]);
    let segment = &plan.segments[plan.ports[0].segment as usize];
    assert_eq!((segment.router, &segment.ports[..]), (Some(0), &[0, 1][..]));
}

#[test]
fn ports_of_its_own_have_a_far_side() {
    let plan = plan(ROW);
    let place = |name: &str| plan.routers.iter().find_map(|router| router.port(name)).unwrap().place;
    let far = |place: u16| plan.ports[usize::from(place)].attachment.far().unwrap();
    assert_eq!((far(place("r1-wan")), far(place("r2-wan"))), (place("r2-wan"), place("r1-wan")));
    // A host's link to a router's port is on a bridge of the two.
    let lan = far(place("r1-lan"));
    assert_eq!((far(lan), plan.ports[usize::from(lan)].segment), (place("r1-lan"), plan.ports[0].segment));
    assert!(plan.pair_route(0, lan).is_some_and(|links| links == [0]));
    // Packets made by the router are sent over the link, too.
    let wan = place("r1-wan");
    assert!(
        plan.pair_route(wan, wan).is_some_and(|links| &*plan.links[links[0] as usize].name == "wan.forward")
    );
    assert_eq!(plan.hosts[0].gateways[0].to_string(), "10.0.1.1");
}

#[test]
fn mistakes_of_ports_are_reported_with_their_place_and_the_fix() {
    let two = |ports: &str| format!("[[router]]\nname = \"r\"\nports = [{ports}]\n");
    let table = [
        (two(""), "4:8: router \"r\", ports: ", "needs a port"),
        (two("{ port = \"aa\" }"), "5:19: router \"r\", ports.port: ", "did you mean \"a\"?"),
        (
            two("{ port = \"x\" }, { port = \"a\" }"),
            "5:19: router \"r\"",
            "no host or port \"x\", and no link",
        ),
        (two("{ port = \"a\" }, { port = \"a\" }"), "5:35: ", "a port of router \"this one\" already"),
        (two("{ port = \"a\", addresses = \"10.0.1.1\" }"), "5:36: ", "write \"10.0.1.1/24\""),
        (two("{ port = \"a\", addresses = \"10.0.1.0/24\" }"), "5:36: ", "can't be the address"),
        (two("{ port = \"a\", mtu = 1000 }"), "5:30: ", "1280 to 65535"),
        (
            two(
                "{ port = \"a\", addresses = \"10.0.0.1/8\" }, { port = \"b\", addresses = \"10.0.2.1/24\" }",
            ),
            "5:61: router \"r\", ports.addresses: ",
            "the networks of \"a\" and \"b\" overlap",
        ),
        (
            two("{ port = \"a\", adresses = \"10.0.1.1/24\" }"),
            "5:24: router \"r\", ports: ",
            "\"addresses\"?",
        ),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

#[test]
fn mistakes_of_routes_and_links_are_reported_with_their_place_and_the_fix() {
    let two = |ports: &str| format!("[[router]]\nname = \"r\"\nports = [{ports}]\n");
    let table = [
        (
            between("routes = [{ to = \"10.3.0.0/16\", via = \"10.4.0.1\" }]\n"),
            "7:18: ",
            "(10.0.1.1/24, fd01::1/64",
        ),
        (between("routes = [{ to = \"10.3.0.0/16\", port = \"c\" }]\n"), "7:40: ", "no port \"c\""),
        (
            between("routes = [{ to = \"10.3.0.0/16\", via = \"10.0.1.7\", port = \"b\" }]\n"),
            "7:18: router \"r\", routes: ",
            "10.0.1.7 is in the network of \"a\", not behind \"b\": name that port",
        ),
        (
            between(
                "[[forwarder]]\nrouter = \"r\"\nprogram = \"syn-monitor\"\nvia = \"fd02::7\"\nport = \"a\"\n",
            ),
            "10:7: forwarder \"syn-monitor\", via: ",
            "fd02::7 is in the network of \"b\", not behind \"a\"",
        ),
        (between("routes = [{ to = \"10.3.0.0/16\" }]\n"), "7:18: ", "name a gateway, a port, or discard it"),
        (
            between(
                "routes = [{ to = \"10.3.0.0/16\", port = \"a\" }, { to = \"10.3.0.0/16\", discard = true \
                 }]\n",
            ),
            "7:54: ",
            "a route to 10.3.0.0/16 already",
        ),
        (between("police = { errors = \"1000\" }\n"), "7:21: router \"r\", police.errors: ", "\"1000/s\""),
        (
            between("routes-file = \"none.txt\"\n"),
            "7:15: router \"r\", routes-file: ",
            "none.txt: No such file",
        ),
        (
            between("[[link]]\nbetween = [\"a\", \"r\"]\n"),
            "8:17: link \"a-r\", between: ",
            "\"r\" is a router",
        ),
        (
            between("[[bridge]]\nname = \"x\"\n[[link]]\nbetween = [\"a\", \"x\"]\n"),
            "9:1: link \"a-x\"",
            "is a port of router \"r\"",
        ),
        (between("[[router]]\nname = \"r\"\nports = [{ port = \"c\" }]\n"), "8:8: ", "two nodes named \"r\""),
        (two("{ port = \"a\" }"), "2:10: host \"b\": ", "it is not attached to anything"),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

#[test]
fn mistakes_of_paths_and_events_are_reported_with_their_place_and_the_fix() {
    let row = |change: (&str, &str)| ROW.replacen(change.0, change.1, 1);
    let table = [
        (
            between("[[path]]\nfrom = \"a\"\nto = \"b\"\nlinks = []\n"),
            "8:8: ",
            "a router is there, which chooses the path",
        ),
        (
            row(("\"b\", \"r2-lan\"", "\"b\", \"r1-lan\"")),
            "17:8: link \"lan2.forward\"",
            "joined to \"a\" already",
        ),
        (
            row(("delay = \"30 ms\"", "match = [{ source = \"10.0.1.9\", destination = \"10.0.2.9\" }]")),
            "21:8: ",
            "links are not chosen by addresses",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"q\"\nremove-route = \"10.0.0.0/8\"\n"),
            "9:10: at \"1 s\", router: ",
            "no router \"q\"",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nrate = \"1 Mbit/s\"\n"),
            "7:1: ",
            "write an entry for each",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"10.4.0.0/16 via 10.5.0.1\"\n"),
            "10:13: at \"1 s\", add-route: ",
            "in none of the router's networks",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"10.4.0.0/16 via 10.0.2.1\"\n"),
            "10:13: at \"1 s\", add-route: ",
            "10.0.2.1 is the router's own address at \"b\"",
        ),
        (
            between(
                "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"10.4.0.0/16 via 10.0.2.7 dev a\"\n",
            ),
            "10:13: at \"1 s\", add-route: ",
            "10.0.2.7 is in the network of \"b\", not behind \"a\"",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nremove-route = \"10.0.2.1/32\"\n"),
            "10:16: at \"1 s\", remove-route: ",
            "10.0.2.1/32 is the router's own at \"b\"",
        ),
        (
            between(
                "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\n\
                 remove-route = [\"10.7.0.0/16\", \"10.0.1.255/32\"]\n",
            ),
            "10:32: at \"1 s\", remove-route: ",
            "10.0.1.255/32 is the router's own at \"a\"",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"fd01::1/128 dev b\"\n"),
            "10:13: at \"1 s\", add-route: ",
            "fd01::1/128 is the router's own at \"a\"",
        ),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

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
fn routes_by_which_nothing_goes_are_noted() {
    let told = |keys: &str| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let scenario = format!("{HOSTS}{}", between(keys));
        let plan = parse(&folder.join("s.toml").display().to_string(), &scenario).unwrap();
        plan.notes
            .iter()
            .map(|note| format!("{}: {} = {}", note.field, note.what, note.fix))
            .collect::<Vec<_>>()
    };
    for (net, what) in [
        ("224.0.0.0/4", "groups"),
        ("127.0.0.0/8", "loopback addresses"),
        ("169.254.0.0/16", "addresses within a link"),
        ("240.0.0.0/8", "reserved addresses"),
        ("ff00::/8", "groups"),
        ("fe80::/10", "addresses within a link"),
        ("::1/128", "the unspecified and the loopback address"),
    ] {
        let routes = format!(
            "routes = [{{ to = \"{net}\", port = \"b\" }}, {{ to = \"10.7.0.0/16\", port = \"b\" }}]\n"
        );
        let wanted = format!(
            "router \"r\", routes: the route to {net} is never used: nothing is forwarded to {what} = leave \
             it out"
        );
        assert_eq!(told(&routes), [wanted], "{net}");
    }
    let event = "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\n\
        add-route = [\"10.7.0.0/16 dev b\", \"224.0.0.0/24 dev b\"]\n";
    let notes = told(event);
    assert!(
        notes.len() == 1 && notes[0].starts_with("at \"1 s\", add-route: the route to 224.0.0.0/24"),
        "{notes:?}"
    );
    // For a table they are reported once.
    let table =
        "10.7.0.0/16 dev b\nfe80::/64 dev a proto kernel\nfe80::/64 dev b proto kernel\nff02::/16 dev b\n";
    std::fs::write(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("unused.txt"), table).unwrap();
    let notes = told("routes-file = \"unused.txt\"\n");
    let wanted = "router \"r\", routes-file: unused.txt:2: the route to fe80::/64 is never used: nothing is \
        forwarded to addresses within a link = leave it out, and 2 more";
    assert_eq!(notes, [wanted]);
    // The default prefix is not among them.
    assert_eq!(
        told("routes = [{ to = \"0.0.0.0/0\", port = \"b\" }, { to = \"::/0\", discard = true }]\n"),
        [""; 0]
    );
}

#[test]
fn neighbours_that_are_none_are_noted() {
    for (address, what) in [
        ("10.0.1.1", Some("10.0.1.1 is the router's own address at \"a\"")),
        (
            "10.0.2.255",
            Some("10.0.2.255 is not a host's, but means all, or any router, in the network of \"b\""),
        ),
        ("fd01::", Some("fd01:: is not a host's")),
        ("10.0.1.2", None),
    ] {
        let keys = format!("neighbours = [{{ address = \"{address}\", mac = \"02:00:00:00:00:09\" }}]\n");
        let told: Vec<String> = plan(&between(&keys)).notes.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), usize::from(what.is_some()), "{address}: {told:?}");
        assert!(
            what.is_none_or(|what| told[0].starts_with("scenario.toml:7:27: ") && told[0].contains(what)),
            "{told:?}"
        );
    }
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

/// Two hosts and a router with more `keys`.
fn shared(keys: &str) -> String {
    format!(
        "[[host]]\nname = \"a\"\naddress = \"10.0.1.9/24\"\n[[host]]\nname = \"b\"\n\
         address = \"10.0.2.9/24\"\n\
         [[router]]\nname = \"r\"\nports = [{{ port = \"a\", addresses = \"10.0.1.1/24\" }}, \
         {{ port = \"b\", addresses = \"10.0.2.1/24\" }}]\n{keys}\n"
    )
}

#[test]
fn processors_are_read() {
    let text = shared(
        "scheduler = \"cbcs\"\nprocessors = 4\nclock = \"600 MHz\"\ncycles = \"2400..3600\"\n\
         port-rate = \"50 Mbit/s\"\n\
         byte-charge = \"80 ns\"\nflow-key = [\"source\", \"protocol\"]\nflow-limit = 7\nflow-table = 9\n\
         packets = 50\n\
         estimator = \"ses 0.25\"\nrings = { ready = 3 }\n\
         flows = [{ name = \"x\", key = { destination-port = 53 }, weight = 3, cycles = \"100 + 2/byte\" }]",
    );
    let plan = plan_of(&text);
    let sharing = plan.routers[0].sharing.as_ref().unwrap();
    let settings = &sharing.settings;
    assert_eq!((&*sharing.scheduler, settings.processors, settings.clock_mhz), ("cbcs", 4, 600));
    assert_eq!((settings.flow_limit, settings.flows, settings.packets, sharing.rings.ready), (7, 9, 50, 3));
    assert_eq!((settings.port.bytes(100), settings.charged.bytes(100)), (16_000, 8000));
    assert!(sharing.fields.source && sharing.fields.protocol && !sharing.fields.destination);
    assert_eq!((&*sharing.flows[0].name, sharing.flows[0].weight.number()), ("x", 3));
    // The largest cost: 3600 cycles are 6000 ns, and 1514 bytes 121120 ns.
    assert_eq!((settings.quantum.0, plan.notes.len()), (127_120, 0));
    // A router without a scheduler has none of these.
    assert!(plan_of(&shared("")).routers[0].sharing.is_none());
}

#[test]
fn processors_that_cannot_be_are_refused() {
    let flow = |weight: &str| {
        format!(
            "scheduler = \"gmr3\"\nflows = [{{ name = \"x\", key = {{ protocol = \"udp\" }}, weight = \
             {weight} }}]"
        )
    };
    for (keys, part) in [
        (flow("0"), "flows.weight: \"0\" is out of range; write a whole number from 1 to 65535"),
        (flow("-3"), "flows.weight: \"-3\" is out of range"),
        ("scheduler = \"gmr\"".into(), "did you mean \"gmr3\"?"),
        ("processors = 2".into(), "there is no scheduler"),
        ("rings = {}".into(), "there is no scheduler"),
        ("scheduler = \"gmr3\"\nprocessors = 0".into(), "1 to 256"),
        (
            "scheduler = \"gmr3\"\nquantum = \"0 ns\"".into(),
            "11:11: router \"r\", quantum: \"0 ns\" is out of range; write a time from 1 ns to 4.29 s",
        ),
        (
            "scheduler = \"gmr3\"\nquantum = \"5 s\"".into(),
            "11:11: router \"r\", quantum: \"5 s\" is out of range",
        ),
        (
            "scheduler = \"cbcs\"\nbyte-charge = \"5 s\"".into(),
            "11:15: router \"r\", byte-charge: \"5 s\" is out of range; write at most 4.29 s",
        ),
        ("scheduler = \"gmr3\"\nport-rate = \"0\"".into(), "sends nothing"),
        (
            "scheduler = \"gmr3\"\nprocessors = -1".into(),
            "\"-1\" is out of range; write a whole number from 1 to 256",
        ),
        ("scheduler = \"gmr3\"\nprocessors = \"two\"".into(), "\"two\" is not a whole number"),
        ("scheduler = \"gmr3\"\nrings = 5".into(), "a table such as { input = 128 }"),
        ("scheduler = \"gmr3\"\nclock = \"0 MHz\"".into(), "is not a clock"),
        ("scheduler = \"gmr3\"\ncycles = \"5..1\"".into(), "write the fewest first"),
        ("scheduler = \"gmr3\"\nestimator = \"ses 2\"".into(), "out of range"),
        ("scheduler = \"gmr3\"\nflow-key = \"colour\"".into(), "packets have no \"colour\""),
        (format!("{}\nflow-table = 2", flow("1")), "give 3 or more"),
        ("scheduler = \"gmr3\"\nbudget = 10\nfirst-estimate = 11".into(), "0 to 10"),
    ] {
        let error = parse("s.toml", &shared(&keys)).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
}

/// The notes about a router with these `keys`.
fn notes(keys: &str) -> Vec<String> {
    plan_of(&shared(keys)).notes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_quantum_below_what_a_packet_may_cost_is_warned_about() {
    const FLOW: &str = "flows = [{ name = \"x\", key = { protocol = \"udp\" }, cycles = 50_000 }]";
    for (scheduler, keys, part) in [
        ("gmr3", "quantum = \"3 us\"\ncycles = 3000", None),
        (
            "gmr3",
            "quantum = \"2999 ns\"\ncycles = 3000",
            Some("quantum: 2.999 us is below what a packet may cost, 3 us"),
        ),
        // Only the router's own work is known: 30 ns to classify, 95 ns to forward.
        ("gmr3", "quantum = \"125 ns\"", None),
        ("gmr3", "quantum = \"1 ns\"", Some("give 125 ns or more")),
        ("cbcs", "quantum = \"1 ns\"", Some("give 125 ns or more")),
        ("separate-drr", "quantum = \"1 ns\"", Some("give 125 ns or more")),
        // 1514 bytes at 50 Mbit/s.
        ("gmr3", "quantum = \"1 ns\"\nport-rate = \"50 Mbit/s\"", Some("give 242.24 us or more")),
        ("gmr3", &format!("quantum = \"20 us\"\n{FLOW}"), Some("give 50 us or more")),
        ("separate-drr", "quantum-bytes = 1514", None),
        (
            "separate-drr",
            "quantum-bytes = 1",
            Some("10:17: router \"r\", quantum-bytes: 1 byte is below what a packet may cost, 1514 bytes"),
        ),
        // Schedulers that have none.
        ("mr3", "quantum = \"1 ns\"\nquantum-bytes = 1", None),
    ] {
        let told = notes(&format!("{keys}\nscheduler = \"{scheduler}\""));
        match part {
            Some(part) => assert!(told.len() == 1 && told[0].contains(part), "{scheduler}, {keys}: {told:?}"),
            None => assert!(told.is_empty(), "{scheduler}, {keys}: {told:?}"),
        }
    }
}

#[test]
fn a_quantum_that_is_not_given_is_large_enough() {
    for (keys, quantum, bytes) in [
        ("scheduler = \"gmr3\"", 20_000, 1518),
        ("scheduler = \"gmr3\"\ncycles = 3000", 3000, 1518),
        ("scheduler = \"gmr3\"\nport-rate = \"50 Mbit/s\"", 242_240, 1518),
        ("scheduler = \"cbcs\"\nport-rate = \"50 Mbit/s\"", 242_240 + 125, 1518),
        ("scheduler = \"separate-drr\"\nbudget = 7000", 7000, 1518),
    ] {
        let plan = plan_of(&shared(keys));
        let settings = &plan.routers[0].sharing.as_ref().unwrap().settings;
        assert_eq!((settings.quantum.0, settings.quantum_bytes), (quantum, bytes), "{keys}");
        assert!(plan.notes.is_empty(), "{keys}");
    }
    let long =
        shared("scheduler = \"separate-drr\"").replace("10.0.2.1/24\" }", "10.0.2.1/24\", mtu = 9000 }");
    assert_eq!(plan_of(&long).routers[0].sharing.as_ref().unwrap().settings.quantum_bytes, 9014);
}

#[test]
fn room_for_fewer_packets_than_flows_need_is_noted() {
    let few = |packets: u32, flows: u32| {
        Some(format!("room for {packets} packets is not enough for {flows} flows (flow-table)"))
    };
    for (keys, packets, part) in [
        ("scheduler = \"gmr3\"", 4096, None),
        ("scheduler = \"gmr3\"\npackets = 2048", 2048, None),
        ("scheduler = \"gmr3\"\npackets = 2047", 2047, few(2047, 1024)),
        ("scheduler = \"gmr3\"\npackets = 64\nflow-table = 32", 64, None),
        // Four each by default, up to half of the packet memory.
        ("scheduler = \"gmr3\"\nflow-table = 10_000", 40_000, None),
        ("scheduler = \"gmr3\"\nflow-table = 100_000", 65_536, few(65_536, 100_000)),
        // One queue for all, first come first served.
        ("scheduler = \"fifo\"\npackets = 64", 64, None),
    ] {
        let plan = plan_of(&shared(keys));
        assert_eq!(plan.routers[0].sharing.as_ref().unwrap().settings.packets, packets, "{keys}");
        let told: Vec<_> = plan.notes.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), usize::from(part.is_some()), "{keys}: {told:?}");
        assert!(part.is_none_or(|part| told[0].contains(&part)), "{keys}: {told:?}");
    }
    let told = notes("scheduler = \"gmr3\"\npackets = 100");
    assert!(told[0].contains("give packets = 2048 or more, or flow-table = 50 or less"), "{told:?}");
}

#[test]
fn a_budget_below_what_each_packet_takes_is_noted() {
    let flow = |cycles: &str| {
        format!("flows = [{{ name = \"x\", key = {{ protocol = \"udp\" }}, cycles = {cycles} }}]")
    };
    for (keys, part) in [
        ("cycles = 3000\nbudget = 3000".into(), None),
        (
            "cycles = 3000\nbudget = 2999".into(),
            Some("cycles: each packet of a flow without cycles of its own takes at least 3000 cycles"),
        ),
        // 100 us.
        (
            flow("100_001"),
            Some(
                "flow \"x\" takes at least 100001 cycles in virtual time, and is stopped and lost after \
                 100000 (budget)",
            ),
        ),
        (flow("\"100_001..200_000\""), Some("give budget = 100001 or more, or fewer cycles")),
        // Some of its packets pass.
        (flow("\"1000..200_000\""), None),
        (flow("\"1000 + 200/byte\""), None),
        // An endless program is allowed there.
        (flow("\"endless\""), None),
    ] {
        for scheduler in ["gmr3", "mr3"] {
            let told = notes(&format!("{keys}\nscheduler = \"{scheduler}\""));
            let is_told = |part| told.len() == 1 && told[0].contains(part);
            assert!(part.map_or(told.is_empty(), is_told), "{keys}: {told:?}");
        }
    }
}

#[test]
fn fewer_waiting_than_a_turn_may_send_is_noted() {
    let heavy = |weight: u32| {
        format!(
            "cycles = 100\nflows = [{{ name = \"heavy\", key = {{ protocol = \"tcp\" }}, cycles = 5000 }}, \
             {{ name = \"x\", key = {{ protocol = \"udp\" }}, weight = {weight} }}]"
        )
    };
    let told_of = |lacks: &str| Some(lacks.to_owned());
    for (scheduler, keys, part) in [
        // The quantum is the 5 us of the expensive flow: 50 packets of 100 ns for each unit of weight.
        ("separate-drr", heavy(5), None),
        (
            "separate-drr",
            heavy(6),
            told_of(
                "256 packets of flow \"x\" may wait (flow-limit), and in a turn its weight lets it send 300",
            ),
        ),
        ("cbcs", heavy(6), told_of("give flow-limit = 300 or more")),
        ("cbcs", format!("flow-limit = 300\n{}", heavy(6)), None),
        (
            "cbcs",
            format!("packets = 2048\nflow-limit = 299\n{}", heavy(6)),
            told_of("give flow-limit = 300 or more"),
        ),
        // Three flows and one more, of weights 1 + 6 + 1 + 1: 300 places are half of a quarter and of two
        // thirds.
        (
            "cbcs",
            format!("packets = 600\nflow-table = 9\n{}", heavy(6)),
            told_of("give flow-limit = 300 or more, and packets = 660 or more"),
        ),
        ("cbcs", heavy(65_535), told_of("make its weight, or the quantum, smaller")),
        // Heavy flows have more turns there, of up to two quanta.
        ("gmr3", heavy(65_535), None),
        ("gmr3", format!("flow-limit = 74\n{}", heavy(6)), told_of("lets it send 75")),
        // Processors and their shortage: a packet takes 50 ns of two.
        (
            "cbcs-normalised",
            format!("processors = 2\nquantum = \"5 us\"\n{}", heavy(3)),
            told_of("lets it send 300"),
        ),
        (
            "gmr3",
            "cycles = 100\nquantum = \"25700 ns\"".into(),
            told_of("of a flow without cycles of its own may wait"),
        ),
        ("gmr3", "quantum = \"25700 ns\"".into(), None),
        ("mr3", heavy(60), None),
        ("fifo", heavy(60), None),
    ] {
        let told = notes(&format!("{keys}\nscheduler = \"{scheduler}\""));
        let is_told = |part: &String| told.len() == 1 && told[0].contains(part);
        assert!(part.as_ref().map_or(told.is_empty(), is_told), "{scheduler}, {keys}: {told:?}");
    }
}

#[test]
fn one_queue_for_all_has_no_limit_for_each_flow_unless_it_is_given() {
    for (keys, limit) in [
        ("scheduler = \"gmr3\"", 256),
        ("scheduler = \"fifo\"", 4096),
        ("scheduler = \"fifo\"\npackets = 64", 64),
        ("scheduler = \"fifo\"\nflow-limit = 7", 7),
    ] {
        let plan = plan_of(&shared(keys));
        assert_eq!(plan.routers[0].sharing.as_ref().unwrap().settings.flow_limit, limit, "{keys}");
    }
}

#[test]
fn one_of_a_thing_is_reported_as_one() {
    let told = notes("scheduler = \"gmr3\"\npackets = 1");
    assert!(told[0].contains("room for 1 packet is not enough for 1024 flows (flow-table)"), "{told:?}");
    // No flow table is small enough for it.
    assert!(
        told[0].contains("give packets = 2048 or more") && !told[0].contains("or flow-table"),
        "{told:?}"
    );
    let told = notes("scheduler = \"gmr3\"\npackets = 1\nflow-table = 1");
    assert!(told[0].contains("room for 1 packet is not enough for 1 flow (flow-table)"), "{told:?}");
    let flows =
        "scheduler = \"gmr3\"\nflow-table = 1\nflows = [{ name = \"x\", key = { protocol = \"udp\" } }]";
    let refused = parse("s.toml", &shared(flows)).unwrap_err().to_string();
    assert!(
        refused.contains(
            "there is room for 1 flow, and 1 flow has a name, with a place for every one of 2 ports: 2\n"
        ),
        "{refused}"
    );
    let two = flows
        .replace("key = { protocol = \"udp\" }", "key = { protocol = \"tcp\" } }, { name = \"y\", key = {}");
    let refused = parse("s.toml", &shared(&two)).unwrap_err().to_string();
    let multiplied = "2 flows have names, each with a place for every one of 2 ports: 4\n";
    assert!(refused.contains(multiplied) && refused.contains("give 5 or more"), "{refused}");
    let one = "[[host]]\nname = \"a\"\naddress = \"10.0.1.9/24\"\n[[router]]\nname = \"r\"\n\
        ports = [{ port = \"a\", addresses = \"10.0.1.1/24\" }]\n";
    let refused = parse("s.toml", &format!("{one}{flows}")).unwrap_err().to_string();
    assert!(refused.contains("there is room for 1 flow, and 1 flow has a name\n"), "{refused}");
}

#[test]
fn a_change_of_a_flow_that_names_no_router_is_reported_which_there_are() {
    let two = "\n[[host]]\nname = \"c\"\naddress = \"10.0.3.9/24\"\n[[router]]\nname = \"s\"\n\
        ports = [{ port = \"c\", addresses = \"10.0.3.1/24\" }]\n";
    for (more, fix) in [
        ("", "add router = \"r\", or leave it out"),
        (two, "add router = \"…\" (there are r, s), or leave it out"),
    ] {
        let change = "[[at]]\ntime = \"1 s\"\nflow = \"x\"\nweight = 2\n";
        let error = parse("s.toml", &shared(&format!("scheduler = \"gmr3\"\n{more}{change}")))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("flow is about a router, and none is named") && error.contains(fix),
            "{error}"
        );
        assert!(!error.contains("no link"), "{error}");
    }
}

#[test]
fn flows_of_one_key_are_noted() {
    let told = notes(
        "scheduler = \"gmr3\"\nflows = [{ name = \"x\", key = { protocol = \"udp\" } }, { name = \"y\", key \
         = { protocol = \"udp\" } }]",
    );
    assert!(told.len() == 1 && told[0].contains("flow \"y\" has the same key as flow \"x\""), "{told:?}");
}

#[test]
fn rings_that_are_too_long_for_threads_are_reported_with_their_place() {
    // 512 buffers: 4 · (127 + 1).
    for (processors, requests, most) in
        [(4, 127, None), (4, 128, Some(127)), (1, 60_000, None), (2, 300, Some(255))]
    {
        let keys =
            format!("scheduler = \"gmr3\"\nprocessors = {processors}\nrings = {{ requests = {requests} }}");
        let plan = plan_of(&shared(&keys));
        let told = plan.routers[0].not_in_real_time.as_ref().map(ToString::to_string);
        let Some(most) = most else {
            assert_eq!(told, None, "{keys}");
            continue;
        };
        let told = told.unwrap();
        assert!(
            told.starts_with("scenario.toml:12:22: router \"r\", rings.requests: ")
                && told.contains(&format!("give {most} or less")),
            "{told}"
        );
    }
}

#[test]
fn weights_change_at_their_time() {
    let flows = "scheduler = \"drfq\"\ncycles = 1000\nflow-limit = 4096\nestimator = \"exact\"\nflows = [\
        { name = \"x\", key = { source = \"10.0.1.9\" } }, { name = \"y\", key = { source = \"10.0.1.8\" } \
        }]\n";
    let source = |host: u8| {
        format!(
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nname = \"s{host}\"\nsource = \"10.0.1.{host}\"\n\
             interval = \"1 us\"\nfor = \"2 ms\"\n"
        )
    };
    let event = "[[at]]\ntime = \"1 ms\"\nrouter = \"r\"\nflow = \"x\"\nweight = 3\n";
    let text = shared(&format!("{flows}{}{}{event}", source(9), source(8)));
    let text = text.replacen("\"10.0.1.9/24\"", "[\"10.0.1.9/24\", \"10.0.1.8/24\"]", 1);
    let plan = plan_of(&text);
    assert_eq!(plan.router_events[0].describe(&plan.routers), "router r: flow x weighs 3");
    let sent = |until: u64| {
        let report = count(&plan, Nanos::from_micros(until));
        let flows = &report.nodes[0].stats.processors.as_ref().unwrap().flows;
        ["x", "y"].map(|name| {
            flows.iter().filter(|flow| flow.flow == name).map(|flow| flow.out_packets).sum::<u64>()
        })
    };
    // A packet per microsecond: half each, then three of four for x.
    let ([x, y], [late_x, late_y]) = (sent(1000), sent(2000));
    assert!(x.abs_diff(500) < 3 && y.abs_diff(500) < 3, "{x} {y}");
    assert!((late_x - x).abs_diff(750) < 5 && (late_y - y).abs_diff(250) < 5, "{late_x} {late_y}");
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

#[test]
fn weights_that_cannot_be_are_refused() {
    let at = |keys: &str| {
        let router = "scheduler = \"gmr3\"\nflows = [{ name = \"voice\", key = { protocol = \"udp\" } }]";
        shared(&format!("{router}\n[[at]]\ntime = \"1 s\"\n{keys}"))
    };
    for (keys, part) in [
        ("router = \"r\"\nflow = \"vioce\"\nweight = 2", "did you mean \"voice\"?"),
        ("router = \"r\"\nflow = \"voice\"\nweight = 0", "write a whole number from 1 to 65535"),
        ("router = \"r\"\nflow = \"voice\"", "its weight is missing"),
        ("router = \"r\"\nweight = 2", "it does not say of which flow"),
        ("flow = \"voice\"\nweight = 2", "add router = "),
        ("add-route = \"blackhole 10.9.0.0/16\"", "add router = "),
    ] {
        let error = parse("s.toml", &at(keys)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
}

/// A line rate to be guaranteed.
fn at_rate(rate: &str, more: &str) -> String {
    between(&format!("line-rate = \"{rate}\"\n{more}"))
}

#[test]
fn a_promise_that_can_t_be_held_is_none() {
    // Classifying takes 30 ns, minimal IP 95; 84 bytes at 10 Gbit/s 67.2 ns.
    check(
        &at_rate("10 Gbit/s", ""),
        "7:13: router \"r\", line-rate: ",
        "10 Gbit/s can't be held, without any program: classifier 30000 + minimal IP 95000 = 125000 \
         picoseconds, 67200 allowed",
    );
    check(&at_rate("10 Gbit/s", ""), "7:13", "write at most 5.376 Gbit/s");
    check(&at_rate("0 Mbit/s", ""), "7:13", "nothing is promised");
    check(&at_rate("unlimited", ""), "7:13", "leaves no time for a packet");
    assert!(parse("s.toml", &format!("{HOSTS}{}", at_rate("5376 Mbit/s", ""))).is_ok());
}

/// Time set aside for traffic upward is neither available to programs nor promised twice.
#[test]
fn time_reserved_for_other_levels_is_not_for_programs() {
    let tenth = "slow-path = { worker = \"4 %\" }\ncontrol = { worker = \"6 %\" }\n";
    // 134.4 ns at 5 Gbit/s, of which a tenth is set aside.
    check(&at_rate("5 Gbit/s", tenth), "7:13", "= 125000 picoseconds, 120960 allowed");
    check(&at_rate("5 Gbit/s", tenth), "7:13", "write at most 4.838 Gbit/s");
    assert!(parse("s.toml", &format!("{HOSTS}{}", at_rate("4838 Mbit/s", tenth))).is_ok());
    // The paper's four need 203 of 240 cycles: 216 are left, or 192.
    let four = |aside: &str| {
        let all = |name: &str| format!("[[forwarder]]\nrouter = \"r\"\nprogram = \"{name}\"\n");
        let splicer = all("tcp-splicer") + "key = { destination-port = 80, protocol = \"tcp\" }\n";
        let programs = [splicer, all("port-filter"), all("syn-monitor")].concat();
        parse("s.toml", &format!("{HOSTS}{}{programs}", between(&format!("profile = \"vrp\"\n{aside}"))))
    };
    let plan = four(tenth).unwrap();
    assert_eq!(plan.routers[0].levels.worker, [Some(40_000_000), Some(60_000_000)]);
    let fifth = four("control = { worker = \"20 %\" }\n").unwrap_err().to_string();
    assert!(fifth.contains("= 203 cycles, 192 allowed"), "{fifth}");
    // Nor are more packets promised than can be moved in that time: 400 ns each.
    assert_eq!(plan.routers[0].levels.control.packets, 150_000);
    let promised =
        |packets: &str| between(&format!("control = {{ worker = \"6 %\", packets = {packets} }}\n"));
    assert!(parse("s.toml", &format!("{HOSTS}{}", promised("150_000"))).is_ok());
    let what =
        "150001 packets/s of 400 ns take 60000 us of each second, and 60000 us of the worker are set aside";
    check(&promised("150_001"), "7:", what);
    check(&promised("150_001"), "7:", "write at most 150000, or set more aside");
    let none = between("slow-path = { worker = \"60 %\" }\ncontrol = { worker = \"40 %\" }\n");
    check(&none, "8:", "nothing of the worker is left for the data path");
}

#[test]
fn forwarders_without_a_name_have_none_in_errors() {
    check(&between("[[forwarder]]\nrouter = \"r\"\n"), "8:10: forwarder, program: ", "no program is named");
}

#[test]
fn a_queue_that_nobody_has_is_noted() {
    let notes = |queue: &str| {
        let forwarder = "[[forwarder]]\nrouter = \"r1\"\nprogram = \"syn-monitor\"\nqueue = 0\n";
        let row = ROW.replacen("delay = \"30 ms\"\n", &format!("delay = \"30 ms\"\n{queue}"), 1);
        let plan = plan_of(&format!("{HOSTS}{row}{forwarder}"));
        plan.notes.iter().map(ToString::to_string).filter(|note| note.contains("queue: ")).collect::<Vec<_>>()
    };
    let one = notes("");
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(one[0].contains("no link that begins at \"r1\" has more than one queue"), "{one:?}");
    assert_eq!(notes("queue = { kind = \"priority\", bands = 3 }\n"), [""; 0]);
    // Nor where no link begins.
    let forwarder = "[[forwarder]]\nrouter = \"r\"\nprogram = \"syn-monitor\"\nqueue = 0\n";
    let plan = plan(&between(forwarder));
    let none: Vec<_> = plan.notes.iter().map(ToString::to_string).collect();
    assert!(
        none.len() == 1 && none[0].contains("no link begins at \"r\": there is no queue to choose"),
        "{none:?}"
    );
    // A link that begins at a bridge is entered first by packets from a port of that bridge.
    let bridged = |queue: &str| {
        let text = format!(
            "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n[[router]]\nname = \"r\"\n\
             ports = [{{ port = \"a\", addresses = \"10.0.1.1/24\" }}, {{ port = \"lan\", bridge = \"x\", \
             addresses = \"10.0.2.1/24\" }}]\n\
             [[link]]\nbetween = [\"x\", \"y\"]\n{queue}{forwarder}"
        );
        let hosts = HOSTS.replacen("\"fd02::9/64\"]", "\"fd02::9/64\"], bridge = \"y\"", 1);
        let plan = plan_of(&format!("{hosts}{text}"));
        plan.notes.iter().map(ToString::to_string).filter(|note| note.contains("queue: ")).collect::<Vec<_>>()
    };
    assert!(bridged("")[0].contains("has more than one queue"), "{:?}", bridged(""));
    assert_eq!(bridged("queue = { kind = \"priority\", bands = 3 }\n"), [""; 0]);
}
