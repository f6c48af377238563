//! What programs compute, reach and may not do, as the interpreter has it: expected values by hand from RFC 9669.

mod harness;

use harness::{Bench, ROOM, Ran};
use longwire_program::map::{MapError, NO_EXIST};
use longwire_program::{Abort, Fault, MapKind, MapSpec, Maps, Redirect, Stopped, Verdict, assemble, hash};

/// With a packet of 64 bytes, 0, 1, 2, …, and no maps.
fn plain() -> Bench {
    with_maps(&[]).unwrap()
}

fn run(bench: &mut Bench, text: &str) -> Result<Ran, Stopped> {
    bench.run(&assemble(text).unwrap())
}

/// What a program returns.
fn returned(text: &str) -> u64 {
    run(&mut plain(), text).unwrap().returned
}

/// Why a program was stopped, and where.
fn stopped(text: &str) -> (usize, Fault) {
    let Stopped { slot, fault } = run(&mut plain(), text).unwrap_err();
    (slot, fault)
}

fn with_maps(specs: &[MapSpec]) -> Result<Bench, MapError> {
    let packet: Vec<u8> = (0..64).collect();
    Ok(Bench::new(&packet, Maps::new(specs, 4, 9)?))
}

/// The end of a map's lookup of the word that is in `w0`.
const LOOKUP: &str = "*(u32 *)(r10 - 4) = r0
    r2 = r10
    r2 += -4
    r1 = map[0] ll
    call map_lookup_elem";

#[test]
fn arithmetic_is_the_rfcs() {
    const MINUS_13: u64 = -13i64 as u64;
    for (text, wanted) in [
        ("r0 = -1\n r0 += 2", 1),
        ("r0 = 1\n w0 -= 2", 0xffff_ffff),
        ("r0 = 1\n r0 -= 2", u64::MAX),
        ("r0 = 0x100000001 ll\n w0 += 1", 2),
        ("r0 = 0x100000001 ll\n r0 *= r0", 0x2_0000_0001),
        // By zero: a quotient of 0, and the dividend as the remainder; cut to 32 bits if it is of 32.
        ("r0 = 7\n r1 = 0\n r0 /= r1", 0),
        ("r0 = 7\n r0 s/= 0", 0),
        ("r0 = 0x700000007 ll\n r0 %= 0", 0x7_0000_0007),
        ("r0 = 0x700000007 ll\n w0 %= 0", 7),
        ("r0 = 0x700000007 ll\n w0 s%= 0", 7),
        // The immediate is sign-extended for unsigned division of 64 bits: 2⁶⁴-1 / (2⁶⁴-2) = 1.
        ("r0 = -1\n r0 /= -2", 1),
        ("r0 = -1\n w0 /= 16", 0x0fff_ffff),
        ("r0 = -13\n r0 s/= 3", -4i64 as u64),
        ("r0 = -13\n r0 s%= 3", -1i64 as u64),
        ("r0 = 13\n r0 s%= -3", 1),
        ("r0 = -13\n w0 s/= 3", 0xffff_fffc),
        // The one quotient that is too large.
        ("r0 = 0x8000000000000000 ll\n r0 s/= -1", 1 << 63),
        ("r0 = 0x8000000000000000 ll\n r0 s%= -1", 0),
        ("r0 = 0x80000000 ll\n w0 s/= -1", 0x8000_0000),
        ("r0 = 12\n r0 |= 3", 15),
        ("r0 = -1\n r0 &= -16", -16i64 as u64),
        ("r0 = -1\n w0 ^= -1", 0),
        // Shifts by the lower 6 or 5 bits.
        ("r0 = 1\n r0 <<= 63", 1 << 63),
        ("r0 = 1\n r1 = 65\n r0 <<= r1", 2),
        ("r0 = 1\n r1 = 33\n w0 <<= w1", 2),
        ("r0 = -16\n r0 >>= 60", 15),
        ("r0 = -16\n w0 >>= 28", 15),
        ("r0 = -16\n r0 s>>= 2", -4i64 as u64),
        ("r0 = -16\n w0 s>>= 2", 0xffff_fffc),
        ("r0 = 5\n r0 = -r0", -5i64 as u64),
        ("r0 = 5\n w0 = -w0", 0xffff_fffb),
        ("r0 = -13\n w0 = w0", MINUS_13 & 0xffff_ffff),
        ("r1 = 0x180 ll\n r0 = (s8)r1", -128i64 as u64),
        ("r1 = 0x18000 ll\n r0 = (s16)r1", -32768i64 as u64),
        ("r1 = 0x180000000 ll\n r0 = (s32)r1", -2147483648i64 as u64),
        ("r1 = 0x180 ll\n w0 = (s8)w1", 0xffff_ff80),
        ("r0 = 0x1122334455667788 ll\n r0 = be16 r0", 0x8877),
        ("r0 = 0x1122334455667788 ll\n r0 = be32 r0", 0x8877_6655),
        ("r0 = 0x1122334455667788 ll\n r0 = be64 r0", 0x8877_6655_4433_2211),
        ("r0 = 0x1122334455667788 ll\n r0 = le16 r0", 0x7788),
        ("r0 = 0x1122334455667788 ll\n r0 = le32 r0", 0x5566_7788),
        ("r0 = 0x1122334455667788 ll\n r0 = bswap32 r0", 0x8877_6655),
    ] {
        assert_eq!(returned(&format!("{text}\n exit")), wanted, "{text}");
    }
}

#[test]
fn branches_compare_as_they_say() {
    for (condition, wanted) in [
        // r1 = -1, r2 = 1; w1 = 2³²-1, w2 = 1.
        ("r1 == r2", false),
        ("r1 != r2", true),
        ("r1 & r2", true),
        ("r1 > r2", true),
        ("r1 >= r2", true),
        ("r1 < r2", false),
        ("r1 <= r2", false),
        ("r1 s> r2", false),
        ("r1 s>= r2", false),
        ("r1 s< r2", true),
        ("r1 s<= r2", true),
        ("r1 == -1", true),
        ("r1 > -2", true),
        ("r1 s> -2", true),
        ("r2 & 2", false),
        ("w1 s< w2", true),
        ("w1 > w2", true),
        ("w1 == -1", true),
        ("w1 >= -1", true),
        // r3 = 2³² + 1: the upper half counts only in 64 bits.
        ("r3 == r2", false),
        ("w3 == w2", true),
        ("w3 s<= 1", true),
    ] {
        let text = format!(
            "r1 = -1\n r2 = 1\n r3 = 0x100000001 ll\n r0 = 1\n if {condition} goto out\n r0 = 0\n out: exit"
        );
        assert_eq!(returned(&text), u64::from(wanted), "{condition}");
    }
}

#[test]
fn memory_is_little_endian_and_extends_as_told() {
    for (text, wanted) in [
        ("r0 = *(u8 *)(r10 - 8)", 0x88),
        ("r0 = *(u16 *)(r10 - 6)", 0x9566),
        ("r0 = *(u32 *)(r10 - 4)", 0x1122_3344),
        ("r0 = *(u64 *)(r10 - 8)", 0x1122_3344_9566_7788),
        ("r0 = *(s8 *)(r10 - 8)", -120i64 as u64),
        ("r0 = *(s16 *)(r10 - 6)", 0xffff_ffff_ffff_9566),
        ("r0 = *(s32 *)(r10 - 8)", 0xffff_ffff_9566_7788),
        ("*(u8 *)(r10 - 7) = -1\n r0 = *(u64 *)(r10 - 8)", 0x1122_3344_9566_ff88),
        ("*(u64 *)(r10 - 8) = -2\n r0 = *(u64 *)(r10 - 8)", -2i64 as u64),
        ("*(u32 *)(r10 - 8) = r10\n r0 = *(u32 *)(r10 - 8)", 0x1000),
        // Atomics on the stack; what is fetched of 4 bytes has zeros above.
        ("r2 = 1\n lock *(u64 *)(r10 - 8) += r2\n r0 = *(u64 *)(r10 - 8)", 0x1122_3344_9566_7789),
        ("r0 = -1\n r0 = atomic_fetch_add((u32 *)(r10 - 8), r0)", 0x9566_7788),
        (
            "r0 = -1\n r0 = atomic_fetch_and((u32 *)(r10 - 8), r0)\n r0 = *(u64 *)(r10 - 8)",
            0x1122_3344_9566_7788,
        ),
        ("r0 = 1\n r0 = xchg_64(r10 - 8, r0)", 0x1122_3344_9566_7788),
        ("r0 = 1\n r2 = 2\n r0 = cmpxchg_64(r10 - 8, r0, r2)", 0x1122_3344_9566_7788),
        (
            "r0 = 0x9566778895667788 ll\n r2 = 2\n r0 = cmpxchg_32(r10 - 8, r0, r2)\n r0 = *(u64 *)(r10 - 8)",
            0x1122_3344_0000_0002,
        ),
    ] {
        let text = format!("r3 = 0x1122334495667788 ll\n *(u64 *)(r10 - 8) = r3\n {text}\n exit");
        assert_eq!(returned(&text), wanted, "{text}");
    }
}

#[test]
fn the_context_is_xdp_md() {
    for (text, wanted) in [
        ("r2 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r2 + 5)", 5),
        ("r2 = *(u32 *)(r1 + 0)\n r0 = *(u32 *)(r1 + 4)\n r0 -= r2", 64),
        ("r2 = *(u32 *)(r1 + 0)\n r0 = *(u32 *)(r1 + 8)\n r0 -= r2", 0),
        ("r2 = *(u32 *)(r1 + 0)\n r0 = *(u32 *)(r1 + 4)\n w0 -= w2", 64),
        ("r2 = *(u32 *)(r1 + 4)\n r0 = *(u8 *)(r2 - 1)", 63),
        ("r2 = *(u32 *)(r1 + 0)\n r0 = *(u16 *)(r2 + 13)", 0x0e0d),
        ("r0 = *(u32 *)(r1 + 12)", 3),
        ("r0 = *(u32 *)(r1 + 16)", 0x85),
        ("r0 = *(u32 *)(r1 + 20)", 0),
    ] {
        assert_eq!(returned(&format!("{text}\n exit")), wanted, "{text}");
    }
    let ran = run(&mut plain(), "r2 = *(u32 *)(r1 + 0)\n *(u32 *)(r2 + 7) = -1\n r0 = 2\n exit").unwrap();
    assert_eq!((ran.verdict, &ran.packet[5..13]), (Verdict::Pass, &[5, 6, 255, 255, 255, 255, 11, 12][..]));
}

#[test]
fn functions_have_frames_and_keep_their_callers_registers() {
    let text = "r6 = 6
        *(u64 *)(r10 - 8) = 100
        r1 = r10
        r1 += -8
        r2 = 20
        call sum
        r0 += r6
        exit
   sum: r6 = *(u64 *)(r1 + 0)      ; the caller's frame
        *(u64 *)(r10 - 8) = r6     ; its own
        *(u64 *)(r1 + 0) = 1
        r0 = *(u64 *)(r10 - 8)
        r0 += r2
        exit";
    let ran = run(&mut plain(), text).unwrap();
    assert_eq!((ran.returned, ran.instructions), (126, 14));
}

/// Where the packet begins, and where the program's stack ends.
const PACKET: u64 = 0x2_0000_0000 + ROOM as u64;
const STACK: u64 = 0x3_0000_1000;

#[test]
fn forbidden_accesses_stop_the_program() {
    for (text, slot, fault) in [
        ("exit", 0, Fault::Register(0)),
        ("r0 = 0", 1, Fault::End),
        ("r0 = r3\n exit", 0, Fault::Register(3)),
        ("a: goto a", 0, Fault::Budget),
        ("r0 = *(u32 *)(r1 + 2)\n exit", 0, Fault::OutOfBounds { address: 0x1_0000_0002, size: 4 }),
        ("r0 = *(u64 *)(r1 + 0)\n exit", 0, Fault::OutOfBounds { address: 0x1_0000_0000, size: 8 }),
        ("r0 = *(s32 *)(r1 + 12)\n exit", 0, Fault::OutOfBounds { address: 0x1_0000_000c, size: 4 }),
        ("*(u32 *)(r1 + 0) = 0\n exit", 0, Fault::ReadOnly { address: 0x1_0000_0000, size: 4 }),
        (
            "r2 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r2 + 64)\n exit",
            1,
            Fault::OutOfBounds { address: PACKET + 64, size: 1 },
        ),
        (
            "r2 = *(u32 *)(r1 + 0)\n r0 = *(u32 *)(r2 + 61)\n exit",
            1,
            Fault::OutOfBounds { address: PACKET + 61, size: 4 },
        ),
        (
            "r2 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r2 - 1)\n exit",
            1,
            Fault::OutOfBounds { address: PACKET - 1, size: 1 },
        ),
        (
            "r2 = *(u32 *)(r1 + 0)\n lock *(u32 *)(r2 + 0) += r1\n exit",
            1,
            Fault::ReadOnly { address: PACKET, size: 4 },
        ),
        ("r0 = *(u64 *)(r10 - 8)\n exit", 0, Fault::Unwritten { address: STACK - 8, size: 8 }),
        (
            "*(u32 *)(r10 - 8) = 0\n r0 = *(u64 *)(r10 - 8)\n exit",
            1,
            Fault::Unwritten { address: STACK - 8, size: 8 },
        ),
        ("*(u64 *)(r10 - 15) = 0\n exit", 0, Fault::Misaligned { address: STACK - 15, size: 8 }),
        ("*(u64 *)(r10 + 0) = 0\n exit", 0, Fault::OutOfBounds { address: STACK, size: 8 }),
        ("*(u64 *)(r10 - 520) = 0\n exit", 0, Fault::OutOfBounds { address: STACK - 520, size: 8 }),
        ("r0 = *(u8 *)(r10 + 32767)\n exit", 0, Fault::OutOfBounds { address: STACK + 32767, size: 1 }),
        ("r2 = 0\n r0 = *(u8 *)(r2 + 0)\n exit", 1, Fault::OutOfBounds { address: 0, size: 1 }),
        (
            "r2 = map[0] ll\n r0 = *(u8 *)(r2 + 0)\n exit",
            2,
            Fault::OutOfBounds { address: 0x200_0000_0000, size: 1 },
        ),
    ] {
        assert_eq!(stopped(text), (slot, fault), "{text}");
    }
}

#[test]
fn forbidden_calls_stop_the_program() {
    for (text, slot, fault) in [
        ("call 9999\n exit", 0, Fault::Helper(9999)),
        ("call 0\n exit", 0, Fault::Helper(0)),
        ("call kernel 1\n exit", 0, Fault::Kernel),
        ("call redirect\n exit", 0, Fault::Register(2)),
        ("r2 = 0\n call map_lookup_elem\n exit", 1, Fault::Argument(1)),
        ("r1 = 0\n r2 = 0\n call xdp_adjust_head\n exit", 2, Fault::Argument(1)),
        (
            "r1 = r10\n r1 += -8\n r2 = 8\n r3 = 0\n call lw_hash\n exit",
            4,
            Fault::Unwritten { address: STACK - 8, size: 8 },
        ),
        ("r1 = r10\n r2 = 0\n r3 = 0\n call lw_hash\n exit", 3, Fault::Argument(2)),
        (
            "r1 = r10\n r2 = 8\n r3 = 0\n call lw_hash\n exit",
            3,
            Fault::OutOfBounds { address: STACK, size: 8 },
        ),
        ("r1 = 65\n call lw_flow_state\n exit", 1, Fault::Argument(1)),
        (
            "r1 = 64\n call lw_flow_state\n *(u64 *)(r0 + 64) = 0\n exit",
            2,
            Fault::OutOfBounds { address: 0x4_0000_0040, size: 8 },
        ),
        ("call get_smp_processor_id\n r0 = r1\n exit", 1, Fault::Register(1)),
        ("a: call a\n exit", 0, Fault::Depth),
        // What a function wrote on its stack is gone when it returns, and the caller's r6 was never its to read.
        (
            "call f\n call g\n exit\n f: *(u64 *)(r10 - 8) = 1\n r0 = 0\n exit\n g: r0 = *(u64 *)(r10 - 8)\n exit",
            6,
            Fault::Unwritten { address: STACK - 520, size: 8 },
        ),
        ("r6 = 1\n call f\n exit\n f: r0 = r6\n exit", 3, Fault::Register(6)),
        (
            "r1 = r10\n call f\n exit\n f: r0 = *(u64 *)(r1 - 516)\n exit",
            3,
            Fault::OutOfBounds { address: STACK - 516, size: 8 },
        ),
    ] {
        assert_eq!(stopped(text), (slot, fault), "{text}");
    }
}

#[test]
fn verdicts_and_effects_are_noted() {
    for (text, wanted) in [
        ("r0 = 0", Verdict::Aborted(Abort::Returned)),
        ("r0 = 3", Verdict::Transmit),
        ("r0 = 4", Verdict::Aborted(Abort::Nowhere)),
        ("r0 = 77", Verdict::Aborted(Abort::UnknownCode(77))),
        ("r1 = 9\n r2 = 0\n call redirect", Verdict::Redirect(Redirect::Port(9))),
        ("r1 = 9\n r2 = 1\n call redirect", Verdict::Aborted(Abort::Returned)),
        ("r1 = 12\n call lw_redirect_link", Verdict::Redirect(Redirect::Link(12))),
        ("r1 = 5\n call lw_drop", Verdict::Drop(Some(5))),
        ("r1 = 63\n call lw_drop", Verdict::Drop(Some(63))),
        // All that are beyond count as one; the lower half counts.
        ("r1 = 64\n call lw_drop", Verdict::Drop(Some(64))),
        ("r1 = -1\n call lw_drop", Verdict::Drop(Some(64))),
        ("r1 = 0x700000005 ll\n call lw_drop", Verdict::Drop(Some(5))),
        ("r1 = 9\n r2 = 0\n call redirect\n r0 = 2", Verdict::Pass),
    ] {
        assert_eq!(run(&mut plain(), &format!("{text}\n exit")).unwrap().verdict, wanted, "{text}");
    }
    let text = "r1 = 7\n call lw_choose_queue\n r6 = r0\n r1 = 65536\n call lw_choose_queue\n r6 += r0
        r1 = -1\n call lw_mark\n r1 = r10\n r1 += -8\n *(u64 *)(r1 + 0) = 0\n r2 = 8\n call trace_printk\n r0 = r6\n exit";
    let ran = run(&mut plain(), text).unwrap();
    assert_eq!((ran.returned as i64, ran.effects.queue, ran.effects.mark), (-22, Some(7), Some(u32::MAX)));
    assert_eq!((ran.effects.traces, ran.effects.redirect, ran.effects.reason), (1, None, None));
    let text = "call lw_read_mark\n r6 = r0\n r1 = 5\n call lw_mark\n call lw_read_mark\n r0 <<= 32\n r0 |= r6\n exit";
    assert_eq!(run(&mut plain(), text).unwrap().returned, 0x5_9000_0001, "that of the context, then its own");
    let ran = run(&mut plain(), "r1 = 3\n call lw_choose_link\n exit").unwrap();
    assert_eq!((ran.returned, ran.effects.link, ran.effects.redirect), (0, Some(3), None));
}

#[test]
fn transport_headers_are_found() {
    let frame = |kind: u16, ip: &[u8]| [&[0; 12], &kind.to_be_bytes()[..], ip].concat();
    let four = |fragment: [u8; 2]| {
        let head = [
            0x46,
            0,
            0,
            32,
            0,
            0,
            fragment[0],
            fragment[1],
            64,
            17,
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
            1,
            1,
            1,
            0,
        ];
        frame(0x800, &[&head[..], &[0; 8]].concat())
    };
    let six = |next: u8, payload: &[u8]| {
        let head = [&[0x60, 0, 0, 0, 0, payload.len() as u8, next, 64][..], &[0xfd; 32]].concat();
        frame(0x86dd, &[&head[..], payload].concat())
    };
    let options = [17, 0, 1, 4, 0, 0, 0, 0];
    for (packet, found) in [
        (four([0, 0]), 38 << 16 | 17),
        (four([0x20, 0]), 38 << 16 | 0x100 | 17),
        (four([0, 1]), 0x100 | 17),
        (six(6, &[0; 20]), 54 << 16 | 6),
        (six(60, &[options, [0; 8]].concat()), 62 << 16 | 17),
        (six(44, &[17, 0, 0, 1, 0, 0, 0, 9]), 62 << 16 | 0x100 | 17),
        (six(44, &[17, 0, 0, 9, 0, 0, 0, 9]), 0x100 | 17),
        (six(50, &[0; 16]), 50),
        (six(59, &[]), 59),
        (six(60, &options[..1]), 60 - 0x1_0000),
        (six(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(9)), 60 - 0x1_0000),
        (six(44, &[60, 0, 0, 1, 0, 0, 0, 9]), 0x100 + 60 - 0x1_0000),
        (six(6, &[])[..40].to_vec(), -22),
        (frame(0x806, &[0; 28]), -22),
        (vec![0; 13], -22),
    ] {
        let ran =
            run(&mut Bench::new(&packet, Maps::new(&[], 1, 1).unwrap()), "call lw_transport\n exit").unwrap();
        assert_eq!(ran.returned as i64, found, "{packet:02x?}");
    }
}

#[test]
fn programs_are_told_time_worker_and_dice() {
    for (helper, wanted) in [
        ("ktime_get_ns", 5_000_000_123),
        ("ktime_get_boot_ns", 5_000_000_123),
        ("ktime_get_coarse_ns", 5_000_000_123),
        ("jiffies64", 5_000),
        ("get_smp_processor_id", 1),
        ("get_numa_node_id", 0),
        ("get_prandom_u32", 1),
        ("get_prandom_u32\n call get_prandom_u32", 2),
        ("xdp_get_buff_len", 64),
    ] {
        assert_eq!(returned(&format!("call {helper}\n exit")), wanted, "{helper}");
    }
}

#[test]
fn the_packets_ends_move() {
    let adjust = |helper: &str, by: i32| {
        let text = format!("r2 = {by}\n call {helper}\n exit");
        let ran = run(&mut plain(), &text).unwrap();
        (ran.returned as i64, ran.packet.len(), ran.packet[0], *ran.packet.last().unwrap())
    };
    assert_eq!(adjust("xdp_adjust_head", 14), (0, 50, 14, 63));
    assert_eq!(adjust("xdp_adjust_head", -32), (0, 96, 0xee, 63));
    assert_eq!(adjust("xdp_adjust_head", -33), (-22, 64, 0, 63));
    assert_eq!(adjust("xdp_adjust_head", 51), (-22, 64, 0, 63));
    assert_eq!(adjust("xdp_adjust_tail", 32), (0, 96, 0, 0));
    assert_eq!(adjust("xdp_adjust_tail", 33), (-22, 64, 0, 63));
    assert_eq!(adjust("xdp_adjust_tail", -50), (0, 14, 0, 13));
    assert_eq!(adjust("xdp_adjust_tail", -51), (-22, 64, 0, 63));
}

#[test]
fn bytes_are_copied_to_and_from_the_packet() {
    let copy = |helper: &str, offset: u32, size: u32| {
        let text = format!(
            "*(u64 *)(r10 - 8) = -1\n r2 = {offset}\n r3 = r10\n r3 += -8\n r4 = {size}\n call {helper}
             r6 = r0\n r0 = *(u64 *)(r10 - 8)\n if r6 == 0 goto out\n r0 = r6\n out: exit"
        );
        let ran = run(&mut plain(), &text).unwrap();
        (ran.returned, ran.packet.iter().filter(|&&byte| byte == 255).count())
    };
    assert_eq!(copy("xdp_load_bytes", 61, 3), (0xffff_ffff_ff3f_3e3d, 0));
    assert_eq!(copy("xdp_load_bytes", 61, 4), (-22i64 as u64, 0));
    assert_eq!(copy("xdp_load_bytes", 65536, 4), (-14i64 as u64, 0));
    assert_eq!(copy("xdp_store_bytes", 0, 8), (u64::MAX, 8));
    assert_eq!(copy("xdp_store_bytes", 57, 8), (-22i64 as u64, 0));
}

#[test]
fn checksums_differ_by_what_changed() {
    // From 10.0.0.1 to 10.0.0.2, as words of the machine's order: ~0x000a + ~0x0100 + 0x000a + 0x0200, folded.
    let diff = |from: i32, to: i32, seed: i32| {
        returned(&format!(
            "*(u32 *)(r10 - 8) = {from}\n *(u32 *)(r10 - 4) = {to}\n r1 = r10\n r1 += -8\n r2 = 4
             r3 = r10\n r3 += -4\n r4 = 4\n r5 = {seed}\n call csum_diff\n exit"
        ))
    };
    assert_eq!(diff(0x0100_000a, 0x0200_000a, 0), 0x0100);
    assert_eq!(diff(0x0100_000a, 0x0200_000a, 0xff00), 0x0001);
    assert_eq!(diff(0x0200_000a, 0x0100_000a, 0), 0xfeff);
    // 74565 is 0x12345.
    let one = "*(u32 *)(r10 - 4) = 74565\n r3 = r10\n r3 += -4\n r5 = 7";
    assert_eq!(
        returned(&format!("{one}\n r1 = 0\n r2 = 0\n r4 = 4\n call csum_diff\n exit")),
        0x2345 + 1 + 7
    );
    assert_eq!(
        returned(&format!("{one}\n r1 = r3\n r2 = 4\n r3 = 0\n r4 = 0\n call csum_diff\n exit")),
        0xffff - 0x2346 + 7
    );
    assert_eq!(returned(&format!("{one}\n r1 = 0\n r2 = 0\n r4 = 3\n call csum_diff\n exit")), -22i64 as u64);
    assert_eq!(returned(&format!("{one}\n r1 = 0\n r2 = 0\n r4 = 0\n call csum_diff\n exit")), 7);
}

#[test]
fn hashes_are_the_crates() {
    let text = "r3 = 0x1122334455667788 ll\n *(u64 *)(r10 - 8) = r3\n r1 = r10\n r1 += -8\n r2 = 6\n r3 = 42\n call lw_hash\n exit";
    assert_eq!(returned(text), hash(42, &0x1122_3344_5566_7788u64.to_le_bytes()[..6]));
}

#[test]
fn state_stays_from_packet_to_packet() {
    let mut bench = plain();
    let text =
        "r1 = 16\n call lw_flow_state\n r2 = 1\n lock *(u64 *)(r0 + 8) += r2\n r0 = *(u64 *)(r0 + 8)\n exit";
    let counts: Vec<u64> = (0..3).map(|_| run(&mut bench, text).unwrap().returned).collect();
    assert_eq!(counts, [1, 2, 3]);
    assert_eq!(bench.state.get()[..16], [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    let mut bytes = bench.state.get();
    bytes[8] = 41;
    assert!(bench.state.set(&bytes) && !bench.state.set(&bytes[1..]));
    assert_eq!(run(&mut bench, text).unwrap().returned, 42);
}

#[test]
fn maps_are_looked_up_updated_and_deleted() {
    let update = |flags: u64| {
        format!(
            "*(u32 *)(r10 - 4) = 7\n *(u64 *)(r10 - 16) = 99\n r1 = map[0] ll\n r2 = r10\n r2 += -4
             r3 = r10\n r3 += -16\n r4 = {flags}\n call map_update_elem\n exit"
        )
    };
    let delete = "*(u32 *)(r10 - 4) = 7\n r1 = map[0] ll\n r2 = r10\n r2 += -4\n call map_delete_elem\n exit";
    let lookup = format!("w0 = 7\n {LOOKUP}\n if r0 == 0 goto out\n r0 = *(u64 *)(r0 + 0)\n out: exit");
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Hash, 4, 8, 4)]).unwrap();
    let mut returned = |text: &str| run(&mut bench, text).unwrap().returned as i64;
    assert_eq!((returned(&lookup), returned(delete)), (0, -2));
    assert_eq!(
        (returned(&update(2)), returned(&update(NO_EXIST)), returned(&update(1)), returned(&update(2))),
        (-2, 0, -17, 0)
    );
    assert_eq!((returned(&lookup), returned(&update(4))), (99, -22));
    assert_eq!((returned(delete), returned(&lookup)), (0, 0));

    // An array: what is beyond its end is not there.
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Array, 4, 8, 7)]).unwrap();
    let mut returned = |text: &str| run(&mut bench, text).unwrap().returned as i64;
    assert_eq!((returned(&lookup), returned(&update(0)), returned(delete)), (0, -7, -22));
}

#[test]
fn values_have_bounds_of_their_own() {
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Array, 4, 12, 4)]).unwrap();
    let base = 0x100_0000_0000;
    for (access, wanted) in [
        ("*(u64 *)(r0 + 0) = 1", None),
        ("*(u32 *)(r0 + 8) = 1", None),
        ("*(u32 *)(r0 + 12) = 1", Some(Fault::OutOfBounds { address: base + 28, size: 4 })),
        ("*(u64 *)(r0 + 8) = 1", Some(Fault::OutOfBounds { address: base + 24, size: 8 })),
        ("*(u8 *)(r0 - 1) = 1", Some(Fault::OutOfBounds { address: base + 15, size: 1 })),
        ("*(u16 *)(r0 + 1) = 1", Some(Fault::Misaligned { address: base + 17, size: 2 })),
    ] {
        let text = format!("w0 = 1\n {LOOKUP}\n {access}\n r0 = 0\n exit");
        assert_eq!(run(&mut bench, &text).err().map(|stopped| stopped.fault), wanted, "{access}");
    }
}

#[test]
fn each_worker_has_its_own_value() {
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::PerCpuArray, 4, 8, 4)]).unwrap();
    let text =
        format!("w0 = 2\n {LOOKUP}\n r1 = 1\n lock *(u64 *)(r0 + 0) += r1\n r0 = *(u64 *)(r0 + 0)\n exit");
    let counts: Vec<u64> = [0, 3, 3, 0, 1]
        .map(|worker| {
            bench.context.worker = worker;
            run(&mut bench, &text).unwrap().returned
        })
        .to_vec();
    assert_eq!(counts, [1, 1, 2, 2, 1]);
    let values: Vec<u8> =
        (0..4).map(|worker| bench.maps.all()[0].get(&[2, 0, 0, 0], worker).unwrap()[0]).collect();
    assert_eq!(values, [2, 1, 0, 2]);
}

#[test]
fn device_maps_redirect_and_nothing_else() {
    let mut bench = with_maps(&[MapSpec::new("ports", MapKind::DevMap, 4, 4, 4)]).unwrap();
    bench.maps.all()[0].set(&[2, 0, 0, 0], 0, &[6, 0, 0, 0], 0).unwrap();
    let mut redirect = |key: u32, flags: u32| {
        let text = format!("r1 = map[0] ll\n r2 = {key}\n r3 = {flags}\n call redirect_map\n exit");
        run(&mut bench, &text).unwrap().verdict
    };
    assert_eq!(redirect(2, 0), Verdict::Redirect(Redirect::Port(6)));
    assert_eq!(redirect(1, 2), Verdict::Pass);
    assert_eq!(redirect(9, 1), Verdict::Drop(None));
    assert_eq!(redirect(2, 8), Verdict::Aborted(Abort::Returned));
    // What an entry holds can be read, and not written.
    let entry = |then: &str| format!("w0 = 2\n {LOOKUP}\n {then}\n exit");
    assert_eq!(run(&mut bench, &entry("r0 = *(u32 *)(r0 + 0)")).unwrap().returned, 6);
    let fault = run(&mut bench, &entry("*(u32 *)(r0 + 0) = 7")).unwrap_err().fault;
    assert!(matches!(fault, Fault::ReadOnly { size: 4, .. }), "{fault}");
    // To a processor is where the packet is already.
    let mut bench = with_maps(&[MapSpec::new("cpus", MapKind::CpuMap, 4, 4, 4)]).unwrap();
    bench.maps.all()[0].set(&[2, 0, 0, 0], 0, &[192, 0, 0, 0], 0).unwrap();
    let mut redirect = |key: u32, flags: u32| {
        let text = format!("r1 = map[0] ll\n r2 = {key}\n r3 = {flags}\n call redirect_map\n exit");
        run(&mut bench, &text).unwrap()
    };
    let ran = redirect(2, 0);
    assert_eq!((ran.verdict, ran.effects.redirect), (Verdict::Pass, Some(Redirect::Processor(2))));
    assert_eq!((redirect(1, 1).verdict, redirect(7, 1).verdict), (Verdict::Drop(None), Verdict::Drop(None)));
    assert_eq!(run(&mut bench, &format!("w0 = 2\n {LOOKUP}\n exit")).unwrap_err().fault, Fault::Map);
    // There are no sockets: nobody is found, and nobody is put there.
    let mut bench = with_maps(&[MapSpec::new("sockets", MapKind::XskMap, 4, 4, 4)]).unwrap();
    assert_eq!(
        bench.maps.all()[0].set(&[0; 4], 0, &[1, 0, 0, 0], 0),
        Err(longwire_program::map::Refusal::Invalid)
    );
    assert_eq!(run(&mut bench, &format!("w0 = 0\n {LOOKUP}\n exit")).unwrap().returned, 0);
    let text = "r1 = map[0] ll\n r2 = 0\n r3 = 2\n call redirect_map\n exit";
    assert_eq!(run(&mut bench, text).unwrap().verdict, Verdict::Pass);
    // Another kind of map leads nowhere.
    let mut bench = with_maps(&[MapSpec::new("m", MapKind::Array, 4, 4, 4)]).unwrap();
    let text = "r1 = map[0] ll\n r2 = 0\n r3 = 0\n call redirect_map\n exit";
    assert_eq!(run(&mut bench, text).unwrap_err().fault, Fault::Map);
}

#[test]
fn constants_cannot_be_written() {
    let mut spec = MapSpec::new(".rodata", MapKind::Array, 4, 8, 1);
    (spec.read_only, spec.initial) = (true, [1, 2, 3, 4, 5, 6, 7, 8].into());
    let mut bench = with_maps(&[spec]).unwrap();
    assert_eq!(
        run(&mut bench, "r1 = map[0][0]+4 ll\n r0 = *(u32 *)(r1 + 0)\n exit").unwrap().returned,
        0x0807_0605
    );
    let fault = run(&mut bench, "r1 = map[0][0]+4 ll\n *(u32 *)(r1 + 0) = 0\n exit").unwrap_err().fault;
    assert_eq!(fault, Fault::ReadOnly { address: 0x100_0000_0004, size: 4 });
    let update = "*(u32 *)(r10 - 4) = 0\n *(u64 *)(r10 - 16) = 99\n r1 = map[0] ll\n r2 = r10\n r2 += -4
             r3 = r10\n r3 += -16\n r4 = 0\n call map_update_elem\n exit";
    assert_eq!(run(&mut bench, update).unwrap_err().fault, Fault::Map);
}
