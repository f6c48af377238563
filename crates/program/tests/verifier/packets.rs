//! Packets must be compared with their end before access.

use super::*;

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
        // On the path where it does not hold.
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
        // An unbounded number is added: the result is unknown.
        (
            "r6 = r1\n call ktime_get_ns\n r2 = *(u32 *)(r6 + 4)\n r1 = *(u32 *)(r6 + 0)\n r1 += r0\n r3 = r1
             r3 += 1\n if r3 > r2 goto +1\n r0 = *(u8 *)(r1 + 0)\n r0 = 0\n exit",
            8,
            Rejection::PacketBefore { first: i64::MIN },
        ),
        (
            "r6 = r1\n call get_prandom_u32\n r2 = *(u32 *)(r6 + 4)\n r1 = *(u32 *)(r6 + 0)\n r1 += r0\n r3 \
             = r1
             r3 += 1\n if r3 > r2 goto +1\n r0 = *(u8 *)(r1 + 0)\n r0 = 0\n exit",
            8,
            Rejection::PacketUnchecked { register: R1, end: 1, proven: None },
        ),
        // Moved: previous addresses are invalid.
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
        // An earlier copy, one on the stack, and one further on.
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n *(u64 *)(r10 - 8) = r1\n r6 = r1\n r6 += 4\n r0 = \
         0\n r3 = r1
         r3 += 20\n if r3 > r2 goto out\n r0 = *(u64 *)(r6 + 8)\n r4 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r4 \
         + 16)
         r0 = *(u8 *)(r3 - 20)\n out: exit",
        // A masked index into checked bytes.
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r0 = 0\n r3 = r1\n r3 += 64\n if r3 > r2 goto out
         r4 = *(u8 *)(r1 + 0)\n r4 &= 31\n r1 += r4\n r0 = *(u8 *)(r1 + 32)\n out: exit",
        // There is no metadata: that path is unreachable.
        "r2 = *(u32 *)(r1 + 8)\n r1 = *(u32 *)(r1 + 0)\n r0 = 0\n r3 = r2\n r3 += 4\n if r3 > r1 goto out
         r0 = *(u32 *)(r2 + 0)\n out: exit",
    ]);
}
