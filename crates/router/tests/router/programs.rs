//! Programs on a router's path: their packets, their order, and the outcomes.

use crate::rig::{Rig, SECOND, Seen, config, host_mac, router_mac};
use etherparse::PacketBuilder;
use longwire_block::DropReason;
use longwire_program::{Budget, Program, assemble};
use longwire_router::{
    Admission, Fid, FlowKey, Forwarder, InstallError, Installation, Key, NextHop, PrepareError, Router,
    RouterPrices,
};
use std::net::IpAddr;

/// A program with this code.
pub fn program(name: &str, code: &str) -> Program {
    Program::new(name, assemble(code).unwrap(), [])
}

pub fn prepared(program: Program, installation: Installation) -> Forwarder {
    Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap()
}

/// Installs a program with this code.
pub fn install(rig: &mut Rig, code: &str, installation: Installation) -> Fid {
    rig.router.install(prepared(program("test", code), installation)).unwrap()
}

pub fn general() -> Installation {
    Installation { name: "general".into(), ..Installation::default() }
}

fn to_port(port: u16) -> Installation {
    let key = FlowKey { destination_port: Some(port), ..FlowKey::default() };
    Installation { name: "flow".into(), key: Key::Flow(key), ..Installation::default() }
}

/// A UDP frame from the host behind port 1 to this address and port.
fn udp_to(destination: [u8; 4], ttl: u8, port: u16, payload: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(host_mac(1), router_mac(1)).ipv4([10, 0, 1, 9], destination, ttl);
    let mut frame = Vec::new();
    builder.udp(7, port).write(&mut frame, &vec![7; payload]).unwrap();
    frame
}

/// One to the host behind port 2.
pub fn udp(port: u16) -> Vec<u8> {
    udp_to([10, 0, 2, 9], 64, port, 4)
}

pub fn send(rig: &mut Rig, frame: &[u8]) -> Seen {
    let mut seen = rig.send(SECOND, 1, frame);
    assert_eq!(seen.len(), 1);
    seen.remove(0)
}

/// Counts its packets in the first four bytes of its state, and passes them.
pub const COUNT: &str = "r1 = 4
    call 65536
    r1 = 1
    lock *(u32 *)(r0 + 0) += w1
    r0 = 2
    exit";

fn counted(rig: &Rig, fid: Fid) -> u32 {
    u32::from_le_bytes(rig.router.data(fid).unwrap()[..4].try_into().unwrap())
}

#[test]
fn codes_say_what_becomes_of_a_packet() {
    let forwarded = |seen: &Seen| matches!(seen, Seen::Out(2, _));
    let as_it_is = |port| move |seen: &Seen| *seen == Seen::Out(port, udp(53));
    let dropped = |reason| move |seen: &Seen| *seen == Seen::Dropped(reason);
    type Expected<'a> = &'a dyn Fn(&Seen) -> bool;
    let table: [(&str, &str, Expected<'_>); 10] = [
        ("pass", "r0 = 2\n exit", &forwarded),
        ("tx", "r0 = 3\n exit", &as_it_is(1)),
        ("redirect", "r1 = 3\n r2 = 0\n call 23\n exit", &as_it_is(3)),
        ("drop", "r0 = 1\n exit", &dropped(DropReason::Program)),
        ("own reason", "r1 = 7\n call 65539\n exit", &dropped(DropReason::Program)),
        (
            "another reason",
            "r1 = *(u32 *)(r1 + 12)\n r1 += 100\n call 65539\n exit",
            &dropped(DropReason::Program),
        ),
        ("aborted", "r0 = 0\n exit", &dropped(DropReason::Aborted)),
        ("no code", "r0 = 99\n exit", &dropped(DropReason::Aborted)),
        ("to no port", "r1 = 9\n r2 = 0\n call 23\n exit", &dropped(DropReason::Aborted)),
        ("redirect nowhere", "r0 = 4\n exit", &dropped(DropReason::Aborted)),
    ];
    for (what, code, expected) in table {
        let mut rig = Rig::new();
        let fid = install(&mut rig, code, general());
        let seen = send(&mut rig, &udp(53));
        assert!(expected(&seen), "{what}: {seen:?}");
        let stats = rig.router.forwarders().forwarder(fid).unwrap().stats();
        let parts = [stats.passed, stats.transmitted, stats.redirected, stats.dropped, stats.aborted];
        assert_eq!((stats.packets, parts.iter().sum::<u64>()), (1, 1), "{what}");
        assert_eq!(stats.aborted == 1, seen == Seen::Dropped(DropReason::Aborted), "{what}");
        assert_eq!(stats.reasons[7], u64::from(what == "own reason"), "{what}");
        assert_eq!(stats.other_reasons, u64::from(what == "another reason"), "{what}");
        assert_eq!(stats.reasons.iter().sum::<u64>(), u64::from(what == "own reason"), "{what}");
    }
}

#[test]
fn a_packet_meets_one_flows_program_and_all_general_ones_in_order() {
    let mut rig = Rig::new();
    let first = install(&mut rig, COUNT, general());
    let wild = install(&mut rig, COUNT, Installation { key: Key::Flow(FlowKey::default()), ..general() });
    let dns = install(&mut rig, COUNT, to_port(53));
    let shadowed = install(&mut rig, COUNT, to_port(53));
    let blocked = install(&mut rig, "r0 = 1\n exit", to_port(99));
    let last = install(&mut rig, COUNT, general());
    for port in [53, 53, 80, 99] {
        send(&mut rig, &udp(port));
    }
    let counts = [first, wild, dns, shadowed, last].map(|fid| counted(&rig, fid));
    // General programs don't see packets dropped by a flow's program.
    assert_eq!(counts, [3, 1, 2, 0, 3]);
    let stats = |fid| rig.router.forwarders().forwarder(fid).unwrap().stats();
    assert_eq!((stats(blocked).dropped, stats(blocked).packets), (1, 1));
    assert_eq!(rig.router.stats().forwarded, 3);

    assert!(rig.router.remove(dns) && !rig.router.remove(dns));
    send(&mut rig, &udp(53));
    assert_eq!((counted(&rig, shadowed), counted(&rig, wild), rig.router.data(dns)), (1, 1, None));
    let next = install(&mut rig, COUNT, to_port(53));
    assert!(next > last, "numbers are not used again");
}

#[test]
fn state_is_zero_then_what_it_is_set_to() {
    let mut rig = Rig::new();
    let fid = install(&mut rig, COUNT, Installation { state: Some(8), ..general() });
    assert_eq!(rig.router.data(fid), Some(vec![0; 8]));
    assert!(rig.router.set_data(fid, &[5, 0, 0, 0, 1, 2, 3, 4]));
    send(&mut rig, &udp(53));
    assert_eq!(rig.router.data(fid), Some(vec![6, 0, 0, 0, 1, 2, 3, 4]));
    assert!(!rig.router.set_data(fid, &[0; 4]) && !rig.router.set_data(Fid(77), &[0; 8]));
    let state = |size| {
        let installation = Installation { state: Some(size), ..general() };
        Forwarder::prepare(program("test", COUNT), installation, &RouterPrices::default(), 1)
    };
    assert!(matches!(state(3), Err(PrepareError::State { size: 3, used: 4 })));
    assert!(matches!(state(4097), Err(PrepareError::State { .. })) && state(4096).is_ok());
}

#[test]
fn exceptional_packets_are_seen_and_refused_frames_are_not() {
    let mut rig = Rig::new();
    let fid = install(&mut rig, COUNT, general());
    let for_router = udp_to([10, 0, 1, 1], 64, 53, 4);
    let expired = udp_to([10, 0, 2, 9], 1, 53, 4);
    let mut other = udp(53);
    other[5] ^= 1;
    let mut wrong = udp(53);
    wrong[24] ^= 1;
    for (frame, count) in [(&for_router, 1), (&expired, 2), (&other, 2), (&wrong, 2), (&udp(53), 3)] {
        rig.send(SECOND, 1, frame);
        assert_eq!(counted(&rig, fid), count);
    }
}

const PASS: &str = "r0 = 2
    exit";

/// Changes the destination to port 3's host, fixes the upper byte of the checksum in `r9` with `checksum`,
/// and ends with `end`. The destination's third byte is the upper one of its word: adding one subtracts one
/// from the checksum's upper byte.
fn rewrite(checksum: &str, end: &str) -> String {
    format!(
        "r6 = *(u32 *)(r1 + 0)
        r7 = *(u32 *)(r1 + 4)
        r8 = r6
        r8 += 34
        if r8 > r7 goto out
        r9 = 3
        *(u8 *)(r6 + 32) = r9
        r9 = *(u8 *)(r6 + 24)
        {checksum}
        *(u8 *)(r6 + 24) = r9
        out: {end}"
    )
}

#[test]
fn a_changed_packet_is_classified_again() {
    let mut rig = Rig::new();
    install(&mut rig, &rewrite("r9 -= 1", PASS), general());
    let seen = send(&mut rig, &udp(53));
    let (port, frame) = seen.out();
    assert_eq!((port, &frame[..6], &frame[30..34]), (3, &host_mac(3)[..], &[10, 0, 3, 9][..]));

    let mut rig = Rig::new();
    install(&mut rig, &rewrite("r9 += 0", PASS), general());
    assert_eq!(send(&mut rig, &udp(53)), Seen::Dropped(DropReason::BadHeader));
}

/// Inserts 20 bytes before the packet: a copy of its Ethernet header, and six zero bytes.
const GROW: &str = "r6 = r1
    r2 = -20
    call 44
    r1 = *(u32 *)(r6 + 0)
    r2 = *(u32 *)(r6 + 4)
    r3 = r1
    r3 += 34
    if r3 > r2 goto out
    r4 = *(u64 *)(r1 + 20)
    *(u64 *)(r1 + 0) = r4
    r4 = *(u32 *)(r1 + 28)
    *(u32 *)(r1 + 8) = r4
    r4 = 0
    *(u16 *)(r1 + 12) = r4
    out: r0 = 3
    exit";

#[test]
fn packets_grow_and_shrink() {
    let mut rig = Rig::new();
    let fid = install(&mut rig, GROW, general());
    let long = udp_to([10, 0, 2, 9], 64, 53, 1000);
    for frame in [&udp(53), &long] {
        let seen = rig.send(SECOND, 1, frame);
        let out: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Out(..))).collect();
        let (port, grown) = out[0].out();
        assert_eq!((out.len(), port, grown.len()), (1, 1, frame.len() + 20));
        assert_eq!((&grown[..12], &grown[20..]), (&frame[..12], &frame[..]));
    }
    assert!(rig.router.remove(fid));
    // Cuts off the last 8 bytes: shorter than the IP header's length, so that it is dropped when it is
    // classified again.
    install(&mut rig, "r2 = -8\n call 65\n r0 = 2\n exit", to_port(53));
    assert_eq!(send(&mut rig, &udp(53)), Seen::Dropped(DropReason::BadHeader));
    install(&mut rig, "r2 = -8\n call 65\n r0 = 3\n exit", to_port(80));
    assert_eq!(send(&mut rig, &udp(80)), Seen::Out(1, udp(80)[..udp(80).len() - 8].to_vec()));
}

#[test]
fn growing_twice_and_growing_beyond_all_bounds() {
    let mut rig = Rig::new();
    let pass = GROW.replace("r0 = 3", "r0 = 2");
    install(&mut rig, &pass, general());
    install(&mut rig, GROW, general());
    let seen = rig.send(SECOND, 1, &udp(53));
    let out: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Out(..))).collect();
    assert_eq!((out.len(), out[0].out().1.len()), (1, udp(53).len() + 40));
}

#[test]
fn an_installation_says_where_packets_go() {
    let mut rig = Rig::new();
    let gateway = NextHop::via(3, IpAddr::from([10, 0, 3, 9]));
    let fid = install(&mut rig, "r0 = 2\n exit", Installation { way: Some(gateway), ..to_port(53) });
    let seen = send(&mut rig, &udp(53));
    let (port, frame) = seen.out();
    // Minimal IP still does its work.
    assert_eq!((port, &frame[..6], &frame[6..12], frame[22]), (3, &host_mac(3)[..], &router_mac(3)[..], 63));
    assert_eq!(send(&mut rig, &udp(80)).out().0, 2);
    // Full IP uses it, too: the neighbour is unknown, so it is resolved.
    assert!(rig.router.remove(fid));
    let stranger = NextHop::via(3, IpAddr::from([10, 0, 3, 77]));
    install(&mut rig, "r0 = 2\n exit", Installation { way: Some(stranger), ..to_port(53) });
    let seen = rig.send(2 * SECOND, 1, &udp(53));
    assert_eq!((seen.len(), &seen[0], seen[1].out().0), (2, &Seen::Kept, 3));
    // Packets for the router stay there.
    let for_router = udp_to([10, 0, 1, 1], 64, 53, 4);
    let seen = rig.send(2 * SECOND, 1, &for_router);
    assert_eq!(seen[0], Seen::Dropped(DropReason::Unserved));

    let foreign = Installation { way: Some(NextHop::Direct { port: 9 }), ..general() };
    let refused = rig.router.install(prepared(program("test", COUNT), foreign));
    assert_eq!(refused, Err(InstallError::ForeignPort { port: 9 }));
    let nowhere = Installation { way: Some(NextHop::Discard), ..general() };
    let refused = Forwarder::prepare(program("test", COUNT), nowhere, &RouterPrices::default(), 1);
    assert!(matches!(refused, Err(PrepareError::Way(NextHop::Discard))));
}

#[test]
fn random_numbers_are_the_installations_own() {
    // The first random number goes into the state.
    let draw = "call 7\n r6 = r0\n r1 = 4\n call 65536\n *(u32 *)(r0 + 0) = r6\n r0 = 2\n exit";
    let mut rig = Rig::new();
    let fids = [0; 2].map(|_| install(&mut rig, draw, general()));
    let mut draws = Vec::new();
    for _ in 0..3 {
        send(&mut rig, &udp(53));
        draws.extend(fids.map(|fid| counted(&rig, fid)));
    }
    let mut again = Rig::new();
    let same = install(&mut again, draw, general());
    send(&mut again, &udp(53));
    assert_eq!(counted(&again, same), draws[0], "with the same seed");
    draws.sort_unstable();
    draws.dedup();
    assert_eq!(draws.len(), 6, "six draws differ, but once in 2^28 seeds");
}

#[test]
fn what_does_not_fit_is_refused_with_the_arithmetic() {
    let admission = Admission { budget: Budget::VRP, ..Admission::default() };
    let mut router = Router::new(longwire_router::RouterConfig { admission, ..config() }).unwrap();
    let code = format!("{}r0 = 2\n exit", "r0 = 1\n".repeat(60));
    let long = || prepared(program("long", &code), Installation { name: "long".into(), ..general() });
    let first = router.install(long()).unwrap();
    router.install(long()).unwrap();
    let refused = router.install(long()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the budget per packet does not suffice: classifier 56 + long (fid 1) 62 + long (fid 2) 62 + long \
         (fid 3) 62 + minimal IP 32 = 274 cycles, 240 allowed; remove a program, or choose a larger budget"
    );
    assert!(router.remove(first));
    assert!(router.install(long()).is_ok());
}

#[test]
fn lookups_use_up_the_budget() {
    let admission = Admission { budget: Budget::VRP, ..Admission::default() };
    let mut router = Router::new(longwire_router::RouterConfig { admission, ..config() }).unwrap();
    let mut add = |key: FlowKey| {
        let installation = Installation { name: "flow".into(), key: Key::Flow(key), ..general() };
        router.install(prepared(program("pass", "r0 = 2\n exit"), installation)).map(|fid| fid.0)
    };
    let source = |host| Some([10, 0, 0, host].into());
    assert_eq!(add(FlowKey { source: source(1), ..FlowKey::default() }), Ok(1));
    assert_eq!(add(FlowKey { source: source(2), ..FlowKey::default() }), Ok(2));
    assert_eq!(add(FlowKey { destination: source(2), ..FlowKey::default() }), Ok(3));
    // Two hashes of the classifier, one each for a second and a third mask: three are the maximum. The flows'
    // programs cost the same.
    let refused = add(FlowKey { protocol: Some(6), ..FlowKey::default() }).unwrap_err().to_string();
    assert!(
        refused.contains("classifier 4 + flow (fid 4) 0 + minimal IP 0 = 4 hashes, 3 allowed"),
        "{refused}"
    );
}

#[test]
fn a_table_that_was_overtaken_is_given_back() {
    let mut rig = Rig::new();
    let seen = rig.router.forwarders();
    let (_, table) = seen.with(prepared(program("late", COUNT), general())).unwrap();
    install(&mut rig, COUNT, general());
    let table = rig.router.replace_forwarders(&seen, table).unwrap_err();
    assert_eq!((table.all().len(), rig.router.forwarders().all().len()), (1, 1));
    let seen = rig.router.forwarders();
    let (fid, table) = seen.with(prepared(program("again", COUNT), general())).unwrap();
    let old = rig.router.replace_forwarders(&seen, table).unwrap();
    assert_eq!((old.all().len(), rig.router.forwarders().all().len(), fid), (1, 2, Fid(2)));
}

/// Adds the time, the packet's length and a random number to its state, chooses a queue, marks, and returns
/// the result of a last call.
fn talk(call: &str) -> String {
    format!(
        "r6 = r1
        call ktime_get_ns
        r7 = r0
        r1 = r6
        call xdp_get_buff_len
        r7 += r0
        call get_prandom_u32
        r7 += r0
        call get_smp_processor_id
        r7 += r0
        r1 = 8
        call lw_flow_state
        lock *(u64 *)(r0 + 0) += r7
        r1 = 3
        call lw_choose_queue
        r1 = 5
        call lw_mark
        {call}
        exit"
    )
}

/// Plain programs are served by a fast path. Beside a program that is not plain, of a flow without packets,
/// they take the general path: the results must be equal.
#[test]
fn programs_that_say_little_are_served_as_all_others_are() {
    let drop = "r0 = 1\n exit";
    let rewrite = rewrite("r9 -= 1", COUNT);
    let passing = talk("r0 = 2");
    let dropping = talk("r1 = 9\n call lw_drop");
    let [redirecting, losing] = [3, 77].map(|port| talk(&format!("r1 = {port}\n r2 = 0\n call redirect")));
    let queued = |how: Installation| Installation { queue: Some(2), ..how };
    let marking = "r1 = 9\n call lw_mark\n r0 = 2\n exit";
    let tables: [&[(&str, Installation)]; 11] = [
        &[(&passing, general())],
        &[(&passing, general()), (marking, to_port(53)), (COUNT, general())],
        &[(marking, general())],
        &[
            (&passing, general()),
            (&redirecting, to_port(53)),
            (&dropping, to_port(80)),
            (&losing, to_port(99)),
        ],
        &[(COUNT, queued(general())), (&losing, general())],
        &[(COUNT, general())],
        &[(drop, general())],
        &[(&rewrite, general())],
        &[(COUNT, general()), (&rewrite, to_port(53)), (COUNT, general())],
        &[(&rewrite, to_port(80)), ("r0 = 3\n exit", to_port(53)), (drop, to_port(99)), (COUNT, general())],
        &[("r0 = 0\n exit", to_port(53)), ("r0 = 77\n exit", to_port(80)), (COUNT, general())],
    ];
    let mut other = udp(53);
    other[5] ^= 1;
    let frames: Vec<_> =
        [udp(53), udp(80), udp(99), udp_to([10, 0, 2, 9], 1, 53, 4), other, udp_to([10, 0, 1, 1], 64, 80, 4)]
            .into_iter()
            .enumerate()
            .map(|(at, frame)| (SECOND + at as u64, 1, frame))
            .collect();
    for table in tables {
        let outcome = |beside: bool| {
            let mut rig = Rig::new();
            let fids: Vec<_> = table.iter().map(|(code, how)| install(&mut rig, code, how.clone())).collect();
            if beside {
                let way = Some(NextHop::Direct { port: 2 });
                install(&mut rig, COUNT, Installation { way, ..to_port(60_000) });
            }
            let seen = rig.batch(&frames);
            let forwarders = rig.router.forwarders();
            let stats: Vec<_> = fids.iter().map(|&fid| forwarders.forwarder(fid).unwrap().stats()).collect();
            let state: Vec<_> = fids.iter().map(|&fid| rig.router.data(fid)).collect();
            (seen, rig.chosen, stats, state, rig.router.stats())
        };
        assert_eq!(outcome(false), outcome(true), "{table:?}");
    }
}
