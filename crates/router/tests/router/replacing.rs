//! Replacing programs while packets flow, and their measured cost.

use crate::programs::{COUNT, prepared, program};
use crate::rig::{Rig, SECOND, Seen, config, udp};
use longwire_program::{MapKind, MapSpec, Program, assemble};
use longwire_router::{Budget, Fid, Forwarder, Installation, Meter, RouterPrices};
use longwire_units::Nanos;
use std::cell::Cell;
use std::sync::Arc;

fn map(name: &str, max_entries: u32) -> MapSpec {
    MapSpec::new(name, MapKind::Hash, 4, 8, max_entries)
}

fn with_maps(name: &str, code: &str, maps: &[MapSpec]) -> Program {
    Program::new(name, assemble(code).unwrap(), maps)
}

/// Replaces a program.
fn replace(rig: &mut Rig, fid: Fid, program: Program, installation: Installation) -> Arc<Forwarder> {
    let table = rig.router.forwarders();
    let before = table.forwarder(fid).unwrap();
    let made = before.prepare_instead(program, installation, &RouterPrices::default(), 1).unwrap();
    let next = table.replacing(fid, made).unwrap().unwrap();
    assert!(rig.router.replace_forwarders(&table, next).is_ok());
    Arc::clone(rig.router.forwarders().forwarder(fid).unwrap())
}

#[test]
fn maps_that_are_declared_alike_and_the_state_go_on() {
    let mut rig = Rig::new();
    let installation = || Installation { name: "own".into(), ..Installation::default() };
    let first = with_maps("first", COUNT, &[map("flows", 16), map("other", 16)]);
    let fid = rig.router.install(prepared(first, installation())).unwrap();
    let later = rig.router.install(prepared(program("later", "r0 = 2\n exit"), installation())).unwrap();
    (0..3).for_each(|_| assert!(matches!(rig.send(SECOND, 1, &udp())[0], Seen::Out(2, _))));
    let before = Arc::clone(rig.router.forwarders().forwarder(fid).unwrap());
    for name in ["flows", "other"] {
        before.maps().named(name).unwrap().set(&[1, 2, 3, 4], 0, &[7; 8], 0).unwrap();
    }
    // One map is kept, one has another size, one is new; the state is kept.
    let second = with_maps("second", COUNT, &[map("new", 4), map("flows", 16), map("other", 32)]);
    let after = replace(&mut rig, fid, second, installation());
    let value = |forwarder: &Forwarder, map: &str| forwarder.maps().named(map).unwrap().get(&[1, 2, 3, 4], 0);
    assert_eq!(value(&after, "flows"), Some(vec![7; 8]));
    assert_eq!([value(&after, "other"), value(&after, "new")], [None, None]);
    let kept: Vec<_> = after.maps().all().iter().map(|map| before.maps().has(map)).collect();
    assert_eq!((kept, after.has_state_of(&before)), (vec![false, true, false], true));
    rig.send(SECOND, 1, &udp());
    assert_eq!(rig.router.data(fid).unwrap()[..4], 4u32.to_le_bytes());
    // They share the map itself, not a copy.
    before.maps().named("flows").unwrap().set(&[9; 4], 0, &[8; 8], 0).unwrap();
    assert_eq!(after.maps().named("flows").unwrap().get(&[9; 4], 0), Some(vec![8; 8]));
    // Number and order are kept, counters restart.
    let table = rig.router.forwarders();
    assert_eq!(table.all().iter().map(|one| one.fid()).collect::<Vec<_>>(), [fid, later]);
    assert_eq!((after.stats().packets, before.stats().packets), (1, 3));
    assert!(table.replacing(Fid(99), prepared(program("x", "r0 = 2\n exit"), installation())).is_none());
    // State of another size is new.
    let larger = Installation { state: Some(64), ..installation() };
    let after = replace(&mut rig, fid, with_maps("third", COUNT, &[]), larger);
    assert!(!after.has_state_of(&before) && after.maps().all().is_empty());
    assert_eq!(rig.router.data(fid).unwrap(), [0; 64]);
}

#[test]
fn what_does_not_fit_replaces_nothing() {
    let mut config = config();
    config.admission.budget = Budget::line_rate(1_000_000_000);
    let mut rig = Rig::of(config);
    let small = prepared(program("small", "r0 = 2\n exit"), Installation::default());
    let fid = rig.router.install(small).unwrap();
    let table = rig.router.forwarders();
    let long = format!("{}r0 = 2\n exit", "r0 = 1\n".repeat(4000));
    let before = table.forwarder(fid).unwrap();
    let long = program("long", &long);
    let made = before.prepare_instead(long, Installation::default(), &RouterPrices::default(), 1).unwrap();
    assert!(table.replacing(fid, made).unwrap().is_err());
    assert!(Arc::ptr_eq(&table, &rig.router.forwarders()));
}

thread_local! {
    static CYCLES: Cell<u64> = const { Cell::new(0) };
}

/// A machine of 1 GHz on which 70 cycles pass between two readings of the counter, but 20 while nothing is
/// measured.
const METER: Meter = Meter {
    cycles: || {
        let looks = CYCLES.get();
        CYCLES.set(looks + 1);
        // The first 64 readings measure the overhead.
        if looks < 64 { looks * 20 } else { 64 * 20 + (looks - 64) * 70 }
    },
    per_microsecond: 1000,
    now: || Nanos(SECOND),
};

#[test]
fn programs_are_measured_now_and_then() {
    let mut rig = Rig::new();
    CYCLES.set(0);
    let fid =
        rig.router.install(prepared(program("plain", "r0 = 2\n exit"), Installation::default())).unwrap();
    rig.send(SECOND, 1, &udp());
    let measured = |rig: &Rig| rig.router.forwarders().forwarder(fid).unwrap().measured();
    assert_eq!(measured(&rig), None, "in virtual time there is nothing to measure");
    rig.router.measure_processors(METER).unwrap();
    let sent: Vec<_> = (0..2 * 256 + 1).flat_map(|_| rig.send(SECOND, 1, &udp())).collect();
    assert!(sent.iter().all(|seen| *seen == sent[0]), "measuring changes nothing");
    // The first batch, the 257th and the 513th; 70 cycles minus the overhead of 20.
    let cost = measured(&rig).unwrap();
    assert_eq!((cost.samples, cost.mean, cost.most), (3, 50_000, 50_000));
    assert!((50_000..=56_250).contains(&cost.p99), "{}", cost.p99);
    assert_eq!(rig.router.forwarders().forwarder(fid).unwrap().stats().packets, 514);
}
