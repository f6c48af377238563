//! Callbacks and tail calls: compiled and interpreted, verified or not.

use crate::bench::Bench;
use longwire_program::{MapKind, MapSpec, Program, assemble};

/// With a program array that has both programs in its second and third entry.
fn bench(first: &str, second: &str) -> Bench {
    let initial = [0_u32, 1, 2].iter().flat_map(|number| number.to_le_bytes()).collect();
    let spec = MapSpec { initial, ..MapSpec::new("jumps", MapKind::ProgArray, 4, 4, 4) };
    let start = assemble(first).unwrap().len();
    let code = assemble(&format!("{first}\n{second}")).unwrap().with_programs([(1, 0), (2, start)]);
    Bench::new(Program::new("continued", code, [spec]), &[7; 64])
}

fn alike(first: &str, second: &str, returned: Option<u64>) {
    let bench = bench(first, second);
    let wanted = bench.interpreted();
    assert_eq!(wanted.result.ok(), returned, "{:?}\n{}", wanted.result, bench.program);
    assert_eq!(bench.unverified(&[]), wanted, "{}", bench.program);
    if returned.is_some() {
        assert_eq!(bench.verified(), Some(wanted), "{}", bench.program);
    } else {
        assert!(bench.verified().is_none());
    }
}

#[test]
fn tail_calls() {
    let goes_to = |entry: i64| format!("r2 = map[0] ll\n r3 = {entry}\n call tail_call\n r0 = 2\n exit");
    for (entry, returned) in [(0, 2), (1, 2), (2, 3), (3, 2), (4, 2), (-1, 2)] {
        alike(&goes_to(entry), "r0 = 3\n exit", Some(returned));
    }
    // Changes to the packet, and its moved beginning, are visible to the next program.
    let moves = "r6 = r1\n r2 = 10\n call xdp_adjust_head\n r1 = *(u32 *)(r6 + 0)\n r2 = *(u32 *)(r6 + 4)\n \
        r3 = r1\n r3 += 1
         if r3 > r2 goto out\n *(u8 *)(r1 + 0) = 9\n out: r1 = r6\n r2 = map[0] ll\n r3 = 2\n call \
         tail_call\n r0 = 2\n exit";
    let reads =
        "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r3 = r1\n r3 += 2\n r0 = 0\n if r3 > r2 goto end
         r0 = *(u16 *)(r1 + 0)\n end: exit";
    alike(moves, reads, Some(0x0709));
    // Up to the limit, with functions in between, and in a loop.
    alike(
        "r6 = r1\n call f\n r1 = r6\n r2 = map[0] ll\n r3 = 1\n call tail_call\n r6 = 8\n call f\n r0 += \
         r6\n exit
         f: call get_prandom_u32\n exit",
        "r0 = 3\n exit",
        Some(35 + 8),
    );
    alike(
        "r6 = r1\n r7 = 3\n again: r1 = r6\n r2 = map[0] ll\n r3 = r7\n call tail_call\n r7 += -1\n if r7 != \
         0 goto again
         r0 = 2\n exit",
        "r2 = map[0] ll\n r3 = 0\n call tail_call\n r0 = 5\n exit",
        Some(5),
    );
    // Not from within a function, nor to missing programs.
    alike(
        "call f\n r0 = 2\n exit\n f: r2 = map[0] ll\n r3 = 2\n call tail_call\n r0 = 2\n exit",
        "r0 = 3\n exit",
        None,
    );
    let callback = "*(u64 *)(r10 - 8) = r1\n r1 = 2\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = 0\n call \
        loop\n r0 = 2\n exit
         f: r1 = *(u64 *)(r2 + 0)\n r2 = map[0] ll\n r3 = 2\n call tail_call\n r0 = 0\n exit";
    alike(callback, "r0 = 3\n exit", None);
}

#[test]
fn loops() {
    let with = |count: &str, flags: i32, f: &str| {
        format!(
            "*(u64 *)(r10 - 8) = 0\n r1 = {count}\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = {flags}\n \
            call loop
                 r1 = *(u64 *)(r10 - 8)\n r1 <<= 8\n r0 += r1\n exit\n f: {f}"
        )
    };
    let adds = "r3 = *(u64 *)(r2 + 0)\n r3 += r1\n *(u64 *)(r2 + 0) = r3\n r0 = 0\n exit";
    let stops = "r3 = *(u64 *)(r2 + 0)\n r3 += 1\n *(u64 *)(r2 + 0) = r3\n r0 = r1\n r0 >>= 2\n exit";
    let other = "r0 = 3\n exit";
    alike(&with("7", 0, adds), other, Some(21 << 8 | 7));
    alike(&with("0", 0, adds), other, Some(0));
    alike(&with("7", 0, stops), other, Some(5 << 8 | 5));
    alike(&with("0x100000003 ll", 0, adds), other, Some(3 << 8 | 3));
    // Two functions, nested.
    let both =
        "r1 = 4\n r2 = pc f ll\n r3 = 0\n r4 = 0\n call loop\n r6 = r0\n r1 = 5\n r2 = pc g ll\n r3 = \
        0\n r4 = 0\n call loop
         r0 <<= 8\n r0 += r6\n exit
         f: r1 = 3\n r2 = pc g ll\n r3 = 0\n r4 = 0\n call loop\n r0 = 0\n exit\n g: r0 = 0\n if r1 < 2 goto \
         +1\n r0 = 1\n exit";
    alike(both, other, Some(3 << 8 | 4));
    // Refused, stopped, or with the helper's own error.
    let unverified = |first: &str| {
        let bench = bench(first, other);
        let wanted = bench.interpreted();
        assert_eq!(bench.unverified(&[]), wanted, "{}", bench.program);
        assert!(bench.verified().is_none());
        wanted.result
    };
    assert_eq!(unverified(&with("8388609", 0, adds)), Ok(-7_i64 as u64));
    assert_eq!(unverified(&with("7", 1, adds)), Ok(-22_i64 as u64));
    assert!(unverified("r1 = 2\n r2 = 5\n r3 = 0\n r4 = 0\n call loop\n exit").is_err());
    assert!(unverified(&with("7", 0, "r0 = *(u64 *)(r1 + 0)\n exit")).is_err());
    assert!(unverified(&with("7", 0, "r0 = *(u64 *)(r2 + 8)\n exit")).is_err());
    // In unverified code, the function may depend on the path.
    let either = "r1 = *(u32 *)(r1 + 12)\n r2 = pc f ll\n if r1 == 3 goto +2\n r2 = pc g ll\n r1 = 9\n r3 = \
        0\n r4 = 0\n call loop\n exit
         f: r0 = 0\n exit\n g: r0 = 1\n exit";
    assert_eq!(unverified(either), Ok(9));
}
