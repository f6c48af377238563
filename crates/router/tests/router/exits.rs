//! Programs named by entries of maps: on packets that leave by a port, and on those redirected to a
//! processor.

use crate::rig::{Rig, SECOND, Seen, udp};
use crate::threads::{METER, measured, several, until};
use longwire_block::DropReason;
use longwire_program::{Object, Program, Resource};
use longwire_router::{Fid, Forwarder, Installation, RouterPrices};
use std::sync::Arc;

const OBJECT: &[u8] = include_bytes!("../../../program/tests/objects/exits.o");
const EXITS: [&str; 11] = [
    "stamp",
    "lengthen",
    "refuse",
    "back",
    "away",
    "let_pass",
    "throw_away",
    "send_back",
    "onward",
    "around",
    "nowhere",
];

/// A program of the object, whose entries may name these.
fn program(name: &str, exits: &[&str]) -> Program {
    let mut object = Object::parse(OBJECT).unwrap();
    object.set_exits(exits).unwrap();
    object.program(name).unwrap()
}

fn prepared(name: &str, exits: &[&str]) -> Forwarder {
    Forwarder::prepare(program(name, exits), Installation::default(), &RouterPrices::default(), 1).unwrap()
}

/// Sets the first entry of a map, with its program.
fn lead(forwarder: &Forwarder, map: &str, first: u32, exit: Option<&str>) {
    let map = forwarder.maps().named(map).unwrap();
    let value = map.spec().leading(first, exit).unwrap();
    map.set(&[0; 4], 0, &value, 0).unwrap();
}

/// A router with one program, whose maps lead to port 3 and to a processor, through these programs.
fn installed(name: &str, port: Option<&str>, processor: Option<&str>) -> (Rig, Fid) {
    let mut rig = Rig::new();
    let fid = rig.router.install(prepared(name, &EXITS)).unwrap();
    let forwarder = Arc::clone(rig.router.forwarders().forwarder(fid).unwrap());
    lead(&forwarder, "ports", 3, port);
    lead(&forwarder, "processors", 192, processor);
    (rig, fid)
}

/// The frame with its ingress and egress ports in its source address.
fn stamped() -> Vec<u8> {
    let mut frame = udp();
    (frame[10], frame[11]) = (1, 3);
    frame
}

#[test]
fn a_packet_meets_the_program_that_its_entry_names() {
    let out = |frame| Seen::Out(3, frame);
    let lost = Seen::Dropped(DropReason::Aborted);
    let refused = Seen::Dropped(DropReason::Program);
    let longer = [&[1; 4][..], &udp()].concat();
    let table = [
        ("redirect", None, None, out(udp())),
        ("redirect", Some("stamp"), None, out(stamped())),
        ("redirect", Some("lengthen"), None, out(longer)),
        ("redirect", Some("refuse"), None, refused.clone()),
        // The kernel sends what passes, and nothing else.
        ("redirect", Some("back"), None, lost.clone()),
        ("redirect", Some("away"), None, lost.clone()),
        // A program that returns something else, or redirects differently, meets none.
        ("elsewhere", Some("refuse"), None, out(udp())),
        ("lead", None, Some("throw_away"), refused.clone()),
        ("lead", None, Some("send_back"), lost.clone()),
        ("lead", None, Some("nowhere"), lost.clone()),
        // From a processor to a port, with its program.
        ("lead", None, Some("onward"), out(udp())),
        ("lead", Some("stamp"), Some("onward"), out(stamped())),
        ("lead", Some("refuse"), Some("onward"), refused),
        // And not on to another processor.
        ("lead", None, Some("around"), lost.clone()),
    ];
    for (name, port, processor, expected) in table {
        let what = format!("{name} by {port:?} and {processor:?}");
        let (mut rig, fid) = installed(name, port, processor);
        // One without room to grow is replaced by another packet, which comes last.
        assert_eq!(rig.send(SECOND, 1, &udp()).last(), Some(&expected), "{what}");
        let stats = rig.router.forwarders().forwarder(fid).unwrap().stats();
        let counts = [stats.redirected, stats.dropped, stats.aborted];
        let wanted = [
            matches!(expected, Seen::Out(..)),
            expected == Seen::Dropped(DropReason::Program),
            expected == lost,
        ];
        assert_eq!((stats.packets, counts), (1, wanted.map(u64::from)), "{what}");
    }
}

#[test]
fn what_stays_is_routed() {
    for (name, port, processor) in
        [("hesitant", Some("refuse"), None), ("lead", None, None), ("lead", Some("refuse"), Some("let_pass"))]
    {
        let (mut rig, fid) = installed(name, port, processor);
        assert!(matches!(rig.send(SECOND, 1, &udp())[..], [Seen::Out(2, _)]), "{name}");
        assert_eq!(rig.router.forwarders().forwarder(fid).unwrap().stats().passed, 1);
    }
}

#[test]
fn they_are_in_the_worst_case() {
    let all = |name, exits: &[&str]| {
        let demand = *prepared(name, exits).demand();
        [Resource::Cycles, Resource::Slots, Resource::Time].map(|resource| demand.amount(resource))
    };
    let alone = all("lead", &[]);
    let more = |exits: &[&str]| {
        let with = all("lead", exits);
        std::array::from_fn::<u64, 3, _>(|place| with[place] - alone[place])
    };
    let (stamp, refuse, let_pass, onward) =
        (more(&["stamp"]), more(&["refuse"]), more(&["let_pass"]), more(&["onward"]));
    assert!(
        stamp[2] > refuse[2] && refuse[2] > 0 && onward[2] > let_pass[2],
        "{stamp:?} {refuse:?} {onward:?}"
    );
    // The most expensive one counts; all are stored.
    let both = more(&["refuse", "stamp"]);
    assert_eq!((both[0], both[1], both[2]), (stamp[0], stamp[1] + refuse[1], stamp[2]));
    // A packet that a processor passes meets no port's program.
    assert_eq!(more(&["stamp", "let_pass"])[2], stamp[2].max(let_pass[2]));
    assert_eq!(more(&["stamp", "onward"])[2], stamp[2] + onward[2]);
}

#[test]
fn entries_go_on_only_with_the_programs_that_they_name() {
    let (mut rig, fid) = installed("redirect", Some("refuse"), None);
    let replace = |rig: &mut Rig, exits: &[&str]| {
        let table = rig.router.forwarders();
        let before = table.forwarder(fid).unwrap();
        let program = program("redirect", exits);
        let made =
            before.prepare_instead(program, Installation::default(), &RouterPrices::default(), 1).unwrap();
        let next = table.replacing(fid, made).unwrap().unwrap();
        assert!(rig.router.replace_forwarders(&table, next).is_ok());
        rig.router.forwarders().forwarder(fid).unwrap().maps().named("ports").unwrap().len()
    };
    assert_eq!(replace(&mut rig, &EXITS), 1);
    assert_eq!(rig.send(SECOND, 1, &udp()), [Seen::Dropped(DropReason::Program)]);
    // Number 3 now names another program, or none.
    assert_eq!(replace(&mut rig, &EXITS[1..]), 0);
}

#[test]
fn they_run_on_other_threads_as_well() {
    let mut rig = measured(several("fifo", 2, 64), METER);
    let installation = Installation { threads: 3, ..Installation::default() };
    let program = program("lead", &EXITS);
    let forwarder = Forwarder::prepare(program, installation, &RouterPrices::default(), 1).unwrap();
    lead(&forwarder, "ports", 3, Some("lengthen"));
    lead(&forwarder, "processors", 0, Some("onward"));
    rig.router.install(forwarder).unwrap();
    assert_eq!(rig.send(SECOND, 1, &udp()), [Seen::Kept]);
    let seen = until(&mut rig, |_, seen| !seen.is_empty());
    assert_eq!(seen.last(), Some(&Seen::Out(3, [&[1; 4][..], &udp()].concat())));
}
