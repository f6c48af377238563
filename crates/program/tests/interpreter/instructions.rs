//! Arithmetic, branches, memory and calls of functions.

use super::*;

#[test]
fn arithmetic_is_the_rfcs() {
    const MINUS_13: u64 = -13i64 as u64;
    for (text, wanted) in [
        ("r0 = -1\n r0 += 2", 1),
        ("r0 = 1\n w0 -= 2", 0xffff_ffff),
        ("r0 = 1\n r0 -= 2", u64::MAX),
        ("r0 = 0x100000001 ll\n w0 += 1", 2),
        ("r0 = 0x100000001 ll\n r0 *= r0", 0x2_0000_0001),
        // By zero: a quotient of 0, and the dividend as the remainder, truncated in 32 bits.
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
        // The only quotient that overflows.
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
        // Atomics on the stack; fetched values of 4 bytes are zero-extended.
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
