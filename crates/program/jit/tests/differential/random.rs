//! Random programs, compiled and interpreted: their results are equal, and so are the places and reasons of
//! stops.

use crate::bench::Bench;
use crate::generate::{
    Kind, any_instruction, beginning, looped, maps, packet, piece, program, repeated, some_region,
};
use crate::kernel;
use longwire_jit::{compile, compile_unverified};
use longwire_program::{Code, Fault, Instruction, Item, Program, Stopped, verify};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// With right hints, and with random ones.
    #[test]
    fn unverified_programs_do_what_the_interpreter_does(
        pieces in prop::collection::vec(piece(Kind::Wild), 1..40),
        packet in packet(),
        others in prop::collection::vec(some_region(), 1..8),
    ) {
        let (program, hints) = program(pieces, Kind::Wild);
        let bench = Bench::new(program, &packet);
        let wanted = bench.interpreted();
        prop_assert_eq!(bench.unverified(&hints), wanted);
        let any: Vec<_> = (0..hints.len()).map(|index| others[index % others.len()]).collect();
        prop_assert_eq!(bench.unverified(&any), bench.interpreted());
    }

    #[test]
    fn verified_programs_do_what_the_interpreter_does(
        pieces in prop::collection::vec(piece(Kind::Tame), 1..40),
        packet in packet(),
    ) {
        let (program, _) = program(pieces, Kind::Tame);
        let bench = Bench::new(program, &packet);
        if let Some(got) = bench.verified() {
            let wanted = bench.interpreted();
            prop_assert!(wanted.result.is_ok());
            prop_assert_eq!(got, wanted);
        }
    }

    /// Random instructions: the compiler accepts or refuses them; accepted ones behave the same unless
    /// unwritten registers are read.
    #[test]
    fn any_instructions_do_what_the_interpreter_does(
        pieces in prop::collection::vec(any_instruction(), 1..40),
        packet in packet(),
    ) {
        let mut all = beginning(0, Kind::Wild);
        all.extend(pieces);
        all.extend([Instruction::Exit; 4]);
        let Ok(code) = Code::new(all) else { return Ok(()) };
        let bench = Bench::new(Program::new("any", code, maps()), &packet);
        let compiled = compile_unverified(&bench.program, &[], bench.maps());
        if compiled.is_ok() {
            let wanted = bench.interpreted();
            if !matches!(wanted.result, Err(Stopped { fault: Fault::Register(_), .. })) {
                prop_assert_eq!(bench.unverified(&[]), wanted);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// In loops, too, within the stated number of instructions.
    #[test]
    fn loops_do_what_the_interpreter_does(
        pieces in prop::collection::vec(piece(Kind::Tame), 1..12),
        rounds in (1..9u8, 1..5u8),
        packet in packet(),
    ) {
        let program = looped(pieces, Kind::Tame, rounds);
        let bench = Bench::new(program.clone(), &packet);
        let Some(got) = bench.verified() else { return Ok(()) };
        let wanted = bench.interpreted();
        prop_assert!(wanted.result.is_ok());
        prop_assert_eq!(&got, &wanted);
        let most = verify(program).unwrap().most()[Item::Instruction];
        prop_assert_eq!(bench.interpreted_for(u64::from(most)), wanted);
    }

    /// And in callbacks that a helper calls repeatedly.
    #[test]
    fn callbacks_do_what_the_interpreter_does(
        pieces in prop::collection::vec(piece(Kind::Tame), 1..20),
        rounds in 0..9u8,
        packet in packet(),
    ) {
        let program = repeated(pieces, Kind::Tame, rounds);
        let bench = Bench::new(program.clone(), &packet);
        prop_assert_eq!(bench.unverified(&[]), bench.interpreted());
        let Some(got) = bench.verified() else { return Ok(()) };
        let wanted = bench.interpreted();
        prop_assert!(wanted.result.is_ok());
        prop_assert_eq!(&got, &wanted);
        let most = verify(program).unwrap().most()[Item::Instruction];
        prop_assert_eq!(bench.interpreted_for(u64::from(most)), wanted);
    }
}

/// The kernel's verifier accepts the same loops, and its compiler gives the same results.
#[test]
fn loops_do_what_the_kernel_does() {
    let strategy = (prop::collection::vec(piece(Kind::Kernel), 1..8), (1..9u8, 1..5u8), packet());
    compare_with_the_kernel(
        150,
        50,
        strategy.prop_map(|(pieces, rounds, packet)| (looped(pieces, Kind::Kernel, rounds), packet)),
    );
}

#[test]
fn callbacks_do_what_the_kernel_does() {
    let strategy = (prop::collection::vec(piece(Kind::Kernel), 1..12), 0..9u8, packet());
    compare_with_the_kernel(
        150,
        50,
        strategy.prop_map(|(pieces, rounds, packet)| (repeated(pieces, Kind::Kernel, rounds), packet)),
    );
}

/// Runs this many verified programs in the kernel, too; at least `least` must be accepted.
fn compare_with_the_kernel(cases: usize, least: usize, programs: impl Strategy<Value = (Program, Vec<u8>)>) {
    if let Some(reason) = kernel::refusal() {
        println!("skipped: {reason}");
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut compared, mut refused) = (0, 0);
    for _ in 0..cases {
        let (program, packet) = programs.new_tree(&mut runner).unwrap().current();
        let bench = Bench::new(program, &packet);
        let maps = bench.maps();
        let Ok(in_kernel) = kernel::InKernel::new(&bench.program, &maps) else {
            refused += 1;
            continue;
        };
        let Ok(verified) = verify(bench.program.clone()) else {
            refused += 1;
            continue;
        };
        let left = bench.run(&compile(&verified, Arc::clone(&maps)).unwrap(), &maps);
        let (returned, after) = in_kernel.run(&packet).unwrap();
        assert_eq!(left.result.unwrap() as u32, returned, "{}", bench.program);
        assert_eq!(left.buffer[left.packet.clone()], after, "{}", bench.program);
        assert_eq!(left.maps[0], in_kernel.array(0, &maps.all()[0]).unwrap(), "{}", bench.program);
        compared += 1;
    }
    println!("the same for {compared} programs, {refused} refused by the kernel or here");
    assert!(compared >= least, "{compared} compared, {refused} refused");
}

/// The second property is meaningful only for accepted programs.
#[test]
fn most_tame_programs_are_verified() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop::collection::vec(piece(Kind::Tame), 1..40);
    let mut let_in = 0;
    for _ in 0..200 {
        let pieces = strategy.new_tree(&mut runner).unwrap().current();
        match verify(program(pieces, Kind::Tame).0) {
            Ok(_) => let_in += 1,
            Err(rejected) => println!("{rejected}"),
        }
    }
    assert!(let_in >= 150, "{let_in} of 200");
    let mut in_loops = 0;
    let strategy = prop::collection::vec(piece(Kind::Tame), 1..12);
    for _ in 0..50 {
        let pieces = strategy.new_tree(&mut runner).unwrap().current();
        match verify(looped(pieces, Kind::Tame, (5, 3))) {
            Ok(_) => in_loops += 1,
            Err(rejected) => println!("{rejected}"),
        }
    }
    assert!(in_loops >= 35, "{in_loops} of 50");
    let mut called = 0;
    for _ in 0..50 {
        let pieces = strategy.new_tree(&mut runner).unwrap().current();
        match verify(repeated(pieces, Kind::Tame, 5)) {
            Ok(_) => called += 1,
            Err(rejected) => println!("{rejected}"),
        }
    }
    assert!(called >= 35, "{called} of 50");
}

/// And the first one for programs that get far.
#[test]
fn programs_run_to_their_end_or_are_stopped() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop::collection::vec(piece(Kind::Wild), 1..40);
    let mut ended = 0;
    for _ in 0..200 {
        let pieces = strategy.new_tree(&mut runner).unwrap().current();
        let left = Bench::new(program(pieces, Kind::Wild).0, &[5; 64]).interpreted();
        ended += usize::from(left.result.is_ok());
        if let Err(stopped) = left.result {
            println!("{stopped}");
        }
    }
    assert!((40..=180).contains(&ended), "{ended} of 200");
}

/// Compiled by the kernel: return value, packet and array are equal.
#[test]
fn programs_do_what_the_kernel_does() {
    if let Some(reason) = kernel::refusal() {
        println!("skipped: {reason}");
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::collection::vec(piece(Kind::Kernel), 1..40), packet());
    let (mut compared, mut refused) = (0, 0);
    for _ in 0..400 {
        let (pieces, packet) = strategy.new_tree(&mut runner).unwrap().current();
        let bench = Bench::new(program(pieces, Kind::Kernel).0, &packet);
        let maps = bench.maps();
        assert!(kernel::knows(&bench.program));
        let Ok(in_kernel) = kernel::InKernel::new(&bench.program, &maps) else {
            refused += 1;
            continue;
        };
        let compiled = match verify(bench.program.clone()) {
            Ok(verified) => compile(&verified, Arc::clone(&maps)).unwrap(),
            Err(_) => compile_unverified(&bench.program, &[], Arc::clone(&maps)).unwrap(),
        };
        let left = bench.run(&compiled, &maps);
        let (returned, after) = in_kernel.run(&packet).unwrap();
        assert_eq!(left.result.unwrap() as u32, returned, "{}", bench.program);
        assert_eq!(left.buffer[left.packet.clone()], after, "{}", bench.program);
        assert_eq!(left.maps[0], in_kernel.array(0, &maps.all()[0]).unwrap(), "{}", bench.program);
        compared += 1;
    }
    println!("the same for {compared} programs, {refused} refused by the kernel");
    assert!(compared >= 100, "{compared} compared, {refused} refused");
}
