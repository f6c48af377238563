//! Merging paths: which are joined, and which are followed separately.

use super::*;

/// With too many states, those are joined that differ in numbers, not in kinds of registers.
#[test]
fn states_of_one_kind_are_joined_first() {
    // 100 numbers where r6 is an address, and as many where it is not, alternating.
    let text = "r6 = r10\n r7 = r1\n call get_prandom_u32\n r0 &= 1\n if r0 != 0 goto +1\n r6 = 0\n r8 = 0
         again: call get_prandom_u32\n if r0 == 7 goto left\n r8 += 3\n if r8 < 4000 goto again
         left: if r6 == 0 goto out\n *(u64 *)(r6 - 8) = r8\n out: r0 = 2\n exit";
    check(text).unwrap();
}

/// Where paths meet, the first one does not cover another with less knowledge.
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
             r0 = *(u8 *)(r1 + 0)\n r4 = r1\n if r0 == 0 goto in\n r4 += 4\n in: r0 = *(u8 *)(r4 + 13)\n \
             out: exit",
            10,
            unchecked(R4, 14, 10),
        ),
        // A copy on one path, another number on the other.
        (
            "call get_prandom_u32\n r6 = r0\n call get_prandom_u32\n r7 = r6\n if r0 == 0 goto in\n r7 = r0
             in: r1 = map[0][0]+0 ll\n r0 = 0\n if r6 > 7 goto out\n r1 += r7\n r0 = *(u8 *)(r1 + 0)\n out: \
             exit",
            11,
            bounds("a value of map table", 1, 0xffff_ffff, 0, 23),
        ),
        // The same value on one path, another of the same map on the other.
        (
            "*(u32 *)(r10 - 4) = 1\n r2 = r10\n r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n r6 = r0\n \
             r2 = r10
             r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n r8 = r0\n call get_prandom_u32\n r7 = r6
             if r0 == 0 goto in\n r7 = r8\n in: r0 = 0\n if r6 == 0 goto out\n r0 = *(u8 *)(r7 + 0)\n out: \
             exit",
            19,
            Rejection::MaybeNull { register: R7, map: "table".into() },
        ),
        // Initialized on one path.
        (
            "call get_prandom_u32\n if r0 == 0 goto +1\n goto in\n *(u64 *)(r10 - 8) = 0\n in: r0 = *(u64 \
             *)(r10 - 8)
             exit",
            4,
            Rejection::StackUnwritten { offset: -8 },
        ),
        (
            "r6 = r1\n call get_prandom_u32\n if r0 == 0 goto +1\n goto in\n r1 = r6\n r2 = 0\n r3 = r10\n \
             r3 += -8\n r4 = 8
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
    // Two related numbers: 8 bytes at -16, or 16 at -24.
    let_in(["*(u64 *)(r10 - 8) = 0\n *(u64 *)(r10 - 16) = 0\n *(u64 *)(r10 - 24) = 0\n call get_prandom_u32
             r6 = -16\n r2 = 8\n if r0 == 0 goto +2\n r6 = -24\n r2 = 24\n r1 = r10\n r1 += r6\n r3 = 0\n \
             call lw_hash\n exit"]);
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

/// A map's value or 0 on each of 4096 paths is an address or 0 after joining, and must be checked.
#[test]
fn an_address_and_none_are_joined_to_one_that_may_be_missing() {
    let slots = || (2..14).map(|slot| slot * 8);
    let either = |slot| {
        format!(
            "*(u64 *)(r10 - {slot}) = r6\n call get_prandom_u32\n if r0 & 1 goto +1\n *(u64 *)(r10 - {slot}) \
             = 0\n"
        )
    };
    let lookup =
        "*(u32 *)(r10 - 4) = 1\n r2 = r10\n r2 += -4\n r1 = map[0] ll\n call map_lookup_elem\n r6 = r0
                  if r6 == 0 goto out\n";
    let text = |finale: &str| {
        let paths: String = slots().map(either).collect();
        format!("{lookup} {paths} {finale}\n out: r0 = 0\n exit")
    };
    let looked_at =
        |slot| format!("r7 = *(u64 *)(r10 - {slot})\n if r7 == 0 goto +1\n r0 = *(u8 *)(r7 + 23)\n");
    check(&text(&slots().map(looked_at).collect::<String>())).unwrap();
    let fault = |finale| check(&text(finale)).unwrap_err().fault;
    // On a path that was not joined it is 0, on one that was it may be missing.
    let is_missing = |fault: &Rejection| match fault {
        Rejection::MaybeNull { .. } => true,
        Rejection::NotAddress { what, .. } => *what == "0",
        _ => false,
    };
    let not_looked_at = fault("r7 = *(u64 *)(r10 - 16)\n r0 = *(u8 *)(r7 + 0)");
    assert!(is_missing(&not_looked_at), "{not_looked_at}");
    // An existing one says nothing about the next.
    let next = fault(
        "r7 = *(u64 *)(r10 - 16)\n if r7 == 0 goto out\n r7 = *(u64 *)(r10 - 24)\n r0 = *(u8 *)(r7 + 0)",
    );
    assert!(is_missing(&next), "{next}");
    let beyond = "r7 = *(u64 *)(r10 - 16)\n if r7 == 0 goto out\n r0 = *(u8 *)(r7 + 24)";
    assert_eq!(fault(beyond), bounds("a value of map table", 24, 24, 0, 23));
}

#[test]
fn large_programs_are_followed_to_an_end_or_refused() {
    // 65,536 instructions, half of them uninformative branches.
    let mut text = String::from("call get_prandom_u32\n");
    for _ in 0..32_766 {
        text += "if r0 & 1 goto +0\n r0 += 3\n";
    }
    text += "r0 = 0\n exit";
    assert_eq!(check(&text).unwrap().facts().len(), 65_535);
    // Three branches to each of many instructions, where states wait for the last of them: two of each, with
    // so many bytes on the stack. States take more memory the more values they have.
    let waiting = |count: u32, stored: u32| {
        let stores: String = (1..=stored).map(|at| format!("*(u8 *)(r10 - {at}) = 0\n")).collect();
        let branch = |n: u32| format!("if r0 == {n} goto t{}\n", n % count);
        let branches: String = (0..3 * count).map(branch).collect();
        let targets: String = (0..count).map(|n| format!("t{n}: exit\n")).collect();
        check(&format!("{stores} call get_prandom_u32\n {branches} exit\n {targets}"))
            .map(|verified| verified.facts().len())
    };
    assert_eq!(waiting(9000, 0), Ok(36_002));
    assert_eq!(waiting(500, 512), Ok(2514));
    assert_eq!(waiting(2000, 512).unwrap_err().fault, Rejection::TooComplex);
    // Eight functions, each of which calls the next eight times: 8⁷ calls.
    let mut text = String::new();
    for depth in 0..7 {
        text += &format!("f{depth}: {}\n exit\n", format!("call f{}\n", depth + 1).repeat(8));
    }
    text += "f7: r0 = 0\n exit";
    assert_eq!(check(&text).unwrap_err().fault, Rejection::TooComplex);
}
