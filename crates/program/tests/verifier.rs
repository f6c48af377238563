//! What the verifier lets in and what it refuses, and why: one rule of the address model or of a helper's signature at a time.

use longwire_program::{
    Argument, Helper, Item, MapKind, MapSpec, Prices, Program, Register, Rejected, Rejection, Verified,
    assemble, verify,
};

fn map(name: &str, kind: MapKind, key_size: u32, value_size: u32) -> MapSpec {
    MapSpec { read_only: name == "rodata", ..MapSpec::new(name, kind, key_size, value_size, 4) }
}

fn check(text: &str) -> Result<Verified, Box<Rejected>> {
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
    // Backward, but no loop: as compilers place the end of a program.
    let_in(["r0 = 0\n goto on\n out: exit\n on: r0 = 1\n goto out"]);
}

/// What was counted in a loop belongs to what was compared in the same round, however many rounds there are.
#[test]
fn rounds_are_distinguished_where_a_loop_is_left() {
    let last_byte = |offset: i16| {
        format!(
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = 0\n r0 = 2\n again: r4 = r1\n r4 += r3\n r4 += 14
             if r4 > r2 goto out\n if r4 == r2 goto read\n r3 += 1\n if r3 < 1500 goto again\n goto out
             read: r4 = r1\n r4 += r3\n r0 = *(u8 *)(r4 + {offset})\n out: exit"
        )
    };
    assert!(check(&last_byte(13)).is_ok());
    let fault = check(&last_byte(14)).unwrap_err().fault;
    assert!(matches!(fault, Rejection::PacketUnchecked { .. }), "{fault}");
    // Beyond, they are joined, and the program ends in time all the same.
    let many = last_byte(13).replace("1500", "3000");
    assert!(matches!(check(&many).unwrap_err().fault, Rejection::PacketUnchecked { .. }));
}

/// Where there are too many states, those are joined that differ in numbers, not in what registers are.
#[test]
fn states_of_one_kind_are_joined_first() {
    // 100 numbers where r6 is an address, and as many where it is none, one after the other.
    let text = "r6 = r10\n r7 = r1\n call get_prandom_u32\n r0 &= 1\n if r0 != 0 goto +1\n r6 = 0\n r8 = 0
         again: call get_prandom_u32\n if r0 == 7 goto left\n r8 += 3\n if r8 < 4000 goto again
         left: if r6 == 0 goto out\n *(u64 *)(r6 - 8) = r8\n out: r0 = 2\n exit";
    check(text).unwrap();
}

/// What the loops of a program are said to cost at most, in instructions.
fn instructions(text: &str) -> u32 {
    check(text).unwrap_or_else(|rejected| panic!("{rejected}\n{text}")).most()[Item::Instruction]
}

#[test]
fn loops_that_count_to_a_constant_are_followed() {
    for (text, most) in [
        ("r0 = 0\n again: r0 += 1\n if r0 < 9 goto again\n exit", 1 + 9 * 2 + 1),
        // The test at the beginning: the last time, it is all that happens.
        ("r0 = 0\n top: if r0 == 4 goto out\n r0 += 1\n goto top\n out: exit", 1 + 4 * 3 + 1 + 1),
        // Down, by another step, by 32 bits, by a product, and through the stack.
        ("r0 = 10\n again: r0 -= 3\n if r0 s> 0 goto again\n exit", 1 + 4 * 2 + 1),
        ("w0 = -4\n again: w0 += 2\n if w0 != 0 goto again\n exit", 1 + 2 * 2 + 1),
        ("r0 = 1\n again: r0 *= 2\n if r0 < 100 goto again\n exit", 1 + 7 * 2 + 1),
        (
            "*(u64 *)(r10 - 8) = 0\n again: r1 = *(u64 *)(r10 - 8)\n r1 += 1\n *(u64 *)(r10 - 8) = r1
             if r1 < 5 goto again\n r0 = 0\n exit",
            1 + 5 * 4 + 2,
        ),
        // A number that only the packet tells ends it earlier; the constant is what counts.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n again: if r0 >= r2 goto out\n r0 += 1\n if r0 < 8 goto again\n out: exit",
            2 + 8 * 3 + 1,
        ),
        // A counter that was bounded by a comparison begins anywhere.
        (
            "r0 = *(u32 *)(r1 + 12)\n r0 &= 7\n again: r0 += 1\n if r0 < 20 goto again\n exit",
            2 + 20 * 2 + 1,
        ),
        // In the body by one or by two.
        (
            "r6 = *(u32 *)(r1 + 12)\n r0 = 0\n again: r6 >>= 1\n r2 = r6\n r2 &= 1\n if r2 == 0 goto +1\n r0 += 1
             r0 += 1\n if r0 < 100 goto again\n exit",
            2 + 100 * 7 + 1,
        ),
        // The more expensive of two ways round, and a way that ends the program within.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n again: r0 += 1\n if r2 == 7 goto out\n if r2 != 9 goto next\n r3 = 1\n r3 = 2
             next: if r0 < 6 goto again\n exit\n out: r0 = 0\n r0 = 1\n r0 = 2\n r0 = 3\n r0 = 4\n exit",
            2 + 5 * 6 + 2 + 6,
        ),
        // One within the other, and a function with a loop in a loop.
        (
            "r0 = 0\n r6 = 0\n outer: r7 = 0\n inner: r0 += 1\n r7 += 1\n if r7 < 5 goto inner\n r6 += 1
             if r6 < 3 goto outer\n exit",
            2 + 3 * (1 + 5 * 3 + 2) + 1,
        ),
        (
            "r6 = 0\n again: call f\n r6 += 1\n if r6 < 4 goto again\n exit\n f: r0 = 0\n in: r0 += 1\n if r0 < 3 goto in\n exit",
            1 + 4 * (3 + 1 + 3 * 2 + 1) + 1,
        ),
        // A way out of both at once, and one to the next round of the outer.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n r6 = 0\n outer: r7 = 0\n inner: if r2 == 1 goto out\n if r2 == 2 goto next
             r7 += 1\n if r7 < 5 goto inner\n next: r6 += 1\n if r6 < 3 goto outer\n out: exit",
            3 + 3 * (1 + 5 * 4 + 2) + 1,
        ),
        // The program itself, and a function, begin with a loop's head.
        (
            "again: r2 = 7\n call get_prandom_u32\n r6 = 1\n r6 += 1\n if r6 == 5 goto again\n exit",
            6,
        ),
        (
            "r1 = 0\n call f\n exit\n f: r1 += 1\n r0 = r1\n if r1 < 3 goto f\n exit",
            3 + 3 * 3 + 1,
        ),
    ] {
        assert_eq!(instructions(text), most, "{text}");
        let worst = check(text).unwrap().worst_path(&Prices::ASSUMED_PICOSECONDS);
        assert_eq!(worst.counts[Item::Instruction], most, "{text}");
        assert_eq!(worst.path.len(), most as usize, "{text}");
    }
}

#[test]
fn loops_without_a_bound_are_refused() {
    let endless = |to| Rejection::Endless { to };
    refused([
        ("self: goto self", 0, endless(0)),
        ("r0 = 0\n again: r0 = 1\n if r0 < 9 goto again\n exit", 2, endless(1)),
        // It goes back and forth.
        ("r0 = 1\n again: r0 ^= 1\n if r0 < 9 goto again\n exit", 2, endless(1)),
        // It is set back in the body, on one way only.
        (
            "r6 = 0\n again: r6 += 1\n call get_prandom_u32\n if r0 != 5 goto +1\n r6 = 0\n if r6 < 9 goto again\n exit",
            5,
            endless(1),
        ),
        // As often as dice say, in a function.
        ("call f\n exit\n f: again: call get_prandom_u32\n if r0 != 0 goto again\n exit", 3, endless(2)),
        // The inner one ends, the outer one does not.
        (
            "outer: r0 = 0\n inner: r0 += 1\n if r0 < 3 goto inner\n if r0 == 3 goto outer\n exit",
            3,
            endless(0),
        ),
        // Two beginnings.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n if r2 == 0 goto b\n a: r0 += 1\n b: r0 += 1\n if r0 < 9 goto a\n exit",
            5,
            Rejection::Entries,
        ),
    ]);
    let deep = |loops: usize| {
        let heads: String = (0..loops).map(|n| format!("r{n} = 0\n l{n}: r{n} += 1\n")).collect();
        let ends: String = (0..loops).rev().map(|n| format!("if r{n} < 2 goto l{n}\n")).collect();
        check(&format!("{heads}{ends} exit"))
    };
    // A loop takes 5 instructions and twice what is in it: 5, 15, 35, 75, 155, 315, 635, 1275.
    assert_eq!(deep(8).unwrap().most()[Item::Instruction], 1276);
    assert_eq!(deep(9).unwrap_err().fault, Rejection::Nested);
}

/// What is followed is limited, whatever the loops are like.
#[test]
fn loops_that_are_too_long_are_refused() {
    for (text, slot, to) in [
        // Too many rounds, and a counter that wraps.
        ("r0 = 0\n again: r0 += 1\n if r0 < 1000000 goto again\n exit", 2, 1),
        ("r0 = 0\n again: r0 += 1\n if r0 != 0 goto again\n exit", 2, 1),
        ("w0 = 0\n again: w0 += 2\n if w0 != 7 goto again\n exit", 2, 1),
        // As often as a packet says.
        ("r2 = *(u32 *)(r1 + 12)\n again: r2 -= 1\n if r2 != 0 goto again\n r0 = 0\n exit", 2, 1),
        // The counter is another one than what is compared.
        ("r0 = 0\n r2 = 0\n again: r2 += 1\n if r0 < 9 goto again\n exit", 3, 2),
        // A product that is too large: the inner loop is most of it.
        (
            "r6 = 0\n r0 = 0\n outer: r7 = 0\n inner: r0 += 1\n r7 += 1\n if r7 < 1000 goto inner\n r6 += 1
             if r6 < 1000 goto outer\n exit",
            5,
            3,
        ),
        // Many states in each round.
        (
            "r6 = *(u32 *)(r1 + 12)\n r0 = 0\n r2 = 0\n r3 = 1\n again: r6 >>= 1\n r4 = r6\n r4 &= 1
             if r4 == 0 goto +1\n r2 += r3\n r3 <<= 1\n r3 += r2\n r0 += 1\n if r0 < 100000 goto again\n r0 = r2\n exit",
            12,
            4,
        ),
        // The same with all of the stack to compare.
        (
            &format!(
                "{}r6 = *(u32 *)(r1 + 12)\n r0 = 0\n r2 = 0\n r3 = 1\n again: r6 >>= 1\n r4 = r6\n r4 &= 1\n if r4 == 0 goto +1
                 r2 += r3\n r3 <<= 1\n r3 += r2\n *(u64 *)(r10 - 512) = r2\n r0 += 1\n if r0 < 100000 goto again\n r0 = r2\n exit",
                (1..64).map(|n| format!("*(u64 *)(r10 - {}) = {n}\n ", 8 * n)).collect::<String>()
            ),
            76,
            67,
        ),
        // As far as the packet goes: longer than any is.
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n again: r1 += 1\n if r1 < r2 goto again\n r0 = 2\n exit",
            3,
            2,
        ),
    ] {
        let started = std::time::Instant::now();
        let rejected = check(text).unwrap_err();
        println!("{:?}: {rejected}", started.elapsed());
        let Rejection::Unbounded { to: head, rounds } = rejected.fault else { panic!("{rejected}\n{text}") };
        assert_eq!((rejected.slot, head), (slot, to), "{rejected}\n{text}");
        assert!(rounds > 10, "{rejected}\n{text}");
    }
}

/// Rounds of a long loop take time though hardly anything of it is looked at: what is passed by counts, too.
#[test]
fn a_long_loop_has_fewer_rounds() {
    let looped = |block: usize| {
        let block = "r3 = 1\n".repeat(block);
        format!(
            "r0 = 0\n again: r0 += 1\n if r0 != 1 goto next\n{block} next: if r0 < 20000 goto again\n exit"
        )
    };
    check(&looped(10)).unwrap_or_else(|rejected| panic!("{rejected}"));
    let rejected = check(&looped(3000)).unwrap_err();
    let Rejection::Unbounded { to: 1, rounds } = rejected.fault else { panic!("{rejected}") };
    assert!((1000..5000).contains(&rounds), "{rounds} rounds of 3004 instructions");
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
        // Calls leave r1 to r5 undefined, and the context is gone with r1.
        ("call ktime_get_ns\n r0 = r1\n exit", 1, unwritten(R1)),
        ("r2 = 0\n call f\n r0 = r2\n exit\n f: r0 = 0\n exit", 2, unwritten(R2)),
        ("r6 = 0\n call f\n exit\n f: r0 = r6\n exit", 3, unwritten(R6)),
        ("r1 = 0\n call redirect\n exit", 1, unwritten(R2)),
        ("call f\n exit\n f: exit", 1, unwritten(R0)),
    ]);
    let_in([
        "r6 = 5\n call f\n r0 = r6\n exit\n f: r6 = 1\n r0 = 1\n exit",
        // A function that returns nothing.
        "call f\n r0 = 0\n exit\n f: exit",
        "r0 = 7\n w0 ^= w0\n exit",
    ]);
}

#[test]
fn packets_are_compared_with_their_end_first() {
    refused([
        ("r0 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r0 + 0)\n exit", 1, unchecked(R0, 1, 0)),
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = r1\n r3 += 14\n if r3 > r2 goto +1
             r3 = *(u16 *)(r1 + 13)\n r0 = 0\n exit",
            5,
            unchecked(R1, 15, 14),
        ),
        // On the path where it is not so.
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = r1\n r3 += 14\n if r3 <= r2 goto +1
             r3 = *(u8 *)(r1 + 0)\n r0 = 0\n exit",
            5,
            unchecked(R1, 1, 0),
        ),
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r1 += 4\n if r1 > r2 goto +1
             r0 = *(u8 *)(r1 - 5)\n r0 = 0\n exit",
            4,
            Rejection::PacketBefore { first: -1 },
        ),
        ("r0 = *(u32 *)(r1 + 4)\n r0 = *(u8 *)(r0 - 1)\n exit", 1, not_address(R0, "the end of the packet")),
        // A number that is not bounded is added; nothing is known of where that leads.
        (
            "r6 = r1\n call ktime_get_ns\n r2 = *(u32 *)(r6 + 4)\n r1 = *(u32 *)(r6 + 0)\n r1 += r0\n r3 = r1
             r3 += 1\n if r3 > r2 goto +1\n r0 = *(u8 *)(r1 + 0)\n r0 = 0\n exit",
            8,
            Rejection::PacketBefore { first: i64::MIN },
        ),
        (
            "r6 = r1\n call get_prandom_u32\n r2 = *(u32 *)(r6 + 4)\n r1 = *(u32 *)(r6 + 0)\n r1 += r0\n r3 = r1
             r3 += 1\n if r3 > r2 goto +1\n r0 = *(u8 *)(r1 + 0)\n r0 = 0\n exit",
            8,
            Rejection::PacketUnchecked { register: R1, end: 1, proven: None },
        ),
        // Moved: addresses from before are worthless.
        (
            "r6 = *(u32 *)(r1 + 0)\n r2 = 4\n call xdp_adjust_head\n r0 = *(u8 *)(r6 + 0)\n exit",
            3,
            Rejection::Stale { register: R6 },
        ),
        ("r1 = *(u32 *)(r1 + 0)\n r0 = 0\n lock *(u64 *)(r1 + 0) += r0\n exit", 2, Rejection::AtomicPacket),
    ]);
}

#[test]
fn every_way_to_compare_with_the_end_counts() {
    let all = |compare: &str| {
        format!(
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r0 = 0\n r3 = r1\n r3 += 14\n {compare}
             in: r0 = *(u8 *)(r1 + 13)\n out: exit"
        )
    };
    for compare in [
        "if r3 > r2 goto out",
        "if r2 < r3 goto out",
        "if r3 >= r2 goto out",
        "if r2 <= r3 goto out",
        "if r3 <= r2 goto in\n exit",
        "if r2 >= r3 goto in\n exit",
        "if r3 < r2 goto in\n exit",
        "if r2 > r3 goto in\n exit",
        "if r3 != r2 goto out",
        "if r3 == r2 goto in\n exit",
    ] {
        assert!(check(&all(compare)).is_ok(), "{compare}");
    }
    for compare in
        ["if r3 < r2 goto out", "if r2 > r3 goto out", "if r3 == r2 goto out", "if r3 s> r2 goto out"]
    {
        assert!(check(&all(compare)).is_err(), "{compare}");
    }
    // One byte more where the end is beyond.
    let_in([
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r0 = 0\n r3 = r1\n r3 += 13\n if r3 >= r2 goto +1
             r0 = *(u8 *)(r1 + 13)\n exit",
    ]);
}

#[test]
fn what_is_proven_holds_for_copies_and_near_places() {
    let_in([
        // A copy that was made before, one on the stack, and one further on.
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n *(u64 *)(r10 - 8) = r1\n r6 = r1\n r6 += 4\n r0 = 0\n r3 = r1
         r3 += 20\n if r3 > r2 goto out\n r0 = *(u64 *)(r6 + 8)\n r4 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r4 + 16)
         r0 = *(u8 *)(r3 - 20)\n out: exit",
        // A masked index into what was checked.
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r0 = 0\n r3 = r1\n r3 += 64\n if r3 > r2 goto out
         r4 = *(u8 *)(r1 + 0)\n r4 &= 31\n r1 += r4\n r0 = *(u8 *)(r1 + 32)\n out: exit",
        // There is no metadata: no path leads to where there is.
        "r2 = *(u32 *)(r1 + 8)\n r1 = *(u32 *)(r1 + 0)\n r0 = 0\n r3 = r2\n r3 += 4\n if r3 > r1 goto out
         r0 = *(u32 *)(r2 + 0)\n out: exit",
    ]);
}

#[test]
fn the_context_is_read_by_fields() {
    let field = |offset, size| Rejection::ContextField { offset, size };
    refused(
        [
            ("r0 = *(u64 *)(r1 + 0)\n exit", 0, field(0, 8)),
            ("r0 = *(u16 *)(r1 + 16)\n exit", 0, field(16, 2)),
            ("r0 = *(u32 *)(r1 + 2)\n exit", 0, field(2, 4)),
            ("r0 = *(u32 *)(r1 + 24)\n exit", 0, field(24, 4)),
            ("r0 = *(s32 *)(r1 + 12)\n exit", 0, field(12, 4)),
            ("*(u32 *)(r1 + 16) = 1\n r0 = 0\n exit", 0, Rejection::ContextWrite),
            ("r2 = 1\n lock *(u32 *)(r1 + 16) += r2\n r0 = 0\n exit", 1, Rejection::ContextWrite),
            (
                "*(u64 *)(r10 - 8) = 1\n r6 = r1\n call get_prandom_u32\n if r0 == 0 goto +2\n r6 = r10\n r6 += -16
                 r0 = *(u32 *)(r6 + 12)\n exit",
                6,
                Rejection::ContextOrNot,
            ),
        ],
    );
    let_in(["r1 += 8\n r0 = *(u32 *)(r1 + 8)\n exit"]);
}

#[test]
fn the_stack_is_written_before_it_is_read_and_has_an_end() {
    let frame = |first, last| bounds("the stack frame", first, last, -512, -1);
    refused([
        ("r0 = *(u64 *)(r10 - 8)\n exit", 0, Rejection::StackUnwritten { offset: -8 }),
        ("*(u32 *)(r10 - 8) = 0\n r0 = *(u64 *)(r10 - 8)\n exit", 1, Rejection::StackUnwritten { offset: -4 }),
        ("r0 = 0\n *(u8 *)(r10 + 0) = 1\n exit", 1, frame(0, 0)),
        ("r0 = 0\n *(u64 *)(r10 - 520) = 1\n exit", 1, frame(-520, -513)),
        (
            "*(u64 *)(r10 - 16) = 0\n r0 = *(u32 *)(r10 - 14)\n exit",
            1,
            Rejection::Misaligned { what: "the stack frame".into(), size: 4 },
        ),
        (
            "*(u64 *)(r10 - 8) = 0\n call get_prandom_u32\n r0 &= 15\n r1 = r10\n r1 += -8\n r1 += r0
             r0 = *(u8 *)(r1 + 0)\n exit",
            6,
            frame(-8, 7),
        ),
        (
            "*(u64 *)(r10 - 8) = 0\n call get_prandom_u32\n r0 &= 15\n r1 = r10\n r1 += -16\n r1 += r0
             r0 = *(u8 *)(r1 + 0)\n exit",
            6,
            Rejection::StackUnwritten { offset: -16 },
        ),
        // Stored at one of several places: none of them is known to be written.
        (
            "call get_prandom_u32\n r0 &= 7\n r1 = r10\n r1 += -8\n r1 += r0\n *(u8 *)(r1 + 0) = 1
             r0 = *(u8 *)(r10 - 8)\n exit",
            6,
            Rejection::StackUnwritten { offset: -8 },
        ),
        // An address of which a part was overwritten is one no more.
        (
            "*(u64 *)(r10 - 8) = r1\n *(u8 *)(r10 - 8) = 3\n r1 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r1 + 12)\n exit",
            3,
            not_address(R1, "a number"),
        ),
        (
            "*(u64 *)(r10 - 8) = r1\n call get_prandom_u32\n r0 &= 3\n r2 = r10\n r2 += r0\n *(u8 *)(r2 - 8) = 3
             r1 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r1 + 12)\n exit",
            7,
            not_address(R1, "a number"),
        ),
        // A frame's end is its function's end.
        ("call f\n r0 = *(u8 *)(r0 + 0)\n exit\n f: r0 = r10\n exit", 4, Rejection::ReturnsLocal),
        (
            "r1 = r10\n call f\n r1 = *(u64 *)(r10 - 8)\n r0 = *(u64 *)(r1 - 8)\n exit
             f: *(u64 *)(r10 - 8) = 1\n *(u64 *)(r1 - 8) = r10\n r0 = 0\n exit",
            3,
            not_address(R1, "a number"),
        ),
        // What another call left in the frame is gone.
        (
            "r1 = 0\n call f\n call g\n exit\n f: *(u64 *)(r10 - 8) = 1\n r0 = 0\n exit
             g: r0 = *(u64 *)(r10 - 8)\n exit",
            7,
            Rejection::StackUnwritten { offset: -8 },
        ),
    ]);
    let_in([
        "*(u64 *)(r10 - 8) = r1\n r2 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r2 + 12)\n exit",
        "*(u32 *)(r10 - 8) = 0\n *(u32 *)(r10 - 4) = 0\n r0 = *(u64 *)(r10 - 8)\n exit",
        "r1 = r10\n call f\n r0 = *(u64 *)(r10 - 8)\n exit\n f: *(u64 *)(r1 - 8) = 1\n exit",
        // A sum that the compiler wrote as bits: -16 is a multiple of 16.
        "*(u64 *)(r10 - 16) = 0\n call get_prandom_u32\n r0 &= 7\n r1 = r10\n r1 += -16\n r1 |= r0\n r0 = *(u8 *)(r1 + 0)\n exit",
    ]);
}

#[test]
fn numbers_are_no_addresses() {
    let computed = |register, what| Rejection::PointerArithmetic { register, what };
    refused([
        ("r0 = 5\n r0 = *(u8 *)(r0 + 0)\n exit", 1, not_address(R0, "a number")),
        ("r0 = 0\n r0 = *(u8 *)(r0 + 0)\n exit", 1, not_address(R0, "0")),
        // The address model's numbers are no way around it.
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
        // Different things on different paths.
        (
            "*(u64 *)(r10 - 8) = 0\n r6 = r10\n call get_prandom_u32\n if r0 == 0 goto +1\n r6 = 7\n r0 = *(u8 *)(r6 - 1)\n exit",
            5,
            not_address(R6, "a number"),
        ),
    ]);
    let_in([
        // How far two addresses are apart, and an address that is written somewhere: numbers.
        "r2 = *(u32 *)(r1 + 4)\n r0 = *(u32 *)(r1 + 0)\n r2 -= r0\n r0 = r2\n exit",
        "r2 = *(u32 *)(r1 + 4)\n r0 = *(u32 *)(r1 + 0)\n w2 -= w0\n r0 = r2\n exit",
        "r2 = map[0][0]+8 ll\n *(u64 *)(r2 + 0) = r1\n r0 = *(u64 *)(r2 + 0)\n exit",
        "r0 = 0\n if r1 == 0 goto +0\n if r1 > r10 goto +0\n exit",
    ]);
}

#[test]
fn values_of_maps_are_found_first_and_have_an_end() {
    let found = |rest: &str| {
        format!(
            "*(u32 *)(r10 - 4) = 1\n r2 = r10\n r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n {rest}\n r0 = 0\n exit"
        )
    };
    let table = |first, last| bounds("a value of map table", first, last, 0, 23);
    let maybe = Rejection::MaybeNull { register: R0, map: "table".into() };
    for (rest, fault) in [
        ("r1 = *(u64 *)(r0 + 0)", maybe.clone()),
        ("r0 += 8", maybe.clone()),
        ("if r0 != 0 goto +1\n r1 = *(u64 *)(r0 + 0)", not_address(R0, "0")),
        ("if r0 == 0 goto +1\n r1 = *(u64 *)(r0 + 24)", table(24, 31)),
        ("if r0 == 0 goto +1\n r1 = *(u64 *)(r0 - 8)", table(-8, -1)),
        (
            "if r0 == 0 goto +1\n r1 = *(u32 *)(r0 + 2)",
            Rejection::Misaligned { what: "a value of map table".into(), size: 4 },
        ),
        // The lower half alone may be 0 for any address.
        ("if w0 == 0 goto +1\n r1 = *(u64 *)(r0 + 0)", maybe),
        (
            "r6 = r0\n call get_prandom_u32\n if r6 == 0 goto +4\n r0 &= 3\n r0 <<= 3\n r6 += r0\n r1 = *(u64 *)(r6 + 0)",
            table(0, 31),
        ),
    ] {
        assert_eq!(check(&found(rest)).unwrap_err().fault, fault, "{rest}");
    }
    for rest in [
        "if r0 == 0 goto +1\n r1 = *(u64 *)(r0 + 16)",
        "r6 = r0\n *(u64 *)(r10 - 16) = r0\n if r0 == 0 goto +2\n r2 = *(u64 *)(r10 - 16)\n r1 = *(u8 *)(r2 + 0)\n if r6 == 0 goto +1\n r1 = *(u64 *)(r6 + 0)",
        "r6 = r0\n call get_prandom_u32\n if r6 == 0 goto +5\n if w0 > 2 goto +4\n r0 <<= 3\n r6 += r0\n lock *(u64 *)(r6 + 0) += r0\n r0 = 1",
        // Twice found: one is no proof of the other, and both are proven.
        "r6 = r0\n r2 = r10\n r2 += -4\n r1 = map[4] ll\n call map_lookup_elem\n if r0 == 0 goto +3\n *(u64 *)(r0 + 0) = 1\n if r6 == 0 goto +1\n *(u64 *)(r6 + 0) = 1",
    ] {
        if let Err(rejected) = check(&found(rest)) {
            panic!("{rejected}\n{rest}");
        }
    }
    refused([
        ("r0 = map[9] ll\n exit", 0, Rejection::NoMap(9)),
        ("r0 = map[0][0]+24 ll\n exit", 0, Rejection::NoMapValue { map: "table".into(), offset: 24 }),
        ("r0 = map[1][0]+0 ll\n exit", 0, Rejection::NoMapValue { map: "flows".into(), offset: 0 }),
        ("r0 = map[4][0]+0 ll\n exit", 0, Rejection::NoMapValue { map: "each".into(), offset: 0 }),
        (
            "r1 = map[3][0]+0 ll\n *(u32 *)(r1 + 4) = 1\n r0 = 0\n exit",
            2,
            Rejection::ReadOnly { map: "rodata".into() },
        ),
        (
            "r0 = 1\n r1 = map[3][0]+0 ll\n lock *(u32 *)(r1 + 4) += r0\n exit",
            3,
            Rejection::ReadOnly { map: "rodata".into() },
        ),
    ]);
}

#[test]
fn the_state_is_as_large_as_was_asked_for() {
    refused([
        (
            "r1 = 16\n call lw_flow_state\n r0 = *(u64 *)(r0 + 16)\n exit",
            2,
            bounds("the state", 16, 23, 0, 15),
        ),
        (
            "r1 = 16\n call lw_flow_state\n r0 = *(u64 *)(r0 - 8)\n exit",
            2,
            bounds("the state", -8, -1, 0, 15),
        ),
        (
            "r1 = 16\n call lw_flow_state\n r0 = *(u16 *)(r0 + 3)\n exit",
            2,
            Rejection::Misaligned { what: "the state".into(), size: 2 },
        ),
        (
            "call get_prandom_u32\n r1 = r0\n call lw_flow_state\n r0 = 0\n exit",
            2,
            Rejection::Argument {
                helper: Helper::FlowState,
                number: 1,
                wanted: Argument::StateSize,
                found: "a number",
            },
        ),
        (
            "r1 = 4097\n call lw_flow_state\n r0 = 0\n exit",
            1,
            Rejection::ArgumentRange {
                helper: Helper::FlowState,
                number: 1,
                low: 1,
                high: 4096,
                min: 4097,
                max: 4097,
            },
        ),
    ]);
    let text = "r1 = 40\n call lw_flow_state\n r0 = *(u64 *)(r0 + 32)\n r1 = 16\n call lw_flow_state\n r0 = *(u8 *)(r0 + 15)\n exit";
    assert_eq!(check(text).unwrap().state_size(), 40);
    assert_eq!(check("r0 = 0\n exit").unwrap().state_size(), 0);
}

#[test]
fn a_program_needs_the_links_that_it_surely_names() {
    for (text, links) in [
        ("r0 = 0\n exit", 0),
        ("r1 = 2\n call lw_redirect_link\n exit", 3),
        ("call get_prandom_u32\n r1 = r0\n call lw_choose_link\n exit", 1),
        ("call get_prandom_u32\n r1 = r0\n r1 &= 3\n r1 += 4\n call lw_choose_link\n exit", 5),
        (
            "call lw_read_mark\n if r0 == 0 goto +3\n r1 = 6\n call lw_redirect_link\n exit\n r1 = 1\n call lw_redirect_link\n exit",
            7,
        ),
        ("r1 = -1\n call lw_choose_link\n exit", 1),
    ] {
        assert_eq!(check(text).unwrap().links(), links, "{text}");
    }
}

#[test]
fn of_helpers_that_are_not_there_it_is_said_what_does_the_same() {
    for (number, fix) in [
        (26, "no helper 26 (skb_load_bytes) here; use xdp_load_bytes"),
        (164, "no helper 164 (for_each_map_elem) here; use loop, over numbers or keys that are known"),
        (14, "no helper 14 (get_current_pid_tgid) here; nothing does the same, leave the call out"),
        (9999, "the kernel's have numbers from 1 to 211, those of longwire.h from 65536 on"),
    ] {
        let refused = check(&format!("call {number}\n exit")).unwrap_err().to_string();
        assert!(refused.ends_with(fix), "{refused}");
    }
}

#[test]
fn helpers_get_what_they_take() {
    let argument = |helper, number, wanted, found| Rejection::Argument { helper, number, wanted, found };
    let kind = |helper, map: &str, kind| Rejection::MapKind { helper, map: map.into(), kind };
    refused([
        ("call 14\n exit", 0, Rejection::UnknownHelper { number: 14, name: "get_current_pid_tgid" }),
        ("call 9999\n exit", 0, Rejection::UnknownHelper { number: 9999, name: "of no known name" }),
        ("call kernel 5\n exit", 0, Rejection::KernelFunction),
        (
            "r2 = 4\n r1 = r10\n call xdp_adjust_head\n exit",
            2,
            argument(Helper::AdjustHead, 1, Argument::Context, "an address in the stack"),
        ),
        (
            "r1 += 4\n r2 = 4\n call xdp_adjust_head\n exit",
            2,
            argument(Helper::AdjustHead, 1, Argument::Context, "the context"),
        ),
        (
            "r2 = r1\n call xdp_adjust_head\n exit",
            1,
            argument(Helper::AdjustHead, 2, Argument::Number, "the context"),
        ),
        (
            "r1 = 0\n r2 = r10\n call map_lookup_elem\n exit",
            2,
            argument(Helper::MapLookup, 1, Argument::Map, "0"),
        ),
        (
            "r1 = map[2] ll\n r2 = r10\n r3 = r10\n r4 = 0\n call map_update_elem\n exit",
            5,
            kind(Helper::MapUpdate, "ports", MapKind::DevMap),
        ),
        // What the router is asked about has to have been written.
        (
            "r2 = r10\n r2 += -64\n r3 = 64\n r4 = 0\n call fib_lookup\n exit",
            4,
            Rejection::StackUnwritten { offset: -64 },
        ),
        (
            "r1 = map[0] ll\n r2 = 0\n r3 = 0\n call redirect_map\n exit",
            4,
            kind(Helper::RedirectMap, "table", MapKind::Array),
        ),
        // A key of 8 bytes of which 4 were written, and one beyond the frame.
        (
            "*(u32 *)(r10 - 8) = 0\n r2 = r10\n r2 += -8\n r1 = map[1] ll\n call map_lookup_elem\n exit",
            5,
            Rejection::StackUnwritten { offset: -4 },
        ),
        (
            "r2 = r10\n r2 += -4\n r1 = map[1] ll\n call map_lookup_elem\n exit",
            4,
            bounds("the stack frame", -4, 3, -512, -1),
        ),
        (
            "r2 = r1\n r1 = map[1] ll\n call map_lookup_elem\n exit",
            3,
            argument(Helper::MapLookup, 2, Argument::Key, "the context"),
        ),
        ("r2 = *(u32 *)(r1 + 0)\n r1 = map[1] ll\n call map_lookup_elem\n exit", 3, unchecked(R2, 8, 0)),
        (
            "*(u32 *)(r10 - 4) = 0\n r2 = r10\n r2 += -4\n r3 = r2\n r4 = 0\n r1 = map[3] ll\n call map_update_elem\n exit",
            7,
            Rejection::ReadOnly { map: "rodata".into() },
        ),
    ]);
}

#[test]
fn helpers_get_as_much_as_they_are_told() {
    let range =
        |helper, number, low, min, max| Rejection::ArgumentRange { helper, number, low, high: 512, min, max };
    refused([
        // Not 0, not more than 512, and as much as there is.
        ("*(u64 *)(r10 - 8) = 0\n r1 = r10\n r1 += -8\n r2 = 0\n r3 = 0\n call lw_hash\n exit", 5, range(Helper::Hash, 2, 1, 0, 0)),
        (
            "call get_prandom_u32\n r2 = r0\n r1 = r10\n r1 += -8\n r3 = 0\n call lw_hash\n exit",
            5,
            range(Helper::Hash, 2, 1, 0, 0xffff_ffff),
        ),
        (
            "*(u64 *)(r10 - 8) = 0\n r1 = r10\n r1 += -8\n r2 = 9\n r3 = 0\n call lw_hash\n exit",
            5,
            bounds("the stack frame", -8, 0, -512, -1),
        ),
        ("r1 = 0\n r2 = 4\n r3 = 0\n r4 = 0\n r5 = 0\n call csum_diff\n exit", 5, Rejection::ArgumentRange { helper: Helper::ChecksumDiff, number: 2, low: 0, high: 0, min: 4, max: 4 }),
        ("r1 = 0\n r2 = 4\n r3 = 0\n call lw_hash\n exit", 3, not_address(R1, "0")),
        (
            "r2 = 0\n r3 = map[3][0]+0 ll\n r4 = 4\n call xdp_load_bytes\n exit",
            4,
            Rejection::ReadOnly { map: "rodata".into() },
        ),
        // Of a number of bytes that is not known, the least is written.
        (
            "r6 = r1\n call get_prandom_u32\n r4 = r0\n r4 &= 3\n r4 += 2\n r3 = r10\n r3 += -8\n r2 = 0\n r1 = r6
             call xdp_load_bytes\n r0 = *(u8 *)(r10 - 7)\n r0 = *(u8 *)(r10 - 6)\n exit",
            11,
            Rejection::StackUnwritten { offset: -6 },
        ),
    ]);
    let_in([
        "r2 = 0\n r3 = r10\n r3 += -8\n r4 = 8\n call xdp_load_bytes\n r0 = *(u64 *)(r10 - 8)\n exit",
        "r1 = 0\n r2 = 0\n r3 = 0\n r4 = 0\n r5 = 0\n call csum_diff\n exit",
        "r1 = map[2] ll\n r2 = 7\n r3 = 2\n call redirect_map\n exit",
        "r1 = map[3][0]+0 ll\n r2 = 32\n r3 = 0\n call lw_hash\n exit",
    ]);
}

/// Where paths meet, the one that was there first does not speak for one of which less is known.
#[test]
fn no_path_is_taken_for_another() {
    const R4: Register = Register::R4;
    const R7: Register = Register::R7;
    refused([
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = r1\n r3 += 14\n if r3 <= r2 goto in\n r0 = 1
             in: r0 = *(u8 *)(r1 + 13)\n exit",
            6,
            unchecked(R1, 14, 0),
        ),
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = r1\n r3 += 14\n r0 = 0\n if r3 > r2 goto out
             r0 = *(u8 *)(r1 + 0)\n r4 = r1\n if r0 == 0 goto in\n r4 += 4\n in: r0 = *(u8 *)(r4 + 13)\n out: exit",
            10,
            unchecked(R4, 14, 10),
        ),
        // A copy on one path, another number on the other.
        (
            "call get_prandom_u32\n r6 = r0\n call get_prandom_u32\n r7 = r6\n if r0 == 0 goto in\n r7 = r0
             in: r1 = map[0][0]+0 ll\n r0 = 0\n if r6 > 7 goto out\n r1 += r7\n r0 = *(u8 *)(r1 + 0)\n out: exit",
            11,
            bounds("a value of map table", 1, 0xffff_ffff, 0, 23),
        ),
        // The same value on one path, another of the same map on the other.
        (
            "*(u32 *)(r10 - 4) = 1\n r2 = r10\n r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n r6 = r0\n r2 = r10
             r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n r8 = r0\n call get_prandom_u32\n r7 = r6
             if r0 == 0 goto in\n r7 = r8\n in: r0 = 0\n if r6 == 0 goto out\n r0 = *(u8 *)(r7 + 0)\n out: exit",
            19,
            Rejection::MaybeNull { register: R7, map: "table".into() },
        ),
        // Written on one path.
        (
            "call get_prandom_u32\n if r0 == 0 goto +1\n goto in\n *(u64 *)(r10 - 8) = 0\n in: r0 = *(u64 *)(r10 - 8)
             exit",
            4,
            Rejection::StackUnwritten { offset: -8 },
        ),
        (
            "r6 = r1\n call get_prandom_u32\n if r0 == 0 goto +1\n goto in\n r1 = r6\n r2 = 0\n r3 = r10\n r3 += -8\n r4 = 8
             call xdp_load_bytes\n in: r0 = *(u64 *)(r10 - 8)\n exit",
            10,
            Rejection::StackUnwritten { offset: -8 },
        ),
        // A smaller state on one path.
        (
            "r1 = 32\n call lw_flow_state\n r6 = r0\n call get_prandom_u32\n if r0 == 0 goto in\n r1 = 16
             call lw_flow_state\n r6 = r0\n in: r0 = *(u64 *)(r6 + 16)\n exit",
            8,
            bounds("the state", 16, 23, 0, 15),
        ),
    ]);
}

#[test]
fn paths_are_told_apart_and_joined_where_there_are_too_many() {
    // Two numbers that belong together: 8 bytes at -16, or 16 at -24.
    let_in(["*(u64 *)(r10 - 8) = 0\n *(u64 *)(r10 - 16) = 0\n *(u64 *)(r10 - 24) = 0\n call get_prandom_u32
             r6 = -16\n r2 = 8\n if r0 == 0 goto +2\n r6 = -24\n r2 = 24\n r1 = r10\n r1 += r6\n r3 = 0\n call lw_hash\n exit"]);
    // A hundred paths with a number each: joined, it is known to be below 128.
    let branches = |count: u32| {
        let one = |bit: u32| format!("if r0 & {} goto +1\n r6 += {}\n", 1 << bit, 1 << bit);
        (0..count).map(one).collect::<String>()
    };
    let text = |finale: &str| {
        format!(
            "call get_prandom_u32\n r6 = 0\n {} r1 = map[0][0]+0 ll\n {finale}\n r0 = 0\n exit",
            branches(12)
        )
    };
    assert!(check(&text("r6 &= 15\n r1 += r6\n r1 = *(u8 *)(r1 + 0)")).is_ok());
    let beyond = check(&text("r1 += r6\n r1 = *(u8 *)(r1 + 0)")).unwrap_err().fault;
    assert_eq!(beyond, bounds("a value of map table", 24, 24, 0, 23));
    let joined = check(&text("if r6 < 512 goto +2\n r1 += r6\n r1 = *(u8 *)(r1 + 0)")).unwrap_err().fault;
    assert!(matches!(joined, Rejection::Bounds { first: 512.., .. }), "{joined}");
}

#[test]
fn large_programs_are_followed_to_an_end_or_refused() {
    // 65,536 instructions, half of them branches that say nothing.
    let mut text = String::from("call get_prandom_u32\n");
    for _ in 0..32_766 {
        text += "if r0 & 1 goto +0\n r0 += 3\n";
    }
    text += "r0 = 0\n exit";
    assert_eq!(check(&text).unwrap().facts().len(), 65_535);
    // Three branches to each of many places, at which what is known waits for the last of them.
    let waiting = |count: u32| {
        let branch = |n: u32| format!("if r0 == {n} goto t{}\n", n % count);
        let branches: String = (0..3 * count).map(branch).collect();
        let targets: String = (0..count).map(|n| format!("t{n}: exit\n")).collect();
        check(&format!("call get_prandom_u32\n {branches} exit\n {targets}"))
            .map(|verified| verified.facts().len())
    };
    assert_eq!(waiting(7000), Ok(28_002));
    assert_eq!(waiting(9000).unwrap_err().fault, Rejection::TooComplex);
    // Eight functions, each of which calls the next eight times: 8⁷ calls.
    let mut text = String::new();
    for depth in 0..7 {
        text += &format!("f{depth}: {}\n exit\n", format!("call f{}\n", depth + 1).repeat(8));
    }
    text += "f7: r0 = 0\n exit";
    assert_eq!(check(&text).unwrap_err().fault, Rejection::TooComplex);
}

#[test]
fn a_refusal_names_place_fault_and_fix() {
    let object = longwire_program::Object::parse(include_bytes!("xdp/careless.o")).unwrap();
    let messages: Vec<String> = object
        .programs()
        .map(|(name, _)| verify(object.program(name).unwrap()).unwrap_err().to_string())
        .collect();
    assert_eq!(
        messages,
        [
            "program unchecked, instruction 1 (r0 = *(u8 *)(r1 + 9)), careless.c:7: the packet may end before byte 10 \
             beyond r1, of which 0 are known to be there; compare with data_end first",
            "program not_compared, instruction 7 (r1 = *(u64 *)(r0 + 0)), careless.c:23: r0 may be 0, as map counters \
             may not have the key; compare it with 0 first",
            "program forever, instruction 5 (if w0 != 5 goto -6), careless.c:35: it leads back to instruction 0 with nothing \
             changed that must end the loop; count up to a constant in a variable of its own, as in for (i = 0; i < 16; i++)",
            "program beyond, instruction 34 (r0 = *(u8 *)(r6 + 0)), careless.c:45: it may touch bytes -16 to 15 of \
             the stack frame, which has -512 to -1; compare or mask the index first",
            "program moved, instruction 9 (r6 = *(u8 *)(r7 + 9)), careless.c:55: r7 is an address in the packet from \
             before it was moved; load data and data_end again and check anew",
        ]
    );
}

#[test]
fn constants_are_known() {
    let initial = [5, 0, 0, 0, 0xfe, 0xff, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0x88];
    let constants = |value_size, initial: &[u8]| MapSpec {
        read_only: true,
        initial: initial.into(),
        ..MapSpec::new(".rodata", MapKind::Array, 4, value_size, 1)
    };
    let with = |spec: MapSpec, load: &str, wanted: u64| {
        let text = format!(
            "r1 = map[0][0]+0 ll\n {load}\n r3 = {wanted:#x} ll\n if r2 == r3 goto out\n r0 = *(u8 *)(r2 + 0)\n out: r0 = 2\n exit"
        );
        verify(Program::new("test", assemble(&text).unwrap(), [spec])).is_ok()
    };
    for (load, wanted) in [
        ("r2 = *(u32 *)(r1 + 0)", 5),
        ("r2 = *(u8 *)(r1 + 4)", 0xfe),
        ("r2 = *(s16 *)(r1 + 4)", 0xffff_ffff_ffff_fffe),
        ("r2 = *(u64 *)(r1 + 8)", 0x8807_0605_0403_0201),
        ("r1 += 8\n r2 = *(u16 *)(r1 + 2)", 0x0403),
        // What the section does not say is 0.
        ("r2 = *(u64 *)(r1 + 16)", 0),
    ] {
        assert!(with(constants(24, &initial), load, wanted), "{load}");
        assert!(!with(constants(24, &initial), load, wanted ^ 1), "{load}");
        // Others are not known: variables, and what the control half writes.
        let variables = MapSpec { read_only: false, ..constants(24, &initial) };
        assert!(!with(variables, load, wanted), "{load}");
        assert!(!with(constants(24, &[]), load, wanted), "{load}");
    }
}

#[test]
fn a_reason_that_is_none_is_refused() {
    let range = |min, max| {
        let (helper, number) = (Helper::Drop, 1);
        Rejection::ArgumentRange { helper, number, low: 0, high: 63, min, max }
    };
    refused([
        ("r1 = 64\n call lw_drop\n exit", 1, range(64, 64)),
        ("r1 = *(u32 *)(r1 + 12)\n r1 |= 64\n call lw_drop\n exit", 2, range(64, 0xffff_ffff)),
    ]);
    let_in([
        "r1 = 63\n call lw_drop\n exit",
        // The lower half counts; what only a packet tells may be in the range.
        "r1 = 0x100000007 ll\n call lw_drop\n exit",
        "r1 = *(u32 *)(r1 + 12)\n call lw_drop\n exit",
    ]);
}
