//! Routers join a running net and leave it, in virtual time: what they keep is accounted for, and packets go
//! where the routers of their time send them.

use crate::support::{PacketView, memory_ports, simulate};
use longwire_assemble::{TO_THE_END, build, rewire};
use longwire_block::{Dice, DropReason, Stamp};
use longwire_engine::Report;
use longwire_scenario::{Plan, parse, parse_after, plan_of};
use longwire_units::Nanos;
use longwire_wire::{Ipv4Header, ethernet_header, ethertype};
use std::fmt::Write as _;

/// Two bridges: hosts a and b on x, c on y.
const NET: &str = "[engine]\npool = \"64 MB\"\n[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n\
    [[host]]\nname = \"a\"\naddress = \"10.0.1.10/24\"\nbridge = \"x\"\n\
    [[host]]\nname = \"b\"\naddress = \"10.0.1.11/24\"\nbridge = \"x\"\n\
    [[host]]\nname = \"c\"\naddress = \"10.0.2.12/24\"\nbridge = \"y\"\n";

/// A router between the two.
const ROUTER: &str = "[[router]]\nname = \"r\"\nports = [\
    { port = \"rx\", bridge = \"x\", addresses = \"10.0.1.1/24\" }, \
    { port = \"ry\", bridge = \"y\", addresses = \"10.0.2.1/24\" }]\n";

fn added(time: &str, sections: &str) -> String {
    format!("[[at]]\ntime = \"{time}\"\nadd = '''\n{sections}'''\n")
}

fn removed(time: &str, names: &str) -> String {
    format!("[[at]]\ntime = \"{time}\"\nremove = {names}\n")
}

/// The hardware address of a router's port, in the plan or any of its stages.
fn mac_of(plan: &Plan, port: &str) -> [u8; 6] {
    let plans = [plan].into_iter().chain(plan.stages.iter().map(|stage| &*stage.plan));
    let mut ports = plans.flat_map(|plan| &plan.routers).flat_map(|router| &router.ports);
    ports.find(|known| &*known.name == port).unwrap().mac.0
}

/// A packet from a host of the plan to an address, by way of a station.
fn packet(plan: &Plan, from: usize, to: [u8; 4], mac: [u8; 6]) -> Vec<u8> {
    let host = &plan.hosts[from];
    let std::net::IpAddr::V4(source) = host.addresses[0].address else { panic!("not IPv4") };
    let header = Ipv4Header {
        source: source.to_bits(),
        destination: u32::from_be_bytes(to),
        protocol: 17,
        ttl: 64,
        traffic_class: 0,
        id: 7,
        payload_len: 60,
    };
    [&ethernet_header(mac, host.mac.0, ethertype::IPV4)[..], &header.bytes(), &[0; 60]].concat()
}

/// When packets of UDP leave by which port, and what was counted.
fn run(plan: &Plan, frames: &[(u64, usize, Vec<u8>)]) -> (Vec<(u64, u16)>, Report) {
    let (ports, mut ends) = memory_ports(plan, Stamp::Source);
    for (time, from, frame) in frames {
        assert!(ends[*from].push_at(Nanos(*time), frame));
    }
    let look = |view: &PacketView<'_>| {
        let is_meant = view.left && view.frame.len() == 94 && view.frame[23] == 17;
        is_meant.then_some((view.time, view.meta.out_port))
    };
    simulate(plan, ports, TO_THE_END, look)
}

const MS: u64 = 1_000_000;

#[test]
fn a_router_forwards_from_the_nanosecond_on_at_which_it_is_added() {
    let text = [NET.to_owned(), added("2 ms", ROUTER), removed("4 ms", "\"r\""), added("6 ms", ROUTER)];
    let plan = plan_of(&text.concat());
    let mac = mac_of(&plan, "rx");
    let times = [2 * MS - 1, 2 * MS, 4 * MS - 1, 4 * MS, 6 * MS];
    let frames: Vec<_> = times.iter().map(|&time| (time, 0, packet(&plan, 0, [10, 0, 2, 12], mac))).collect();
    let (left, report) = run(&plan, &frames);
    // Before and between, the bridge floods what is for a station that is not there.
    let to_c: Vec<u64> = left.iter().filter(|(_, port)| *port == 2).map(|(time, _)| *time).collect();
    assert_eq!(to_c, [2 * MS, 4 * MS - 1, 6 * MS]);
    let to_b = left.iter().filter(|(_, port)| *port == 1).count();
    assert_eq!((to_b, report.rewired, report.nodes.len()), (2, 3, 1));
}

#[test]
fn what_a_removed_router_keeps_is_given_up_and_counted() {
    let text = [NET.to_owned(), added("1 ms", ROUTER), removed("3 ms", "\"r\"")];
    let plan = plan_of(&text.concat());
    let mac = mac_of(&plan, "rx");
    // Nobody has this address: the packets wait for an answer when the router is removed.
    let waiting = |time| (time, 0, packet(&plan, 0, [10, 0, 2, 77], mac));
    let (left, report) = run(&plan, &[waiting(2 * MS), waiting(2 * MS + 1), waiting(3 * MS)]);
    assert_eq!(left.iter().map(|(_, port)| *port).collect::<Vec<_>>(), [1]);
    assert_eq!(report.flow.dropped(DropReason::NoNeighbour), 2);
    // It asks again, and reports the failure; nothing of that comes out.
    assert!(report.flow.dropped(DropReason::PortDown) > 0, "{:?}", report.flow.drops);
    assert_eq!(report.flow.kept, 0);
    assert!(report.is_conserved(), "{report:?}");
}

/// Routers on one bridge, on several, with links at their ports and with a host of their own, come and go
/// beside one that stays.
#[test]
fn random_stages_of_routers_account_for_every_packet_and_are_repeatable() {
    const STAYS: &str = "[[bridge]]\nname = \"z\"\n[[host]]\nname = \"d\"\naddress = \"10.0.3.13/24\"\n\
        bridge = \"z\"\n[[router]]\nname = \"s\"\nports = [\
        { port = \"sx\", bridge = \"x\", addresses = \"10.0.1.4/24\" }, \
        { port = \"sz\", addresses = \"10.0.3.4/24\" }]\n\
        routes = [{ to = \"10.0.2.0/24\", via = \"10.0.1.1\" }]\n\
        [[link]]\nname = \"stays\"\nbetween = [\"sz\", \"z\"]\ndelay = \"200 us\"\n";
    const LINKED: &str = "[[router]]\nname = \"q\"\nports = [\
        { port = \"qy\", addresses = \"10.0.2.2/24\" }, \
        { port = \"qz\", bridge = \"z\", addresses = \"10.0.3.1/24\" }]\n\
        [[link]]\nname = \"long\"\nbetween = [\"qy\", \"y\"]\ndelay = \"2 ms\"\nrate = \"2 Mbit/s\"\n";
    const WITH_HOST: &str = "[[host]]\nname = \"e\"\naddress = \"10.0.5.14/24\"\n[[router]]\nname = \"t\"\n\
        scheduler = \"gmr3\"\nports = [{ port = \"e\", addresses = \"10.0.5.1/24\" }, \
        { port = \"tx\", bridge = \"x\", addresses = \"10.0.1.5/24\" }]\n";
    const ITEMS: [(&str, &str); 3] =
        [(ROUTER, "[\"r\"]"), (LINKED, "[\"q\"]"), (WITH_HOST, "[\"t\", \"e\"]")];
    const TO: [[u8; 4]; 6] =
        [[10, 0, 1, 10], [10, 0, 2, 12], [10, 0, 3, 13], [10, 0, 5, 14], [10, 0, 2, 99], [10, 0, 3, 99]];
    let (mut came, mut rewired, mut refused) = (0, 0, 0);
    for case in 0..20 {
        let dice = &mut Dice::named(case, "router stages");
        let (mut text, mut there, mut time) = (format!("{NET}{STAYS}"), [false; 3], 0);
        for _ in 0..20 {
            time += dice.below(4_000_000);
            let which = dice.below(3) as usize;
            let (sections, names) = ITEMS[which];
            let at = format!("{time} ns");
            text += &if there[which] { removed(&at, names) } else { added(&at, sections) };
            there[which] = !there[which];
        }
        // All of them once more, so that each has a hardware address.
        for (which, (sections, _)) in ITEMS.iter().enumerate().filter(|(which, _)| !there[*which]) {
            let _ = writeln!(text, "{}", added(&format!("{} ms", 900 + which), sections));
        }
        let plan = plan_of(&text);
        let macs = ["rx", "qz", "tx", "sx", "sz", "ry"].map(|port| mac_of(&plan, port));
        let mut frames: Vec<_> = (0..300)
            .map(|_| {
                let (from, to) = (dice.below(4) as usize, TO[dice.below(6) as usize]);
                (dice.below(50_000_000), from, packet(&plan, from, to, macs[dice.below(6) as usize]))
            })
            .collect();
        frames.sort_unstable();
        let places: Vec<usize> = plan.hosts.iter().map(|host| usize::from(host.port)).collect();
        frames.iter_mut().for_each(|(_, from, _)| *from = places[*from]);
        let (one, other) = (run(&plan, &frames), run(&plan, &frames));
        assert!(one.0 == other.0, "case {case}");
        assert_eq!(one.1.flow, other.1.flow, "case {case}");
        came += one.0.len();
        rewired += one.1.rewired;
        refused += one.1.flow.dropped(DropReason::PortDown) + one.1.flow.dropped(DropReason::NoNeighbour);
    }
    assert!(came > 2000 && rewired > 350 && refused > 20, "{came} {rewired} {refused}");
}

/// Why a text can't follow another.
fn refused(before: &str, after: &str) -> String {
    let before = plan_of(before);
    let (ports, _ends) = memory_ports(&before, Stamp::Poll);
    let layout = build(&before, ports, |_| None).unwrap().layout;
    let after = match parse_after(&before, after, Nanos::ZERO) {
        Ok(plan) => plan,
        Err(error) => return error.to_string(),
    };
    rewire(&before, &layout, &after, false).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_of_routers_cannot_change_is_refused_before_anything_does() {
    let with = |more: &str| format!("{NET}{ROUTER}{more}");
    let says = |after: &str, wanted: &str| {
        let why = refused(&with(""), after);
        assert!(why.contains(wanted), "{wanted}: {why}");
    };
    assert_eq!(refused(&with(""), NET), "");
    assert_eq!(refused(NET, &with("")), "");
    says(
        &with("").replace("10.0.2.1/24", "10.0.2.3/24"),
        "router \"r\": its addresses or other fixed settings",
    );
    let linked = with("[[link]]\nname = \"l\"\nfrom = \"ry\"\nto = \"y\"\n");
    says(&linked, "router \"r\": other links would begin at its ports, which its programs name by number");
    let bare = "[[router]]\nname = \"q\"\nports = [{ port = \"nowhere\", addresses = \"10.9.0.1/24\" }]\n";
    says(&with(bare), "no link or bridge that it is joined to");
    // With several workers nodes stay where they are.
    let two = |text: &str| text.replace("[engine]\n", "[engine]\nworkers = 2\n");
    let why = refused(&two(NET), &two(&with("")));
    assert!(why.contains("write workers = 1"), "{why}");
    // A host that is one's port can't become something else beneath it.
    let sits = |section: &str| {
        format!(
            "{section}[[router]]\nname = \"r\"\nports = [{{ port = \"h\", addresses = \"10.3.0.1/24\" }}]\n"
        )
    };
    let host = sits("[[host]]\nname = \"h\"\naddress = \"10.3.0.2/24\"\n");
    let why = refused(&host, &sits("[[port]]\nname = \"h\"\ndriver = \"memory\"\n"));
    assert!(why.contains("\"h\" is a port of a router that stays"), "{why}");
}

/// It would begin without what its event has changed, and nobody would know.
#[test]
fn a_router_that_a_past_event_names_is_refused() {
    let before = plan_of(NET);
    let (ports, _ends) = memory_ports(&before, Stamp::Poll);
    let layout = build(&before, ports, |_| None).unwrap().layout;
    let event = "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"blackhole 10.9.0.0/16\"\n";
    let after = parse_after(&before, &format!("{NET}{ROUTER}{event}"), Nanos::from_secs(5)).unwrap();
    let why = rewire(&before, &layout, &after, false).err().unwrap().to_string();
    assert!(why.starts_with("router \"r\": an [[at]] event would change it"), "{why}");
}

#[test]
fn an_event_that_adds_a_wrong_router_is_an_error_of_the_scenario() {
    let text = format!("{NET}{}", added("1 s", "[[router]]\nname = \"r\"\n"));
    let error = parse("s.toml", &text).unwrap_err().to_string();
    assert!(error.contains("\"ports\" is missing"), "{error}");
    let removed = format!("{NET}{}", removed("1 s", "\"r\""));
    let error = parse("s.toml", &removed).unwrap_err().to_string();
    assert!(error.contains("[[router]] or [[source]] is called \"r\""), "{error}");
}
