//! Routes of routers to several next hops, in virtual time: the distribution of flows, with any number of
//! workers.

use crate::support::{PacketView, simulate, source_ports};
use longwire_assemble::TO_THE_END;
use longwire_engine::Report;
use longwire_scenario::{Plan, parse, plan_of};
use std::path::PathBuf;

/// Events in order: time, whether it is a departure, ports, the sender's address.
type Events = Vec<(u64, bool, u16, u16, [u8; 4])>;

fn look(view: &PacketView<'_>) -> Option<(u64, bool, u16, u16, [u8; 4])> {
    let source = view.frame[26..30].try_into().unwrap();
    Some((view.time, view.left, view.meta.in_port, view.meta.out_port, source))
}

/// Two routers with three lines between them, and 200 flows of five packets each from "a" to "b"; `routes`
/// are those of the first.
fn three_lines(routes: &str) -> String {
    let port = |router: u8, line: u8| {
        format!("{{ port = \"r{router}-{line}\", addresses = \"10.9.{line}.{router}/30\" }}")
    };
    let line = |line: u8| {
        format!(
            "[[link]]\nname = \"l{line}\"\nbetween = [\"r1-{line}\", \"r2-{line}\"]\nrate = \"10 Mbit/s\"\n\
             delay = \"{line} ms\"\n"
        )
    };
    let lines: String = (1..=3).map(line).collect();
    let [first, second] =
        [1, 2].map(|router| (1..=3).map(|line| port(router, line)).collect::<Vec<_>>().join(", "));
    format!(
        "host = [{{ name = \"a\", address = \"10.0.1.9/24\" }}, {{ name = \"b\", address = \"10.0.2.9/24\" \
         }}]\n\
         [[router]]\nname = \"r1\"\nports = [{{ port = \"a\", addresses = \"10.0.1.1/24\" }}, {first}]\n\
         routes = [{routes}]\n\
         [[router]]\nname = \"r2\"\nports = [{{ port = \"b\", addresses = \"10.0.2.1/24\" }}, {second}]\n\
         routes = [{{ to = \"10.0.1.0/24\", via = \"10.9.1.1\" }}]\n{lines}\
         [[source]]\nname = \"s{{n}}\"\ncount = 200\nfrom = \"a\"\nto = \"b\"\n\
         source = \"10.0.1.{{n + 20}}\"\n\
         start = \"{{n}} us\"\ninterval = \"10 ms\"\npackets = 5\n"
    )
}

const EQUAL: &str = "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\" }, { via = \"10.9.2.2\" }, { \
    via = \"10.9.3.2\" }] }";

fn run(text: &str, workers: u32) -> (Plan, Report, Events) {
    let text = format!("{text}[engine]\nworkers = {workers}\n");
    let plan = plan_of(&text);
    let (mut events, report) = simulate(&plan, source_ports(&plan), TO_THE_END, look);
    events.sort_unstable();
    (plan, report, events)
}

/// Packets that arrived at the lines, from the first router.
fn came(plan: &Plan, report: &Report) -> [u64; 3] {
    [1, 2, 3].map(|line| {
        let name = format!("l{line}.forward");
        let place = plan.links.iter().position(|link| *link.name == *name).unwrap();
        report.links[place].stats.in_packets
    })
}

#[test]
fn flows_take_all_lines_and_each_flow_one_with_any_number_of_workers() {
    let (plan, report, events) = run(&three_lines(EQUAL), 1);
    assert_eq!((report.flow.sent, report.flow.drops.len()), (1000, 0));
    let came = came(&plan, &report);
    assert_eq!(came.iter().sum::<u64>(), 1000);
    // 200 flows, binomial with p = 1/3: mean 66.7, standard deviation 6.7; four of these. All five packets of
    // a flow stay together.
    assert!(came.iter().all(|packets| packets % 5 == 0 && (40..=93).contains(&(packets / 5))), "{came:?}");
    for workers in [2, 3] {
        assert!(run(&three_lines(EQUAL), workers).2 == events, "{workers} workers");
    }
}

#[test]
fn weights_and_changes_hold() {
    let weights = "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\", weight = 3 }, { via = \
        \"10.9.2.2\", port = \"r1-2\" }] }";
    let (plan, report, _) = run(&three_lines(weights), 1);
    let [first, second, third] = came(&plan, &report);
    // Binomial with n = 200, p = 3/4: 150, standard deviation 6.1; four of these.
    assert!(third == 0 && first + second == 1000 && (126..=174).contains(&(first / 5)), "{first}, {second}");
    let written = plan.routers[0].written(&plan.routers[0].routes[0]);
    assert_eq!(
        written,
        "10.0.2.0/24 nexthop via 10.9.1.2 dev r1-1 weight 3 nexthop via 10.9.2.2 dev r1-2 weight 1"
    );
    // From 25 ms on, when each flow has sent three of its five packets, all take the third line; from 35 ms
    // on the first two again.
    let at = |time: &str, route: &str| {
        format!("[[at]]\ntime = \"{time}\"\nrouter = \"r1\"\nadd-route = \"10.0.2.0/24 {route}\"\n")
    };
    let back = at("35 ms", "nexthop via 10.9.1.2 weight 3 nexthop via 10.9.2.2");
    let changed = three_lines(weights) + &at("25 ms", "via 10.9.3.2") + &back;
    let (plan, report, events) = run(&changed, 1);
    assert_eq!(came(&plan, &report), [first / 5 * 4, second / 5 * 4, 200]);
    assert!(run(&changed, 2).2 == events);
}

#[test]
fn a_table_of_ip_route_is_read_with_its_next_hops() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let table = "10.0.2.0/24 proto bgp metric 32 \n\tnexthop via 10.9.1.2 dev r1-1 weight 2 \n\
        \tnexthop via 10.9.3.2 dev r1-3 weight 1 \n\
        10.7.0.0/16 via 10.9.1.2\n";
    std::fs::write(folder.join("several.txt"), table).unwrap();
    let text = three_lines("").replace("routes = []", "routes-file = \"several.txt\"");
    let plan = parse(&folder.join("s.toml").display().to_string(), &text).unwrap();
    let routes: Vec<String> =
        plan.routers[0].routes.iter().map(|route| plan.routers[0].written(route)).collect();
    let several = "10.0.2.0/24 nexthop via 10.9.1.2 dev r1-1 weight 2 nexthop via 10.9.3.2 dev r1-3 weight 1";
    assert_eq!(routes, [several, "10.7.0.0/16 via 10.9.1.2 dev r1-1"]);
}

#[test]
fn mistakes_are_reported() {
    for (route, wanted) in [
        ("{ to = \"10.0.2.0/24\", next-hops = [{}] }", "name one"),
        ("{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\", weight = 0 }] }", "1 to 256"),
        (
            "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\", weight = 70000 }] }",
            "routes.weight: \"70000\" is out of range; write a whole number from 1 to 256",
        ),
        (
            "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\", weight = -1 }] }",
            "routes.weight: \"-1\" is out of range; write a whole number from 1 to 256",
        ),
        (
            "{ to = \"10.0.2.0/24\", via = \"10.9.1.3\" }",
            "means all, or any router, in the network of \"r1-1\"",
        ),
        (
            "{ to = \"10.0.2.0/24\", via = \"10.9.1.0\" }",
            "means all, or any router, in the network of \"r1-1\"",
        ),
        (
            "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\" }, { via = \"10.8.1.2\" }] }",
            "in none of the router's networks",
        ),
        (
            "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\" }, { via = \"10.9.2.1\" }] }",
            "the router's own address at \"r1-2\"",
        ),
        ("{ to = \"10.0.2.0/24\", via = \"10.9.1.1\" }", "the router's own address at \"r1-1\""),
        (
            "{ to = \"10.0.2.0/24\", next-hops = [{ via = \"10.9.1.2\" }, { port = \"r2-1\" }] }",
            "no port \"r2-1\"",
        ),
        (
            "{ to = \"10.0.2.0/24\", via = \"10.9.1.2\", next-hops = [{ via = \"10.9.2.2\" }] }",
            "name all next hops in next-hops",
        ),
        ("{ to = \"10.0.2.0/24\", discard = true, next-hops = [{ via = \"10.9.2.2\" }] }", "leave them out"),
        ("{ to = \"10.0.2.0/24\", next-hops = [] }", "it has no next hop"),
    ] {
        let error = parse("s.toml", &three_lines(route)).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{route}: {error}");
    }
}

/// A router between the hosts a and b, whose port to b is `port`; and two other hosts, for a second worker.
fn asking(port: &str, link: &str) -> String {
    let source = |name: &str, more: &str| {
        format!(
            "[[source]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\ninterval = \"1 ms\"\npackets = 1\n\
             {more}\n"
        )
    };
    let host = |name: &str, more: &str| format!("{{ name = \"{name}\", {more} }}");
    let hosts = [
        host("a", "address = \"10.0.1.9/24\""),
        host("b", "address = \"10.0.2.9/24\""),
        host("c", "bridge = \"cd\", address = \"10.0.3.1/24\""),
        host("d", "bridge = \"cd\", address = \"10.0.3.2/24\""),
    ];
    format!(
        "host = [{}]\n\
         [[router]]\nname = \"r\"\nports = [{{ port = \"a\", addresses = \"10.0.1.1/24\" }},\n\
         {{ port = \"{port}\", addresses = \"10.0.2.1/24\" }}]\n\
         routes = [{{ to = \"10.7.0.0/16\", via = \"10.0.2.77\" }}]\n\
         [[bridge]]\nname = \"cd\"\n\
         [[link]]\nname = \"cd\"\nbetween = [\"c\", \"d\"]\ndelay = \"5 ms\"\n{link}{}{}",
        hosts.join(", "),
        source("unknown", "destination = \"10.7.0.1\"\nstart = \"1 ms\""),
        source("known", "start = \"1001 ms\"")
    )
}

/// A neighbour does not answer, so the router asks again after a second: in the nanosecond in which a packet
/// for another comes.
#[test]
fn what_a_router_sends_at_a_deadline_has_its_place_among_arrivals() {
    let look = |view: &PacketView<'_>| {
        (view.left && view.meta.out_port == 1).then(|| (view.time, [view.frame[12], view.frame[13]]))
    };
    let link = "[[link]]\nname = \"l\"\nbetween = [\"b\", \"r-b\"]\nrate = \"1 Mbit/s\"\n";
    // Routers decide in turn where packets that are too big may come back.
    let mtu = "mtu = { kind = \"too-big\", mtu = \"1400\" }\n";
    for text in [asking("b", ""), asking("b", mtu), asking("r-b", link)] {
        let run = |workers: u32| {
            let plan = plan_of(&format!("{text}[engine]\nworkers = {workers}\n"));
            simulate(&plan, source_ports(&plan), TO_THE_END, look).0
        };
        let one = run(1);
        assert_eq!(one.len(), 4);
        for workers in [2, 3] {
            assert_eq!(one, run(workers), "{workers} workers");
        }
    }
}
