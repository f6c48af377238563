//! Loops are followed round by round, up to a limit.

use super::*;

/// A counter in a loop matches the comparison of the same round, however many rounds there are.
#[test]
fn rounds_are_distinguished_where_a_loop_is_left() {
    let last_byte = |offset: i16| {
        format!(
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = 0\n r0 = 2\n again: r4 = r1\n r4 += r3\n \
             r4 += 14
             if r4 > r2 goto out\n if r4 == r2 goto read\n r3 += 1\n if r3 < 1500 goto again\n goto out
             read: r4 = r1\n r4 += r3\n r0 = *(u8 *)(r4 + {offset})\n out: exit"
        )
    };
    assert!(check(&last_byte(13)).is_ok());
    let fault = check(&last_byte(14)).unwrap_err().fault;
    assert!(matches!(fault, Rejection::PacketUnchecked { .. }), "{fault}");
    // Beyond that they are joined, and verification still ends in time.
    let many = last_byte(13).replace("1500", "3000");
    assert!(matches!(check(&many).unwrap_err().fault, Rejection::PacketUnchecked { .. }));
}

/// The maximum cost of a program's loops, in instructions.
fn instructions(text: &str) -> u32 {
    check(text).unwrap_or_else(|rejected| panic!("{rejected}\n{text}")).most()[Item::Instruction]
}

#[test]
fn loops_that_count_to_a_constant_are_followed() {
    for (text, most) in [
        ("r0 = 0\n again: r0 += 1\n if r0 < 9 goto again\n exit", 1 + 9 * 2 + 1),
        // The test at the beginning: the only part of the last round.
        (
            "r0 = 0\n top: if r0 == 4 goto out\n r0 += 1\n goto top\n \
             out: exit",
            1 + 4 * 3 + 1 + 1,
        ),
        // Downward, other steps, 32 bits, products, and on the stack.
        ("r0 = 10\n again: r0 -= 3\n if r0 s> 0 goto again\n exit", 1 + 4 * 2 + 1),
        ("w0 = -4\n again: w0 += 2\n if w0 != 0 goto again\n exit", 1 + 2 * 2 + 1),
        ("r0 = 1\n again: r0 *= 2\n if r0 < 100 goto again\n exit", 1 + 7 * 2 + 1),
        (
            "*(u64 *)(r10 - 8) = 0\n again: r1 = *(u64 *)(r10 - 8)\n r1 += 1\n *(u64 *)(r10 - 8) = r1
             if r1 < 5 goto again\n r0 = 0\n exit",
            1 + 5 * 4 + 2,
        ),
        // A number that depends on the packet may end it earlier; the constant bounds it.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n top: if r0 >= r2 goto out\n r0 += 1\n \
             if r0 < 8 goto top\n out: exit",
            2 + 8 * 3 + 1,
        ),
        // A counter bounded by masking may start anywhere.
        ("r0 = *(u32 *)(r1 + 12)\n r0 &= 7\n again: r0 += 1\n if r0 < 20 goto again\n exit", 2 + 20 * 2 + 1),
        // Steps of one or two in the body.
        (
            "r6 = *(u32 *)(r1 + 12)\n r0 = 0\n again: r6 >>= 1\n r2 = r6\n r2 &= 1\n if r2 == 0 goto +1\n \
             r0 += 1\n r0 += 1\n if r0 < 100 goto again\n exit",
            2 + 100 * 7 + 1,
        ),
        // The more expensive of two branches, and a branch that ends the program.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n again: r0 += 1\n if r2 == 7 goto out\n if r2 != 9 goto next\n \
             r3 = 1\n r3 = 2\n next: if r0 < 6 goto again\n exit\n \
             out: r0 = 0\n r0 = 1\n r0 = 2\n r0 = 3\n r0 = 4\n exit",
            2 + 5 * 6 + 2 + 6,
        ),
        // Nested loops, and a function with nested loops.
        (
            "r0 = 0\n r6 = 0\n outer: r7 = 0\n inner: r0 += 1\n r7 += 1\n if r7 < 5 goto inner\n r6 += 1
             if r6 < 3 goto outer\n exit",
            2 + 3 * (1 + 5 * 3 + 2) + 1,
        ),
        (
            "r6 = 0\n top: call f\n r6 += 1\n if r6 < 4 goto top\n exit\n f: r0 = 0\n in: r0 += 1\n \
             if r0 < 3 goto in\n exit",
            1 + 4 * (3 + 1 + 3 * 2 + 1) + 1,
        ),
        // An exit of both at once, and one to the next round of the outer.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n r6 = 0\n outer: r7 = 0\n inner: if r2 == 1 goto out\n \
             if r2 == 2 goto next\n r7 += 1\n if r7 < 5 goto inner\n next: r6 += 1\n if r6 < 3 goto outer\n \
             out: exit",
            3 + 3 * (1 + 5 * 4 + 2) + 1,
        ),
        // The program itself, and a function, begin with a loop's head.
        ("again: r2 = 7\n call get_prandom_u32\n r6 = 1\n r6 += 1\n if r6 == 5 goto again\n exit", 6),
        ("r1 = 0\n call f\n exit\n f: r1 += 1\n r0 = r1\n if r1 < 3 goto f\n exit", 3 + 3 * 3 + 1),
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
        // It alternates.
        ("r0 = 1\n again: r0 ^= 1\n if r0 < 9 goto again\n exit", 2, endless(1)),
        // It is reset in the body, on one branch only.
        (
            "r6 = 0\n again: r6 += 1\n call get_prandom_u32\n if r0 != 5 goto +1\n r6 = 0\n if r6 < 9 goto \
             again\n exit",
            5,
            endless(1),
        ),
        // A random number of rounds, in a function.
        ("call f\n exit\n f: again: call get_prandom_u32\n if r0 != 0 goto again\n exit", 3, endless(2)),
        // The inner one ends, the outer one does not.
        (
            "outer: r0 = 0\n inner: r0 += 1\n if r0 < 3 goto inner\n if r0 == 3 goto outer\n exit",
            3,
            endless(0),
        ),
        // Two entries.
        (
            "r2 = *(u32 *)(r1 + 12)\n r0 = 0\n if r2 == 0 goto b\n a: r0 += 1\n b: r0 += 1\n if r0 < 9 goto \
             a\n exit",
            5,
            Rejection::Entries,
        ),
    ]);
    let deep = |loops: usize| {
        let heads: String = (0..loops).map(|n| format!("r{n} = 0\n l{n}: r{n} += 1\n")).collect();
        let ends: String = (0..loops).rev().map(|n| format!("if r{n} < 2 goto l{n}\n")).collect();
        check(&format!("{heads}{ends} exit"))
    };
    // A loop takes 5 instructions and twice its body: 5, 15, 35, 75, 155, 315, 635, 1275.
    assert_eq!(deep(8).unwrap().most()[Item::Instruction], 1276);
    assert_eq!(deep(9).unwrap_err().fault, Rejection::Nested);
}

/// Verification is limited, whatever the loops are like.
#[test]
fn loops_that_are_too_long_are_refused() {
    for (text, slot, to) in [
        // Too many rounds, and a counter that wraps.
        ("r0 = 0\n again: r0 += 1\n if r0 < 1000000 goto again\n exit", 2, 1),
        ("r0 = 0\n again: r0 += 1\n if r0 != 0 goto again\n exit", 2, 1),
        ("w0 = 0\n again: w0 += 2\n if w0 != 7 goto again\n exit", 2, 1),
        // The packet decides.
        ("r2 = *(u32 *)(r1 + 12)\n again: r2 -= 1\n if r2 != 0 goto again\n r0 = 0\n exit", 2, 1),
        // The counter is not the one compared.
        ("r0 = 0\n r2 = 0\n again: r2 += 1\n if r0 < 9 goto again\n exit", 3, 2),
        // A product that is too large: most of it in the inner loop.
        (
            "r6 = 0\n r0 = 0\n outer: r7 = 0\n inner: r0 += 1\n r7 += 1\n if r7 < 1000 goto inner\n r6 += 1
             if r6 < 1000 goto outer\n exit",
            5,
            3,
        ),
        // Many states in each round.
        (
            "r6 = *(u32 *)(r1 + 12)\n r0 = 0\n r2 = 0\n r3 = 1\n again: r6 >>= 1\n r4 = r6\n r4 &= 1
             if r4 == 0 goto +1\n r2 += r3\n r3 <<= 1\n r3 += r2\n r0 += 1\n if r0 < 100000 goto again\n r0 \
             = r2\n exit",
            12,
            4,
        ),
        // With all of the stack to compare.
        (
            &format!(
                "{}r6 = *(u32 *)(r1 + 12)\n r0 = 0\n r2 = 0\n r3 = 1\n again: r6 >>= 1\n r4 = r6\n r4 &= 1\n \
                 if r4 == 0 goto +1
                 r2 += r3\n r3 <<= 1\n r3 += r2\n *(u64 *)(r10 - 512) = r2\n r0 += 1\n if r0 < 100000 goto \
                 again\n r0 = r2\n exit",
                (1..64).map(|n| format!("*(u64 *)(r10 - {}) = {n}\n ", 8 * n)).collect::<String>()
            ),
            76,
            67,
        ),
        // To the packet's end: beyond the maximum length.
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n again: r1 += 1\n if r1 < r2 goto again\n r0 = \
             2\n exit",
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

/// States that differ in the last byte of a full stack are compared down to it, which takes steps.
#[test]
fn full_stacks_do_not_make_it_slow() {
    let stores: String = (1..=512).map(|at| format!("*(u8 *)(r10 - {at}) = 1\n")).collect();
    let bits: String = (0..6)
        .map(|bit| format!("call get_prandom_u32\n if r0 & 1 goto +1\n r6 += {}\n", 1 << bit))
        .collect();
    let text = format!(
        "{stores} r6 = 0\n r7 = 0\n {bits} *(u8 *)(r10 - 1) = r6\n r6 = 0\n again: call get_prandom_u32
         if r0 == 0 goto m\n r8 = 1\n m: r7 += 1\n if r7 < 60000 goto again\n r0 = 0\n exit"
    );
    let rejected = check(&text).unwrap_err();
    let Rejection::Unbounded { rounds, .. } = rejected.fault else { panic!("{rejected}") };
    // By its visits alone, it would be more than a thousand.
    assert!((1..100).contains(&rounds), "{rounds} rounds with 64 states of 512 values");
}

/// Rounds of a long loop take time even if hardly anything is visited: skipped instructions count, too.
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
