//! Arguments of helpers, and their sizes.

use super::*;

#[test]
fn a_program_needs_the_links_that_it_surely_names() {
    for (text, links) in [
        ("r0 = 0\n exit", 0),
        ("r1 = 2\n call lw_redirect_link\n exit", 3),
        ("call get_prandom_u32\n r1 = r0\n call lw_choose_link\n exit", 1),
        ("call get_prandom_u32\n r1 = r0\n r1 &= 3\n r1 += 4\n call lw_choose_link\n exit", 5),
        (
            "call lw_read_mark\n if r0 == 0 goto +3\n r1 = 6\n call lw_redirect_link\n exit\n r1 = 1\n call \
             lw_redirect_link\n exit",
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
        // The parameters of a route lookup must be initialized.
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
        // A key of 8 bytes with 4 initialized, and one beyond the frame.
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
            "*(u32 *)(r10 - 4) = 0\n r2 = r10\n r2 += -4\n r3 = r2\n r4 = 0\n r1 = map[3] ll\n call \
             map_update_elem\n exit",
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
        // Not 0, not more than 512, and no more than exist.
        (
            "*(u64 *)(r10 - 8) = 0\n r1 = r10\n r1 += -8\n r2 = 0\n r3 = 0\n call lw_hash\n exit",
            5,
            range(Helper::Hash, 2, 1, 0, 0),
        ),
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
        (
            "r1 = 0\n r2 = 4\n r3 = 0\n r4 = 0\n r5 = 0\n call csum_diff\n exit",
            5,
            Rejection::ArgumentRange {
                helper: Helper::ChecksumDiff,
                number: 2,
                low: 0,
                high: 0,
                min: 4,
                max: 4,
            },
        ),
        ("r1 = 0\n r2 = 4\n r3 = 0\n call lw_hash\n exit", 3, not_address(R1, "0")),
        (
            "r2 = 0\n r3 = map[3][0]+0 ll\n r4 = 4\n call xdp_load_bytes\n exit",
            4,
            Rejection::ReadOnly { map: "rodata".into() },
        ),
        // For an unknown size, only the minimum becomes initialized.
        (
            "r6 = r1\n call get_prandom_u32\n r4 = r0\n r4 &= 3\n r4 += 2\n r3 = r10\n r3 += -8\n r2 = 0\n \
             r1 = r6
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
        // Only the lower half is used; a value that depends on the packet may be in range.
        "r1 = 0x100000007 ll\n call lw_drop\n exit",
        "r1 = *(u32 *)(r1 + 12)\n call lw_drop\n exit",
    ]);
}
