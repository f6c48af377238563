//! Programs that the verifier accepts or refuses, and why: one rule of the address model or of a helper's
//! signature at a time.

mod helper_calls;
mod loops;
mod memory;
mod packets;
mod paths;

use longwire_program::{
    Argument, Helper, Item, MapKind, MapSpec, Prices, Program, Register, Rejected, Rejection,
    VerifiedProgram, assemble, verify,
};

fn map(name: &str, kind: MapKind, key_size: u32, value_size: u32) -> MapSpec {
    MapSpec { read_only: name == "rodata", ..MapSpec::new(name, kind, key_size, value_size, 4) }
}

fn check(text: &str) -> Result<VerifiedProgram, Box<Rejected>> {
    let maps = [
        map("table", MapKind::Array, 4, 24),
        map("flows", MapKind::Hash, 8, 16),
        map("ports", MapKind::DevMap, 4, 4),
        map("rodata", MapKind::Array, 4, 32),
        map("each", MapKind::PerCpuArray, 4, 8),
    ];
    verify(Program::new("test", assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}")), maps))
}

/// Each is refused at this instruction for exactly this reason.
fn refused(cases: impl IntoIterator<Item = (&'static str, usize, Rejection)>) {
    for (text, slot, fault) in cases {
        let Err(rejected) = check(text) else { panic!("let in:\n{text}") };
        assert_eq!((rejected.slot, &rejected.fault), (slot, &fault), "{rejected}\n{text}");
        let message = rejected.to_string();
        assert!(message.starts_with(&format!("program test, instruction {slot} (")), "{message}");
    }
}

fn let_in(cases: impl IntoIterator<Item = &'static str>) {
    for text in cases {
        if let Err(rejected) = check(text) {
            panic!("{rejected}\n{text}");
        }
    }
}

const R0: Register = Register::R0;
const R1: Register = Register::R1;
const R2: Register = Register::R2;
const R3: Register = Register::R3;
const R6: Register = Register::R6;

fn not_address(register: Register, what: &'static str) -> Rejection {
    Rejection::NotAddress { register, what }
}

fn unchecked(register: Register, end: i64, proven: i64) -> Rejection {
    Rejection::PacketUnchecked { register, end, proven: Some(proven) }
}

fn bounds(what: &str, first: i64, last: i64, low: i64, high: i64) -> Rejection {
    Rejection::Bounds { what: what.into(), first, last, low, high }
}

#[test]
fn programs_end_and_all_of_them_is_reached() {
    refused([
        ("r0 = 0\n goto out\n r0 = 1\n out: exit", 2, Rejection::Unreachable),
        ("r0 = 0", 0, Rejection::RunsOff),
        ("call f\n if r0 == 0 goto +0\n f: r0 = 0\n exit", 1, Rejection::RunsOff),
        ("call f\n r0 = 0\n f: r0 = 1\n exit", 1, Rejection::RunsOff),
        ("call f\n if r0 == 0 goto in\n exit\n f: r0 = 1\n in: exit", 1, Rejection::Leaves { to: 4 }),
        ("call f\n exit\n f: call f\n exit", 2, Rejection::Recursion),
        ("call f\n exit\n f: call g\n exit\n g: call f\n exit", 4, Rejection::Recursion),
        ("r0 = 0\n exit\n f: call f\n exit", 2, Rejection::Unreachable),
    ]);
    // Backward, but no loop: compilers place a program's end like this.
    let_in(["r0 = 0\n goto on\n out: exit\n on: r0 = 1\n goto out"]);
}

#[test]
fn calls_are_eight_frames_deep_at_most() {
    let nested = |depth: usize| {
        let functions = (1..depth).map(|f| format!("call f{f}\n exit\n f{f}: r0 = 0\n"));
        format!("r0 = 0\n{} exit", functions.collect::<String>())
    };
    assert_eq!(check(&nested(8)).unwrap().frames(), 8);
    assert_eq!(check(&nested(9)).unwrap_err().fault, Rejection::TooDeep);
}

#[test]
fn registers_are_written_before_they_are_read() {
    let unwritten = |register| Rejection::Unwritten { register };
    refused([
        ("exit", 0, unwritten(R0)),
        ("r0 = r2\n exit", 0, unwritten(R2)),
        ("r0 += 1\n exit", 0, unwritten(R0)),
        ("r0 = *(u8 *)(r2 + 0)\n exit", 0, unwritten(R2)),
        ("*(u64 *)(r10 - 8) = r2\n r0 = 0\n exit", 0, unwritten(R2)),
        ("r0 = 0\n if r0 == r3 goto +0\n exit", 1, unwritten(R3)),
        // On one path only.
        ("call get_prandom_u32\n if r0 == 0 goto +1\n r6 = 0\n r0 = r6\n exit", 3, unwritten(R6)),
        // Calls leave r1 to r5 undefined, including the context in r1.
        ("call ktime_get_ns\n r0 = r1\n exit", 1, unwritten(R1)),
        ("r2 = 0\n call f\n r0 = r2\n exit\n f: r0 = 0\n exit", 2, unwritten(R2)),
        ("r6 = 0\n call f\n exit\n f: r0 = r6\n exit", 3, unwritten(R6)),
        ("r1 = 0\n call redirect\n exit", 1, unwritten(R2)),
        ("call f\n exit\n f: exit", 1, unwritten(R0)),
    ]);
    let_in([
        "r6 = 5\n call f\n r0 = r6\n exit\n f: r6 = 1\n r0 = 1\n exit",
        // A function without a return value.
        "call f\n r0 = 0\n exit\n f: exit",
        "r0 = 7\n w0 ^= w0\n exit",
    ]);
}

#[test]
fn numbers_are_no_addresses() {
    let computed = |register, what| Rejection::PointerArithmetic { register, what };
    refused([
        ("r0 = 5\n r0 = *(u8 *)(r0 + 0)\n exit", 1, not_address(R0, "a number")),
        ("r0 = 0\n r0 = *(u8 *)(r0 + 0)\n exit", 1, not_address(R0, "0")),
        // The address model's numbers can't be forged.
        ("r0 = 0x300000ff8 ll\n *(u64 *)(r0 + 0) = 1\n exit", 2, not_address(R0, "a number")),
        ("w1 = w1\n r0 = *(u32 *)(r1 + 12)\n exit", 1, not_address(R1, "a number")),
        ("r1 *= 2\n r0 = 0\n exit", 0, computed(R1, "the context")),
        ("r1 = -r1\n r0 = 0\n exit", 0, computed(R1, "the context")),
        ("r2 = r10\n r2 &= -8\n r0 = 0\n exit", 1, computed(R2, "an address in the stack")),
        ("r2 = 5\n r2 -= r1\n r0 = 0\n exit", 1, computed(R1, "the context")),
        ("r2 = r10\n r2 += r1\n r0 = 0\n exit", 1, computed(R2, "an address in the stack")),
        ("r2 = *(u32 *)(r1 + 4)\n r2 += 1\n r0 = 0\n exit", 1, computed(R2, "the end of the packet")),
        ("r2 = map[0] ll\n r2 += 1\n r0 = 0\n exit", 2, computed(R2, "a map")),
        ("r0 = map[0] ll\n r0 = *(u8 *)(r0 + 0)\n exit", 2, not_address(R0, "a map")),
        ("r1 += 0x7fffffff\n r0 = 0\n exit", 0, Rejection::PointerRange { register: R1 }),
        ("r0 = r1\n exit", 1, Rejection::Returns { what: "the context" }),
        ("r0 = r10\n exit", 1, Rejection::Returns { what: "an address in the stack" }),
        // Different values on different paths.
        (
            "*(u64 *)(r10 - 8) = 0\n r6 = r10\n call get_prandom_u32\n if r0 == 0 goto +1\n r6 = 7\n r0 = \
             *(u8 *)(r6 - 1)\n exit",
            5,
            not_address(R6, "a number"),
        ),
    ]);
    let_in([
        // Differences of addresses, and stored addresses, are numbers.
        "r2 = *(u32 *)(r1 + 4)\n r0 = *(u32 *)(r1 + 0)\n r2 -= r0\n r0 = r2\n exit",
        "r2 = *(u32 *)(r1 + 4)\n r0 = *(u32 *)(r1 + 0)\n w2 -= w0\n r0 = r2\n exit",
        "r2 = map[0][0]+8 ll\n *(u64 *)(r2 + 0) = r1\n r0 = *(u64 *)(r2 + 0)\n exit",
        "r0 = 0\n if r1 == 0 goto +0\n if r1 > r10 goto +0\n exit",
    ]);
}

#[test]
fn a_refusal_names_place_fault_and_fix() {
    let object = longwire_program::Object::parse(include_bytes!("../xdp/careless.o")).unwrap();
    let messages: Vec<String> = object
        .programs()
        .map(|(name, _)| verify(object.program(name).unwrap()).unwrap_err().to_string())
        .collect();
    assert_eq!(
        messages,
        [
            "program unchecked, instruction 1 (r0 = *(u8 *)(r1 + 9)), careless.c:7: the packet may end \
             before byte 10 beyond r1, of which 0 are known to be there; compare with data_end first",
            "program not_compared, instruction 7 (r1 = *(u64 *)(r0 + 0)), careless.c:23: r0 may be 0, as map \
             counters may not have the key; compare it with 0 first",
            "program forever, instruction 5 (if w0 != 5 goto -6), careless.c:35: it leads back to \
             instruction 0 with nothing changed that must end the loop; count up to a constant in a variable \
             of its own, as in for (i = 0; i < 16; i++)",
            "program beyond, instruction 34 (r0 = *(u8 *)(r6 + 0)), careless.c:45: it may touch bytes -16 to \
             15 of the stack frame, which has -512 to -1; compare or mask the index first",
            "program moved, instruction 9 (r6 = *(u8 *)(r7 + 9)), careless.c:55: r7 is an address in the \
             packet from before it was moved; load data and data_end again and check anew",
        ]
    );
}
