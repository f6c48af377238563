//! Links requested by programs of routers, and marks read by programs, filters and queues.

use crate::support::{PacketView, simulate, source_ports};
use longwire_assemble::TO_THE_END;
use longwire_engine::Report;
use longwire_program::{Program, assemble};
use longwire_scenario::{Plan, parse, plan_of};
use std::sync::Arc;

/// Events in order: time, whether it is a departure, ports, length.
type Events = Vec<(u64, bool, u16, u16, u32)>;

fn look(view: &PacketView<'_>) -> Option<(u64, bool, u16, u16, u32)> {
    let PacketView { time, left, meta, .. } = *view;
    Some((time, left, meta.in_port, meta.out_port, meta.len))
}

/// A router with the hosts "a" and "b", either directly on its port or behind an inner port; 100 packets go
/// from "a" to "b", one each 10 ms.
const HEAD: &str = "host = [{ name = \"a\", address = \"10.0.1.9/24\" }, \
    { name = \"b\", address = \"10.0.2.9/24\" }]\n\
    [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\ninterval = \"10 ms\"\nsize = \"100 B\"\n\
    for = \"995 ms\"\n";

/// A plan whose first forwarders have these programs.
fn plan(text: &str, programs: &[&str]) -> Plan {
    let mut plan = plan_of(text);
    for (forwarder, code) in plan.forwarders.iter_mut().zip(programs) {
        let code = assemble(code).unwrap_or_else(|error| panic!("{error}\n{code}"));
        forwarder.request.program = Arc::new(Program::new("test", code, []));
    }
    plan
}

fn run(plan: &Plan) -> (Report, Events) {
    let (mut events, report) = simulate(plan, source_ports(plan), TO_THE_END, look);
    events.sort_unstable();
    (report, events)
}

/// Packets that arrived at the links of these names.
fn came<const N: usize>(plan: &Plan, report: &Report, names: [&str; N]) -> [u64; N] {
    names.map(|name| {
        let place = plan.links.iter().position(|link| &*link.name == name).unwrap();
        report.links[place].stats.in_packets
    })
}

/// Runs with one to three workers, which must agree.
fn run_alike(text: &str, programs: &[&str]) -> (Plan, Report) {
    let mut known = None;
    for workers in 1..=3 {
        let plan = plan(&format!("{text}[engine]\nworkers = {workers}\n"), programs);
        let (report, events) = run(&plan);
        assert!(!events.is_empty());
        let (_, _, before) = known.get_or_insert_with(|| (plan.clone(), report.clone(), events.clone()));
        assert!(*before == events, "{workers} workers");
    }
    let (plan, report, _) = known.unwrap();
    (plan, report)
}

const SITS: &str = "[[router]]\nname = \"r\"\nports = [{ port = \"a\", addresses = \"10.0.1.1/24\" },\n\
    { port = \"b\", addresses = \"10.0.2.1/24\" }]\n";
const OWN: &str = "[[router]]\nname = \"r\"\nports = [{ port = \"a\", addresses = \"10.0.1.1/24\" },\n\
    { port = \"east\", addresses = \"10.0.2.1/24\" }]\n";

/// Two links from "FROM" to "b", and a forwarder that may use them.
fn links(from: &str, more: &str) -> String {
    format!(
        "[[link]]\nname = \"usual\"\nfrom = \"{from}\"\nto = \"b\"\ndelay = \"1 ms\"\n\
         [[link]]\nname = \"spare\"\nfrom = \"{from}\"\nto = \"b\"\ndelay = \"5 ms\"\nonly = \"programs\"\n\
         {more}\
         [[forwarder]]\nrouter = \"r\"\nprogram = \"balancer\"\nlinks = [\"spare\", \"usual\"]\n"
    )
}

/// Every second packet, by a bit of the time in units of 10 ms (the distance between packets): `then` for
/// half of them, XDP_PASS for the others.
fn every_second(then: &str) -> String {
    format!(
        "call ktime_get_ns\n r0 /= 10000000\n r0 &= 1\n if r0 == 0 goto pass\n {then}\n exit\n\
         pass:\n r0 = 2\n exit"
    )
}

#[test]
fn routed_packets_take_the_link_that_is_chosen() {
    let code = every_second("r1 = 0\n call lw_choose_link\n r0 = 2");
    for (router, from) in [(SITS, "a"), (OWN, "east")] {
        let (plan, report) = run_alike(&format!("{HEAD}{router}{}", links(from, "")), &[&code]);
        assert_eq!(came(&plan, &report, ["usual", "spare"]), [50, 50]);
        assert_eq!(report.ports[1].stats.out_frames, 100, "all come to b");
    }
}

#[test]
fn redirected_packets_take_the_link_as_they_are() {
    // A packet that bypasses the routes goes where the link leads, even with a TTL of 1, or without a route.
    let code = every_second("r1 = 0\n call lw_redirect_link");
    for (router, from) in [(SITS, "a"), (OWN, "east")] {
        let (plan, report) = run_alike(&format!("{HEAD}{router}{}", links(from, "")), &[&code]);
        assert_eq!(came(&plan, &report, ["usual", "spare"]), [50, 50]);
        assert_eq!(report.ports[1].stats.out_frames, 100);
    }
}

#[test]
fn a_bridge_behind_the_port_sends_over_the_link_that_the_router_has_chosen() {
    let lan = "[[bridge]]\nname = \"lan\"\n[[link]]\nname = \"down\"\nfrom = \"lan\"\nto = \"b\"\n\
        delay = \"2 ms\"\n";
    let links = links("east", "").replace("to = \"b\"", "to = \"lan\"");
    for choice in ["call lw_choose_link\n r0 = 2", "call lw_redirect_link"] {
        let code = every_second(&format!("r1 = 0\n {choice}"));
        let (plan, report) = run_alike(&format!("{HEAD}{OWN}{lan}{links}"), &[&code]);
        assert_eq!(came(&plan, &report, ["usual", "spare", "down"]), [50, 50, 100]);
        assert_eq!(report.ports[1].stats.out_frames, 100);
    }
}

/// Two routers in a row, with two links between them.
const ROW: &str = "[[router]]\nname = \"r\"\nports = [{ port = \"a\", addresses = \"10.0.1.1/24\" },\n\
    { port = \"east\", addresses = \"10.9.0.1/30\" }]\n\
    routes = [{ to = \"10.0.2.0/24\", via = \"10.9.0.2\" }]\n\
    [[router]]\nname = \"far\"\nports = [{ port = \"west\", addresses = \"10.9.0.2/30\" },\n\
    { port = \"b\", addresses = \"10.0.2.1/24\" }]\nroutes = [{ to = \"10.0.1.0/24\", via = \"10.9.0.1\" }]\n\
    [[link]]\nname = \"usual\"\nbetween = [\"east\", \"west\"]\ndelay = \"1 ms\"\n";

#[test]
fn marks_go_on_to_rules_classes_and_the_next_router() {
    // The first marks every second packet with 0x25, and sends it over the other link, if possible; the
    // second counts packets with that mark.
    let marks = every_second("r1 = 0x25\n call lw_mark\n r1 = 0\n call lw_choose_link\n r0 = 2");
    let reads = "call lw_read_mark\n if r0 != 0x25 goto +3\n r1 = 7\n call lw_drop\n exit\n r0 = 2\n exit";
    let text = |spare: &str| {
        format!(
            "{HEAD}{ROW}{spare}[[link]]\nname = \"other\"\nbetween = [\"east\", \"west\"]\ndelay = \"4 ms\"\n\
             only = \"programs\"\n\
             [[forwarder]]\nrouter = \"r\"\nprogram = \"balancer\"\nlinks = [\"other\"]\n\
             [[forwarder]]\nrouter = \"far\"\nprogram = \"balancer\"\nlinks = [\"usual\"]\n"
        )
    };
    let (plan, report) = run_alike(&text(""), &[&marks, reads]);
    assert_eq!(came(&plan, &report, ["usual.forward", "other.forward"]), [50, 50]);
    assert_eq!(report.ports[1].stats.out_frames, 50);
    // Rules of the link see the mark: marked packets are dropped there; the mark is separate from the
    // packet's ECN bits.
    let dropped = |rules: &str| {
        let text = text("").replace("only =", &format!("filter = \"{rules}\"\nonly ="));
        let (plan, report) = run_alike(&text, &[&marks, "r0 = 2\n exit"]);
        assert_eq!(came(&plan, &report, ["usual.forward", "other.forward"]), [50, 50]);
        100 - report.ports[1].stats.out_frames
    };
    for (rules, wanted) in [
        ("drop if mark 0x25", 50),
        ("drop if mark 0x20/0xf0", 50),
        ("drop if mark & 0xf == 5", 50),
        ("drop if not mark 0", 50),
        ("drop if mark 0x24 or mark 0x26", 0),
        ("drop if ecn ce", 0),
    ] {
        assert_eq!(dropped(rules), wanted, "{rules}");
    }
}

#[test]
fn classes_of_a_queue_go_by_marks() {
    let code = every_second("r1 = 5\n call lw_mark\n r0 = 2");
    // A class without room: only marked packets are lost.
    for (kind, share) in [("wf2q+", "weight 1 "), ("hfsc", "ls 1 Mbit/s "), ("priority", "")] {
        let queue = format!(
            "rate = \"10 Mbit/s\"\n[link.queue]\nkind = \"{kind}\"\n\
             classes = [\"none {share}limit 1 B if mark 5\", \"rest {share}limit 10 packets\"]\n"
        );
        let text = format!("{HEAD}{SITS}{}", links("a", ""))
            .replace("delay = \"1 ms\"\n", &format!("delay = \"1 ms\"\n{queue}"));
        let (_, report) = run_alike(&text, &[&code]);
        assert_eq!(report.ports[1].stats.out_frames, 50, "{kind}");
    }
}

#[test]
fn a_link_that_is_not_there_is_reported_and_a_number_beyond_counts_as_aborted() {
    let text = format!("{HEAD}{OWN}{}", links("east", ""));
    let told = |text: &str| match parse("chosen.toml", text) {
        Ok(_) => panic!("no mistake in:\n{text}"),
        Err(error) => error.to_string(),
    };
    for (from, to, wanted) in [
        (
            "links = [\"spare\", \"usual\"]",
            "links = [\"spar\"]",
            "links: no link \"spar\" that programs may name begins at a port of \"r\": there are usual, \
             spare",
        ),
        ("links = [\"spare\", \"usual\"]", "", "the program chooses among 1 link, and 0 are named"),
        (
            "from = \"east\"\nto = \"b\"\ndelay = \"5 ms\"",
            "from = \"b\"\nto = \"east\"",
            "begins where no router's program sends packets",
        ),
        ("\ndelay = \"1 ms\"", "\nonly = \"programs\"", "no other link has the same two ends"),
        ("only = \"programs\"", "only = \"program\"", "programs"),
        ("only = \"programs\"\n", "", "has the same ends"),
        (
            "only = \"programs\"\n",
            "only = \"programs\"\nmatch = [{ source = \"10.0.1.9\", destination = \"10.0.2.9\" }]\n",
            "leave one of the two out",
        ),
    ] {
        let wrong = text.replacen(from, to, 1);
        assert!(wrong != text && told(&wrong).contains(wanted), "{wanted}\n{}", told(&wrong));
    }
    let code = every_second("call lw_read_mark\n r1 = r0\n r1 ^= 2\n call lw_redirect_link");
    let (plan, report) = run_alike(&text, &[&code]);
    assert_eq!(came(&plan, &report, ["usual", "spare"]), [50, 0]);
    assert_eq!(report.nodes[0].stats.dropped, 50);
}
