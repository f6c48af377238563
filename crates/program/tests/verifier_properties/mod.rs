//! Accepted programs run without faults on any packet, and never exceed their cost.

mod changed;
mod places;
mod pool;

use crate::harness::{Bench, ROOM};
use crate::verifier_cost::at_slot;
use longwire_program::{
    Arithmetic, ByteOrder, Code, Condition, Counts, Fault, Instruction, Item, MapKind, MapSpec, Maps, Object,
    Operand, Prices, Program, ProgramState, Register, Size, VerifiedProgram, Width, assemble, verify,
};
use pool::pool;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use std::cell::Cell;

/// A roughly plausible packet.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let header = select(vec![&[8u8, 0, 0x45][..], &[8, 0, 0x4f], &[0x81, 0, 0], &[0x86, 0xdd, 0x60], &[]]);
    let protocol = select(vec![1, 4, 6, 17, 0]);
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..160),
        prop::collection::vec(select(vec![0, 1, 4, 8, 0x7f, 0x80, 0xff]), 0..160),
    ];
    (bytes, header, protocol).prop_map(|(mut bytes, header, protocol)| {
        if let Some(place) = bytes.get_mut(12..12 + header.len()) {
            place.copy_from_slice(header);
        }
        if let Some(place) = bytes.get_mut(23) {
            *place = protocol;
        }
        bytes
    })
}

fn bench(verified: &VerifiedProgram, packet: &[u8]) -> Bench {
    let mut bench = Bench::new(packet, Maps::new(&verified.program().maps, 2, 1).unwrap());
    bench.state = ProgramState::new(verified.state_size());
    bench.budget = 1 << 20;
    bench
}

/// Runs a verified program on a sequence of packets.
fn run(verified: &VerifiedProgram, packets: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let code = &verified.program().code;
    let mut bench = bench(verified, &[]);
    for packet in packets {
        bench.buffer = [&[0xee; ROOM][..], packet, &[0xee; ROOM]].concat();
        let ran = bench.run(code);
        let listing = || format!("{}\n{packet:?}", verified.program());
        let ran = ran.map_err(|stopped| TestCaseError::fail(format!("{stopped}\n{}", listing())))?;
        prop_assert!(ran.instructions <= u64::from(verified.most()[Item::Instruction]), "{}", listing());
    }
    Ok(())
}

/// The instructions of a program for a packet: it is stopped a little later every time.
fn path(verified: &VerifiedProgram, packet: &[u8]) -> Vec<usize> {
    let code = &verified.program().code;
    let stop = |budget| {
        let mut bench = bench(verified, packet);
        bench.budget = budget;
        match bench.run(code) {
            Err(stopped) if stopped.fault == Fault::Budget => at_slot(code, stopped.slot),
            _ => None,
        }
    };
    (0..).map_while(stop).collect()
}

/// Checks the facts of instructions on a packet's path, and its cost.
fn check_path(verified: &VerifiedProgram, packet: &[u8]) -> Result<(), TestCaseError> {
    let path = path(verified, packet);
    let mut counts = Counts::NONE;
    for (step, &index) in path.iter().enumerate() {
        let fact = &verified.facts()[index];
        prop_assert!(fact.reached);
        if let Instruction::Branch { .. } = verified.program().code.instructions()[index]
            && let Some(&next) = path.get(step + 1)
        {
            let jumps = verified.program().code.target(index) == Some(next);
            let falls = next == index + 1;
            prop_assert!(jumps && fact.jumps || falls && fact.falls);
        }
        counts = counts.plus(verified.cost(index).unwrap());
    }
    prop_assert_eq!(counts.most(verified.most()), *verified.most());
    for prices in [Prices::VRP_CYCLES, Prices::ASSUMED_PICOSECONDS] {
        let worst = verified.worst_path(&prices);
        prop_assert!(prices.total(&counts) <= worst.price);
        prop_assert_eq!(prices.total(&worst.counts), worst.price);
    }
    Ok(())
}

/// Number of accepted cases of a test.
#[derive(Default)]
struct Tally {
    tried: Cell<u32>,
    accepted: Cell<u32>,
}

impl Tally {
    fn verify(&self, program: Program) -> Option<VerifiedProgram> {
        self.tried.set(self.tried.get() + 1);
        let verified = verify(program).ok()?;
        self.accepted.set(self.accepted.get() + 1);
        Some(verified)
    }

    /// At least one of this many was accepted, so that a test without cases fails.
    fn at_least_one_of(&self, times: u32) {
        let (tried, accepted) = (self.tried.get(), self.accepted.get());
        assert!(accepted * times >= tried && tried > CASES / 2, "{accepted} of {tried}");
    }
}

const CASES: u32 = 8000;

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig { cases: CASES, source_file: Some(file!()), ..ProptestConfig::default() })
}

/// The original programs are accepted, and stay within their cost on a packet's path.
#[test]
fn whole_programs_run() {
    let mut packets = vec![vec![], vec![0; 14], vec![0xff; 200]];
    for protocol in [1, 4, 6, 17] {
        let mut packet = vec![0; 120];
        packet[12..15].copy_from_slice(&[8, 0, 0x45]);
        packet[22..24].copy_from_slice(&[64, protocol]);
        packet[46..48].copy_from_slice(&[0x80, 2]);
        packets.push(packet);
    }
    for program in pool() {
        let verified = verify(program).unwrap();
        run(&verified, &packets).unwrap();
        for packet in &packets {
            check_path(&verified, packet).unwrap();
        }
    }
}
