//! Context, stack, values of maps and state: permitted accesses, and their limits.

use super::*;

#[test]
fn the_context_is_read_by_fields() {
    let field = |offset, size| Rejection::ContextField { offset, size };
    refused([
        ("r0 = *(u64 *)(r1 + 0)\n exit", 0, field(0, 8)),
        ("r0 = *(u16 *)(r1 + 16)\n exit", 0, field(16, 2)),
        ("r0 = *(u32 *)(r1 + 2)\n exit", 0, field(2, 4)),
        ("r0 = *(u32 *)(r1 + 24)\n exit", 0, field(24, 4)),
        ("r0 = *(s32 *)(r1 + 12)\n exit", 0, field(12, 4)),
        ("*(u32 *)(r1 + 16) = 1\n r0 = 0\n exit", 0, Rejection::ContextWrite),
        ("r2 = 1\n lock *(u32 *)(r1 + 16) += r2\n r0 = 0\n exit", 1, Rejection::ContextWrite),
        (
            "*(u64 *)(r10 - 8) = 1\n r6 = r1\n call get_prandom_u32\n if r0 == 0 goto +2\n r6 = r10\n r6 \
                 += -16
                 r0 = *(u32 *)(r6 + 12)\n exit",
            6,
            Rejection::ContextOrNot,
        ),
    ]);
    let_in(["r1 += 8\n r0 = *(u32 *)(r1 + 8)\n exit"]);
}

#[test]
fn the_stack_is_written_before_it_is_read_and_has_an_end() {
    let unwritten = |offset| Rejection::StackUnwritten { offset };
    let frame = |first, last| bounds("the stack frame", first, last, -512, -1);
    refused([
        ("r0 = *(u64 *)(r10 - 8)\n exit", 0, unwritten(-8)),
        ("*(u32 *)(r10 - 8) = 0\n r0 = *(u64 *)(r10 - 8)\n exit", 1, unwritten(-4)),
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
            unwritten(-16),
        ),
        // Stored at one of several offsets: none of them becomes initialized.
        (
            "call get_prandom_u32\n r0 &= 7\n r1 = r10\n r1 += -8\n r1 += r0\n *(u8 *)(r1 + 0) = 1
             r0 = *(u8 *)(r10 - 8)\n exit",
            6,
            unwritten(-8),
        ),
        // A partially overwritten address is no address any more.
        (
            "*(u64 *)(r10 - 8) = r1\n *(u8 *)(r10 - 8) = 3\n r1 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r1 + \
             12)\n exit",
            3,
            not_address(R1, "a number"),
        ),
        (
            "*(u64 *)(r10 - 8) = r1\n call get_prandom_u32\n r0 &= 3\n r2 = r10\n r2 += r0\n \
             *(u8 *)(r2 - 8) = 3\n r1 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r1 + 12)\n exit",
            7,
            not_address(R1, "a number"),
        ),
        // A frame ends with its function.
        ("call f\n r0 = *(u8 *)(r0 + 0)\n exit\n f: r0 = r10\n exit", 4, Rejection::ReturnsLocal),
        (
            "r1 = r10\n call f\n r1 = *(u64 *)(r10 - 8)\n r0 = *(u64 *)(r1 - 8)\n exit
             f: *(u64 *)(r10 - 8) = 1\n *(u64 *)(r1 - 8) = r10\n r0 = 0\n exit",
            3,
            not_address(R1, "a number"),
        ),
        // Data that another call left in the frame is gone.
        (
            "r1 = 0\n call f\n call g\n exit\n f: *(u64 *)(r10 - 8) = 1\n r0 = 0\n exit
             g: r0 = *(u64 *)(r10 - 8)\n exit",
            7,
            unwritten(-8),
        ),
    ]);
}

#[test]
fn what_was_written_to_the_stack_is_read() {
    let_in([
        "*(u64 *)(r10 - 8) = r1\n r2 = *(u64 *)(r10 - 8)\n r0 = *(u32 *)(r2 + 12)\n exit",
        "*(u32 *)(r10 - 8) = 0\n *(u32 *)(r10 - 4) = 0\n r0 = *(u64 *)(r10 - 8)\n exit",
        "r1 = r10\n call f\n r0 = *(u64 *)(r10 - 8)\n exit\n f: *(u64 *)(r1 - 8) = 1\n exit",
        // A sum that the compiler wrote as an or: -16 is a multiple of 16.
        "*(u64 *)(r10 - 16) = 0\n call get_prandom_u32\n r0 &= 7\n r1 = r10\n r1 += -16\n r1 |= r0\n r0 = \
         *(u8 *)(r1 + 0)\n exit",
    ]);
}

#[test]
fn values_of_maps_are_found_first_and_have_an_end() {
    let found = |rest: &str| {
        format!(
            "*(u32 *)(r10 - 4) = 1\n r2 = r10\n r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n {rest}\n \
             r0 = 0\n exit"
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
        // The lower half may be 0 for any address.
        ("if w0 == 0 goto +1\n r1 = *(u64 *)(r0 + 0)", maybe),
        (
            "r6 = r0\n call get_prandom_u32\n if r6 == 0 goto +4\n r0 &= 3\n r0 <<= 3\n r6 += r0\n r1 = \
             *(u64 *)(r6 + 0)",
            table(0, 31),
        ),
    ] {
        assert_eq!(check(&found(rest)).unwrap_err().fault, fault, "{rest}");
    }
    for rest in [
        "if r0 == 0 goto +1\n r1 = *(u64 *)(r0 + 16)",
        "r6 = r0\n *(u64 *)(r10 - 16) = r0\n if r0 == 0 goto +2\n r2 = *(u64 *)(r10 - 16)\n r1 = *(u8 *)(r2 \
         + 0)\n if r6 == 0 goto +1\n r1 = *(u64 *)(r6 + 0)",
        "r6 = r0\n call get_prandom_u32\n if r6 == 0 goto +5\n if w0 > 2 goto +4\n r0 <<= 3\n r6 += r0\n \
         lock *(u64 *)(r6 + 0) += r0\n r0 = 1",
        // Two lookups: one proves nothing about the other, and both are proven.
        "r6 = r0\n r2 = r10\n r2 += -4\n r1 = map[4] ll\n call map_lookup_elem\n if r0 == 0 goto +3\n *(u64 \
         *)(r0 + 0) = 1\n if r6 == 0 goto +1\n *(u64 *)(r6 + 0) = 1",
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
    let text = "r1 = 40\n call lw_flow_state\n r0 = *(u64 *)(r0 + 32)\n r1 = 16\n call lw_flow_state\n r0 = \
        *(u8 *)(r0 + 15)\n exit";
    assert_eq!(check(text).unwrap().state_size(), 40);
    assert_eq!(check("r0 = 0\n exit").unwrap().state_size(), 0);
}

/// An address that was moved by an unbounded number may be 0, so that branch is checked like any other.
#[test]
fn addresses_moved_without_a_bound_may_be_0() {
    let compared = |address: &str, bound: &str| {
        check(&format!(
            "{address}\n {bound}\n r6 += r7\n if r6 == 0 goto bad\n r0 = 2\n exit
             bad: r0 = *(u8 *)(r7 + 0)\n exit"
        ))
    };
    let number = "call ktime_get_ns\n r7 = r0";
    for address in [
        format!("{number}\n r6 = r10"),
        format!("{number}\n r1 = 8\n call lw_flow_state\n r6 = r0"),
        format!("{number}\n r6 = map[0][0]+0 ll"),
        format!("r6 = *(u32 *)(r1 + 0)\n {number}"),
    ] {
        let rejected = compared(&address, "").unwrap_err();
        assert_eq!(rejected.fault, not_address(Register::R7, "a number"), "{address}");
        let bounded = compared(&address, "r7 &= 0xffff");
        assert!(bounded.is_ok(), "{address}");
    }
    // It may have been moved before it became invalid.
    let stale = format!("r6 = *(u32 *)(r1 + 0)\n r2 = 4\n call xdp_adjust_head\n {number}\n r7 &= 0xffff");
    assert_eq!(compared(&stale, "").unwrap_err().fault, not_address(Register::R7, "a number"));
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
            "r1 = map[0][0]+0 ll\n {load}\n r3 = {wanted:#x} ll\n if r2 == r3 goto out\n r0 = *(u8 *)(r2 + \
             0)\n out: r0 = 2\n exit"
        );
        verify(Program::new("test", assemble(&text).unwrap(), [spec])).is_ok()
    };
    for (load, wanted) in [
        ("r2 = *(u32 *)(r1 + 0)", 5),
        ("r2 = *(u8 *)(r1 + 4)", 0xfe),
        ("r2 = *(s16 *)(r1 + 4)", 0xffff_ffff_ffff_fffe),
        ("r2 = *(u64 *)(r1 + 8)", 0x8807_0605_0403_0201),
        ("r1 += 8\n r2 = *(u16 *)(r1 + 2)", 0x0403),
        // Bytes that the section does not define are 0.
        ("r2 = *(u64 *)(r1 + 16)", 0),
    ] {
        assert!(with(constants(24, &initial), load, wanted), "{load}");
        assert!(!with(constants(24, &initial), load, wanted ^ 1), "{load}");
        // Others are unknown: variables, and data written by the control half.
        let variables = MapSpec { read_only: false, ..constants(24, &initial) };
        assert!(!with(variables, load, wanted), "{load}");
        assert!(!with(constants(24, &[]), load, wanted), "{load}");
    }
}
