//! Faults that stop a program.

use super::*;

/// Start of the packet, and end of the program's stack.
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
        // A function's stack frame is gone when it returns, and it can't read the caller's r6.
        (
            "call f\n call g\n exit\n f: *(u64 *)(r10 - 8) = 1\n r0 = 0\n exit\n g: r0 = *(u64 *)(r10 - 8)\n \
             exit",
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
