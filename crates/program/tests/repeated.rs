//! `bpf_loop`: verification, cost, and interpretation.

use crate::harness::Bench;
use longwire_program::{
    Argument, Fault, Helper, Item, Maps, Prices, Program, Register, Rejection, VerifiedProgram, assemble,
    verify,
};

fn check(text: &str) -> Result<VerifiedProgram, (usize, Rejection)> {
    let code = assemble(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(Program::new("test", code, [])).map_err(|rejected| (rejected.slot, rejected.fault))
}

fn run(text: &str) -> Result<u64, Fault> {
    let mut bench = Bench::new(&[7; 64], Maps::new(&[], 1, 0).unwrap());
    bench.budget = 100_000;
    bench.run(&assemble(text).unwrap()).map(|ran| ran.returned).map_err(|stopped| stopped.fault)
}

/// A program that calls `f` at most `count` times with a number on its stack, initially 0, and returns the
/// number.
fn calling(count: &str, f: &str) -> String {
    format!(
        "*(u64 *)(r10 - 8) = 0\n r1 = {count}\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = 0\n call loop
         r0 = *(u64 *)(r10 - 8)\n exit\n f: {f}"
    )
}

const ADDS: &str = "r3 = *(u64 *)(r2 + 0)\n r3 += r1\n r3 += 100\n *(u64 *)(r2 + 0) = r3\n r0 = 0\n exit";

#[test]
fn rounds_are_numbered_and_end_when_the_function_says_so() {
    assert_eq!(run(&calling("5", ADDS)), Ok(10 + 500));
    assert_eq!(run(&calling("0", ADDS)), Ok(0));
    let ends = "r0 = 0\n if r1 < 3 goto +1\n r0 = 1\n r3 = *(u64 *)(r2 + 0)\n r3 += 1\n *(u64 *)(r2 + 0) = \
        r3\n exit";
    assert_eq!(run(&calling("9", ends)), Ok(4));
    // The helper's own return value: rounds, or an error for too many, or for flags.
    let returns = |count: &str, flags: i32, f: &str| {
        run(&format!(
            "r1 = {count}\n r2 = pc f ll\n r3 = 0\n r4 = {flags}\n call loop\n exit\n f: {f}\n exit"
        ))
    };
    assert_eq!(returns("7", 0, "r0 = 0"), Ok(7));
    assert_eq!(returns("7", 0, "r0 = 1"), Ok(1));
    assert_eq!(returns("7", 0, "r0 = r1\n r0 >>= 2"), Ok(5));
    assert_eq!(returns("8388609", 0, "r0 = 0"), Ok(-7_i64 as u64));
    assert_eq!(returns("7", 1, "r0 = 0"), Ok(-22_i64 as u64));
    // Only the lower half of the count is used.
    assert_eq!(returns("0x500000003 ll", 0, "r0 = 0"), Ok(3));
}

#[test]
fn what_is_no_function_is_not_called() {
    let text = "r1 = 2\n r2 = 5\n r3 = 0\n r4 = 0\n call loop\n exit";
    assert_eq!(run(text), Err(Fault::Argument(2)));
    // An instruction within a function, by its number.
    let text =
        "r1 = 2\n r2 = pc f ll\n r2 += 1\n r3 = 0\n r4 = 0\n call loop\n exit\n f: r0 = 0\n r0 = 0\n exit";
    assert_eq!(run(text), Err(Fault::Argument(2)));
    // Its frame is empty in each round, and it has only its arguments.
    let reads = calling("2", "r0 = *(u64 *)(r10 - 8)\n *(u64 *)(r10 - 8) = 1\n r0 = 0\n exit");
    assert!(matches!(run(&reads), Err(Fault::Unwritten { .. })));
    assert_eq!(run(&calling("2", "r0 = r3\n exit")), Err(Fault::Register(3)));
    assert_eq!(run(&calling("2", "exit")), Err(Fault::Register(0)));
}

/// A loop costs its function times the maximum number of rounds, on the reported path.
#[test]
fn rounds_are_priced() {
    for (count, f, instructions) in [
        ("5", ADDS, 9 + 5 * 6),
        ("0", ADDS, 9),
        ("1000000", "r0 = 0\n exit", 9 + 2_000_000),
        // The longer of both branches.
        ("4", "r0 = 0\n if r1 > 1 goto +2\n r3 = 1\n r3 = 2\n exit", 9 + 4 * 5),
    ] {
        let verified = check(&calling(count, f)).unwrap();
        assert_eq!(verified.most()[Item::Instruction], instructions, "{count} {f}");
        let worst = verified.worst_path(&Prices::VRP_CYCLES);
        assert_eq!(worst.path.len(), instructions.min(1 << 20) as usize);
        let rounds: u32 = count.parse().unwrap();
        assert_eq!(verified.most()[Item::Call], rounds + 1);
    }
    // A number that depends on the packet, bounded before; a loop in the function, and a callback in a loop.
    let bounded =
        "r6 = *(u32 *)(r1 + 12)\n r6 &= 7\n r1 = r6\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n exit
         f: r0 = 0\n again: r0 += 1\n if r0 < 3 goto again\n r0 = 0\n exit";
    assert_eq!(check(bounded).unwrap().most()[Item::Instruction], 8 + 7 * (1 + 3 * 2 + 2));
    let nested = "r1 = 3\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n exit
         f: r1 = 4\n r2 = pc g ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 0\n exit\n g: r0 = 0\n exit";
    let verified = check(nested).unwrap();
    assert_eq!(verified.most()[Item::Instruction], 6 + 3 * (7 + 4 * 2));
    assert_eq!((run(nested), verified.frames()), (Ok(3), 3));
}

/// The verifier's facts hold at run time: none is stopped, and none exceeds its cost.
#[test]
fn what_is_let_in_runs() {
    for text in [
        calling("5", ADDS),
        calling("300", ADDS),
        // A pointer that moves in every round, compared in each.
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n *(u64 *)(r10 - 16) = r1\n *(u64 *)(r10 - 8) = r2\n \
         r1 = 90
         r2 = pc f ll\n r3 = r10\n r3 += -16\n r4 = 0\n call loop\n exit
         f: r3 = *(u64 *)(r2 + 0)\n r4 = *(u64 *)(r2 + 8)\n r5 = r3\n r5 += 1\n r0 = 1\n if r5 > r4 goto out
         r0 = *(u8 *)(r3 + 0)\n *(u64 *)(r2 + 0) = r5\n r0 = 0\n out: exit"
            .into(),
        // The packet is moved in a round.
        "r6 = r1\n *(u64 *)(r10 - 8) = r1\n r1 = 3\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = 0\n call \
         loop\n r0 = 2\n exit
         f: r1 = *(u64 *)(r2 + 0)\n r2 = 1\n call xdp_adjust_head\n r0 = 0\n exit"
            .into(),
    ] {
        let verified = check(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let mut bench = Bench::new(&[7; 64], Maps::new(&[], 1, 0).unwrap());
        bench.budget = verified.most()[Item::Instruction].into();
        bench.run(&verified.program().code).unwrap_or_else(|stopped| panic!("{stopped}\n{text}"));
    }
}

#[test]
fn attacks_are_refused() {
    let argument =
        |number, wanted, found| Rejection::Argument { helper: Helper::Loop, number, wanted, found };
    let range = |number, high, min, max| Rejection::ArgumentRange {
        helper: Helper::Loop,
        number,
        low: 0,
        high,
        min,
        max,
    };
    let returns = |what: &str| Rejection::CallbackReturns { helper: Helper::Loop, what: what.into() };
    let f = "\n r0 = 0\n exit\n f: r0 = 0\n exit";
    for (text, slot, fault) in [
        // The number of rounds is unknown or too high; flags.
        (format!("r1 = *(u32 *)(r1 + 12)\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop{f}"), 5,
            range(1, 1 << 23, 0, 0xffff_ffff)),
        (format!("r1 = 8388609\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop{f}"), 5,
            range(1, 1 << 23, (1 << 23) + 1, (1 << 23) + 1)),
        (format!("r1 = 1\n r2 = pc f ll\n r3 = 0\n r4 = 1\n call loop{f}"), 5, range(4, 0, 1, 1)),
        // Invalid callbacks and arguments.
        ("r1 = 1\n r2 = 7\n r3 = 0\n r4 = 0\n call loop\n exit".into(), 4,
            argument(2, Argument::Function, "a number")),
        (format!("r6 = r1\n r1 = 1\n r2 = pc f ll\n r3 = r6\n r4 = 0\n call loop{f}"), 6,
            argument(3, Argument::StackOrNull, "the context")),
        // A function's address becomes a number when stored, passed or returned; arithmetic on it is invalid.
        (format!("r2 = pc f ll\n *(u64 *)(r10 - 8) = r2\n r2 = *(u64 *)(r10 - 8)\n r1 = 1\n r3 = 0\n r4 = \
            0\n call loop{f}"), 7, argument(2, Argument::Function, "a number")),
        ("r1 = pc f ll\n call g\n r0 = 0\n exit\n g: r2 = r1\n r1 = 1\n r3 = 0\n r4 = 0\n call loop\n r0 = \
            0\n exit\n f: r0 = 0\n exit".into(), 9, argument(2, Argument::Function, "a number")),
        ("call g\n r2 = r0\n r1 = 1\n r3 = 0\n r4 = 0\n call loop\n r0 = 0\n exit\n g: r0 = pc f ll\n exit\n \
            f: r0 = 0\n exit".into(), 5, argument(2, Argument::Function, "a number")),
        (format!("r2 = pc f ll\n r2 += 1{f}"), 2,
            Rejection::PointerArithmetic { register: Register::R2, what: "a function" }),
        (format!("r0 = pc f ll\n r1 = *(u64 *)(r0 + 0){f}"), 2,
            Rejection::NotAddress { register: Register::R0, what: "a function" }),
        ("r0 = pc f ll\n exit\n f: r0 = 0\n exit".into(), 2, Rejection::Returns { what: "a function" }),
        // It must return 0 or 1.
        (calling("3", "r0 = 2\n exit"), 7, returns("2 to 2")),
        (calling("3", "r0 = -1\n exit"), 7, returns("18446744073709551615 to 18446744073709551615")),
        (calling("3", "r0 = r2\n exit"), 7, returns("an address in the stack")),
        (calling("3", "exit"), 7, returns("nothing")),
        // It calls itself, or too deeply.
        (calling("3", "r1 = 1\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 0\n exit"), 11,
            Rejection::Recursion),
        // Which one depends on the path.
        ("r6 = *(u32 *)(r1 + 12)\n r2 = pc f ll\n if r6 == 0 goto +2\n r2 = pc g ll\n r1 = 1\n r3 = 0\n r4 = \
            0\n call loop\n r0 = 0\n exit
          f: r0 = 0\n exit\n g: r0 = 1\n exit".into(), 9, Rejection::Callbacks { helper: Helper::Loop }),
    ] {
        match check(&text) {
            Ok(_) => panic!("let in:\n{text}"),
            Err(found) => assert_eq!(found, (slot, fault), "{text}"),
        }
    }
}

/// What holds in the first round need not hold in later ones, nor after them.
#[test]
fn later_rounds_are_followed() {
    // The accessed stack offset moves in each round: beyond it in the ninth.
    let moves = |count: u32| {
        format!(
            "*(u64 *)(r10 - 8) = 0\n r1 = r10\n r1 += -64\n *(u64 *)(r10 - 72) = r1\n r1 = {count}\n r2 = pc \
             f ll\n r3 = r10
             r3 += -72\n r4 = 0\n call loop\n r0 = 0\n exit
             f: r3 = *(u64 *)(r2 + 0)\n *(u64 *)(r3 + 0) = 1\n r3 += 8\n *(u64 *)(r2 + 0) = r3\n r0 = 0\n \
             exit"
        )
    };
    assert!(check(&moves(8)).is_ok());
    let (slot, fault) = check(&moves(9)).unwrap_err();
    assert!(slot == 14 && matches!(fault, Rejection::Bounds { .. }), "{slot} {fault}");
    // An index incremented in each round: the bound must hold for all of them, and after the loop.
    let index = |count: u32| {
        format!(
            "{}\n f: r3 = *(u64 *)(r2 + 0)\n r3 += 1\n *(u64 *)(r2 + 0) = r3\n r0 = 0\n exit",
            format_args!(
                "*(u64 *)(r10 - 8) = 0\n r1 = {count}\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = 0\n call \
                 loop
                 r1 = *(u64 *)(r10 - 8)\n r2 = r10\n r2 += -16\n r2 += r1\n *(u8 *)(r2 + 0) = 1\n r0 = 0\n \
                 exit"
            )
        )
    };
    assert!(check(&index(15)).is_ok());
    assert!(matches!(check(&index(16)).unwrap_err(), (12, Rejection::Bounds { .. })));
    // After many rounds it is unknown.
    assert!(matches!(check(&index(100_000)).unwrap_err().1, Rejection::Bounds { .. }));
    // A flag set by a round enables an operation in a later one.
    let later = |count: u32| {
        calling(
            &count.to_string(),
            "r3 = *(u64 *)(r2 + 0)\n if r3 == 2 goto bad\n r3 += 1\n *(u64 *)(r2 + 0) = r3\n r0 = 0\n exit
             bad: r0 = *(u64 *)(r3 + 0)\n exit",
        )
    };
    assert!(check(&later(2)).is_ok());
    assert!(matches!(check(&later(3)).unwrap_err().1, Rejection::NotAddress { .. }));
    // As well as one that is set only after another state in a previous round.
    assert!(matches!(check(&later(1 << 20)).unwrap_err().1, Rejection::NotAddress { .. }));
}

/// Lines are accessed for the first time in each round, because a round may precede others.
#[test]
fn no_round_is_spared_a_line() {
    let text = "r1 = 64\n call lw_flow_state\n r1 = *(u8 *)(r0 + 0)\n r1 = 5\n r2 = pc f ll\n r3 = 0\n r4 = \
        0\n call loop\n exit
         f: r1 = 64\n call lw_flow_state\n r1 = *(u8 *)(r0 + 0)\n r0 = 0\n exit";
    assert_eq!(check(text).unwrap().most()[Item::StateLine], 1 + 5);
}

/// Neither many rounds nor many states make verification slow.
#[test]
fn hostile_loops_end_soon() {
    let began = std::time::Instant::now();
    // Packet addresses that are never the same, in more and more rounds.
    let text =
        "r2 = *(u32 *)(r1 + 0)\n *(u64 *)(r10 - 8) = r2\n r1 = 8388608\n r2 = pc f ll\n r3 = r10\n r3 \
        += -8\n r4 = 0
         call loop\n r0 = 0\n exit
         f: r6 = r2\n call get_prandom_u32\n r0 &= 255\n r3 = *(u64 *)(r6 + 0)\n r3 += r0\n *(u64 *)(r6 + 0) \
         = r3
         r0 &= 1\n exit";
    // After some rounds, the stored value is unknown, and numbers can be added to it.
    check(text).unwrap();
    // Three nested loops, each with the maximum number of rounds.
    let text = "r1 = 8388608\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n exit
         f: r1 = 8388608\n r2 = pc g ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 0\n exit
         g: r1 = 8388608\n r2 = pc h ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 0\n exit\n h: r0 = 0\n exit";
    assert_eq!(check(text).unwrap_err(), (5, Rejection::TooLong { item: Item::Instruction }));
    // One, with 512 bytes in each round.
    let hashing =
        "r1 = 512\n call lw_flow_state\n r1 = r0\n r2 = 512\n r3 = 0\n call lw_hash\n r0 = 0\n exit";
    let error = check(&calling("8388608", hashing)).unwrap_err();
    assert_eq!(error, (7, Rejection::TooLong { item: Item::StateByte }));
    let text = error.1.to_string();
    assert!(text.contains("\"state-byte\" a packet; lower the number of rounds"), "{text}");
    assert!(check(&calling("8388607", hashing)).is_ok());
    assert!(began.elapsed().as_secs() < 20);
}
