//! Locks in values of maps: verification, and mutual exclusion between threads.

use crate::harness::Bench;
use longwire_program::{
    Argument, Fault, Helper, Item, MapKind, MapSpec, Maps, Object, Program, ProgramState, Rejection, Stack,
    VerifiedProgram, assemble, verify,
};

/// Values of 24 bytes with a lock at byte 4; and without one.
fn maps() -> [MapSpec; 2] {
    let map = |name: &str, lock| MapSpec { lock, ..MapSpec::new(name, MapKind::Array, 4, 24, 4) };
    [map("locked", Some(4)), map("plain", None)]
}

fn check(text: &str) -> Result<VerifiedProgram, (usize, Rejection)> {
    let code = assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(Program::new("test", code, maps())).map_err(|rejected| (rejected.slot, rejected.fault))
}

fn run(bench: &mut Bench, text: &str) -> Result<u64, Fault> {
    bench.run(&assemble(text).unwrap()).map(|ran| ran.returned).map_err(|stopped| stopped.fault)
}

/// Looks up key 1 into `r6`, then continues.
fn found(map: u32, then: &str) -> String {
    format!(
        "*(u32 *)(r10 - 4) = 1\n r1 = map[{map}] ll\n r2 = r10\n r2 += -4\n call map_lookup_elem\n if r0 != \
         0 goto found
         r0 = 9\n exit\n found: r6 = r0\n {then}"
    )
}

const LOCK: &str = "r1 = r6\n r1 += 4\n call spin_lock\n";
const UNLOCK: &str = "r1 = r6\n r1 += 4\n call spin_unlock\n";
const ADDS: &str = "r2 = *(u64 *)(r6 + 8)\n r2 += 1\n *(u64 *)(r6 + 8) = r2\n";

#[test]
fn locked_values_are_changed_and_priced() {
    let text = found(0, &format!("{LOCK} {ADDS} {UNLOCK} r0 = 2\n exit"));
    let verified = check(&text).unwrap();
    assert_eq!((verified.most()[Item::Atomic], verified.most()[Item::Instruction]), (2, 18));
    let mut bench = Bench::new(&[7; 64], Maps::new(&maps(), 1, 0).unwrap());
    assert_eq!([run(&mut bench, &text), run(&mut bench, &text)], [Ok(2), Ok(2)]);
    assert_eq!(bench.maps.at(0).unwrap().get(&[1, 0, 0, 0], 0).unwrap()[8], 2);
    // A branch and a loop within; released on all paths.
    for within in [
        "r2 = *(u64 *)(r6 + 8)\n if r2 > 5 goto more\n *(u64 *)(r6 + 8) = 0\n more: r2 = 0\n",
        "r7 = 0\n again: r7 += 1\n if r7 < 5 goto again\n",
    ] {
        check(&found(0, &format!("{LOCK} {within} {UNLOCK} r0 = 2\n exit"))).unwrap();
    }
}

#[test]
fn attacks_are_refused() {
    let wanted = |helper, found| Rejection::Argument { helper, number: 1, wanted: Argument::Lock, found };
    let value = "an address of a map's value";
    let others = "*(u32 *)(r10 - 4) = 2\n r1 = map[0] ll\n r2 = r10\n r2 += -4\n call map_lookup_elem\n \
        if r0 == 0 goto out\n r7 = r0\n";
    let load = "r7 = *(u64 *)(r6 + 8)\n";
    let update = "r1 = map[0] ll\n r2 = r10\n r2 += -4\n r3 = r6\n r4 = 0\n call map_update_elem\n";
    let bytes = || Rejection::LockBytes { map: "locked".into() };
    for (text, slot, fault) in [
        // Not released, released twice, taken twice, another's.
        (found(0, &format!("{LOCK} r0 = 2\n exit")), 14, Rejection::Locked),
        (found(0, &format!("{LOCK} {UNLOCK} {UNLOCK} r0 = 2\n exit")), 18, Rejection::NotLocked),
        (found(0, &format!("{LOCK} {LOCK} {UNLOCK} r0 = 2\n exit")), 15, Rejection::Locked),
        (
            found(
                0,
                &format!(
                    "{others} {LOCK} r1 = r7\n r1 += 4\n call spin_unlock\n {UNLOCK} out: r0 = 2\n exit"
                ),
            ),
            23,
            Rejection::NotLocked,
        ),
        // On one path only.
        (
            found(0, &format!("{load} if r7 == 0 goto over\n {LOCK} over: r0 = 2\n r0 = 2\n exit")),
            17,
            Rejection::Locked,
        ),
        (
            found(0, &format!("{load} {LOCK} if r7 == 0 goto over\n {UNLOCK} over: r0 = 2\n exit")),
            19,
            Rejection::Locked,
        ),
        // No calls while it is held.
        (found(0, &format!("{LOCK} call get_prandom_u32\n {UNLOCK} r0 = 2\n exit")), 13, Rejection::Locked),
        (
            found(0, &format!("{LOCK} call f\n {UNLOCK} r0 = 2\n exit\n f: r0 = 1\n exit")),
            13,
            Rejection::Locked,
        ),
        // Not the lock, not a lock, not compared with 0.
        (found(0, "r1 = r6\n call spin_lock\n r0 = 2\n exit"), 11, wanted(Helper::SpinLock, value)),
        (found(1, &format!("{LOCK} {UNLOCK} r0 = 2\n exit")), 12, wanted(Helper::SpinLock, value)),
        (
            "r1 = r10\n call spin_lock\n r0 = 2\n exit".into(),
            1,
            wanted(Helper::SpinLock, "an address in the stack"),
        ),
        (
            found(0, "r7 = *(u64 *)(r6 + 8)\n r7 &= 7\n r1 = r6\n r1 += r7\n call spin_lock\n r0 = 2\n exit"),
            14,
            wanted(Helper::SpinLock, value),
        ),
        // Its bytes are inaccessible, even for helpers.
        (found(0, "r0 = *(u32 *)(r6 + 4)\n exit"), 10, bytes()),
        (found(0, "*(u8 *)(r6 + 7) = 1\n r0 = 2\n exit"), 10, bytes()),
        (found(0, "r1 = 1\n lock *(u64 *)(r6 + 0) += r1\n r0 = 2\n exit"), 11, bytes()),
        (found(0, "r1 = r6\n r2 = 8\n r3 = 0\n call lw_hash\n r0 = 2\n exit"), 13, bytes()),
        (found(0, &format!("{update} r0 = 2\n exit")), 16, bytes()),
    ] {
        match check(&text) {
            Ok(_) => panic!("let in:\n{text}"),
            Err(found) => assert_eq!(found, (slot, fault), "{text}"),
        }
    }
}

/// The interpreter refuses accesses, too.
#[test]
fn the_interpreter_stops_what_touches_a_lock() {
    let mut bench = Bench::new(&[7; 64], Maps::new(&maps(), 1, 0).unwrap());
    for text in ["r0 = *(u32 *)(r6 + 4)\n exit", "*(u8 *)(r6 + 7) = 1\n r0 = 2\n exit"] {
        assert!(matches!(run(&mut bench, &found(0, text)), Err(Fault::OutOfBounds { .. })));
    }
    assert_eq!(run(&mut bench, &found(0, &format!("{UNLOCK} r0 = 2\n exit"))), Err(Fault::Lock));
    assert_eq!(
        run(&mut bench, &found(0, "r1 = r6\n call spin_lock\n r0 = 2\n exit")),
        Err(Fault::Argument(1))
    );
}

/// A held lock is waited for, up to a limit.
#[test]
fn a_lock_that_is_never_given_back_stops_the_program() {
    let mut bench = Bench::new(&[7; 64], Maps::new(&maps(), 1, 0).unwrap());
    assert_eq!(run(&mut bench, &found(0, &format!("{LOCK} r0 = 2\n exit"))), Ok(2));
    assert_eq!(run(&mut bench, &found(0, &format!("{LOCK} r0 = 2\n exit"))), Err(Fault::Lock));
    // Setting the value from outside fails as well.
    let map = bench.maps.at(0).unwrap();
    assert_eq!(map.set(&[1, 0, 0, 0], 0, &[5; 24], 0), Err(longwire_program::map::Refusal::Busy));
    let mut value = [5; 24];
    value[4..8].fill(0);
    assert_eq!(map.set(&[2, 0, 0, 0], 0, &[5; 24], 0), Ok(()));
    assert_eq!(map.get(&[2, 0, 0, 0], 0).unwrap(), value);
}

/// Read-modify-write sums from several threads: none is lost.
#[test]
fn threads_have_a_lock_one_after_the_other() {
    const PACKETS: u64 = 20_000;
    let adds = "r2 = *(u64 *)(r6 + 8)\n r3 = *(u64 *)(r6 + 16)\n r2 += 1\n r3 += 2\n *(u64 *)(r6 + 16) = \
        r3\n *(u64 *)(r6 + 8) = r2\n";
    let text = found(0, &format!("{LOCK} {adds} {UNLOCK} r0 = 2\n exit"));
    let verified = check(&text).unwrap();
    let maps = Maps::new(&maps(), 3, 0).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (maps, code) = (&maps, &verified.program().code);
            scope.spawn(move || {
                let (mut stack, state) = (Stack::trusting(), ProgramState::new(0));
                for _ in 0..PACKETS {
                    let mut frame = [7; 64];
                    let mut environment = Nothing;
                    let mut machine = longwire_program::Machine {
                        context: longwire_program::Context { worker, ..Default::default() },
                        packet: longwire_program::Packet::new(&mut frame, 0..64),
                        stack: &mut stack,
                        state: &state,
                        maps,
                        environment: &mut environment,
                        effects: Default::default(),
                    };
                    longwire_program::interpret(code, &mut machine, 1000).unwrap();
                }
            });
        }
    });
    let value = maps.at(0).unwrap().get(&[1, 0, 0, 0], 0).unwrap();
    let number = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
    assert_eq!((number(8), number(16)), (3 * PACKETS, 6 * PACKETS));
}

struct Nothing;

impl longwire_program::Environment for Nothing {
    fn random(&mut self) -> u32 {
        0
    }
}

#[test]
fn objects_say_where_locks_are() {
    let object = Object::parse(include_bytes!("xdp/locked.o")).unwrap();
    let lock = |name: &str| object.maps().iter().find(|spec| *spec.name == *name).unwrap().lock;
    assert_eq!([lock("flows"), lock("totals"), lock(".rodata.cst16")], [Some(4), Some(4), None]);
    verify(object.program("account").unwrap()).unwrap();
    // Per-CPU values have no locks, and a lock must be within the value.
    let [locked, _] = maps();
    for bad in [
        MapSpec { kind: MapKind::PerCpuArray, ..locked.clone() },
        MapSpec { kind: MapKind::LruHash, ..locked.clone() },
        MapSpec { lock: Some(21), ..locked.clone() },
        MapSpec { lock: Some(24), ..locked },
    ] {
        assert!(bad.check().unwrap_err().to_string().contains("struct bpf_spin_lock"));
    }
}
