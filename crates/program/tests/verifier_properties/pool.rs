//! The original programs.

use super::*;

const OBJECTS: &[&[u8]] = &[
    include_bytes!("../objects/counter.o"),
    include_bytes!("../objects/events.o"),
    include_bytes!("../objects/globals.o"),
    include_bytes!("../objects/longwire.o"),
    include_bytes!("../objects/modern.o"),
    include_bytes!("../xdp/filter.v4.o"),
    include_bytes!("../xdp/headers.v3.o"),
    include_bytes!("../xdp/limits.v4.o"),
    include_bytes!("../xdp/options.v4.o"),
    include_bytes!("../xdp/rewrite.v3.o"),
    include_bytes!("../xdp/rewrite.v4.o"),
    include_bytes!("../xdp/tunnel.v3.o"),
];

/// Small programs that together cover all features. Maps: 0 an array of 4 values of 24 bytes, 1 a hash map of
/// words, 2 a devmap, 3 an array of one value of 64 bytes.
const SMALL: &[&str] = &[
    // A checked load, an index from it, a table on the stack.
    "r2 = *(u32 *)(r1 + 4)
     r1 = *(u32 *)(r1 + 0)
     r3 = r1
     r3 += 20
     if r3 > r2 goto out
     r4 = *(u8 *)(r1 + 19)
     *(u64 *)(r10 - 8) = 1
     *(u64 *)(r10 - 16) = 2
     r4 &= 15
     r5 = r10
     r5 += -16
     r5 += r4
     r0 = *(u8 *)(r5 + 0)
     *(u8 *)(r5 + 0) = r4
     exit
     out: r0 = 1
     exit",
    // A header of variable length.
    "r2 = *(u32 *)(r1 + 4)
     r1 = *(u32 *)(r1 + 0)
     r3 = r1
     r3 += 34
     if r2 < r3 goto out
     w4 = *(u8 *)(r1 + 14)
     w4 <<= 2
     w4 &= 60
     if w4 < 20 goto out
     r1 += r4
     r3 = r1
     r3 += 22
     if r3 >= r2 goto out
     r0 = *(u16 *)(r1 + 20)
     *(u16 *)(r1 + 18) = r0
     exit
     out: r0 = 2
     exit",
    // An array value, looked up and changed.
    "*(u32 *)(r10 - 4) = 2
     r2 = r10
     r2 += -4
     r1 = map[0] ll
     call map_lookup_elem
     if r0 == 0 goto out
     r1 = 5
     lock *(u64 *)(r0 + 8) += r1
     r1 = *(u64 *)(r0 + 16)
     w2 = 7
     w2 = atomic_fetch_add((u32 *)(r0 + 4), w2)
     out: r0 = 1
     exit",
    // A word looked up, inserted if missing, removed.
    "*(u32 *)(r10 - 4) = 2
     *(u64 *)(r10 - 16) = 9
     r2 = r10
     r2 += -4
     r1 = map[1] ll
     call map_lookup_elem
     if r0 != 0 goto there
     r1 = map[1] ll
     r2 = r10
     r2 += -4
     r3 = r10
     r3 += -16
     r4 = 0
     call map_update_elem
     r0 = 2
     exit
     there: r1 = map[1] ll
     r2 = r10
     r2 += -4
     call map_delete_elem
     r0 = 1
     exit",
    // The state.
    "r6 = r1
     r1 = 64
     call lw_flow_state
     r7 = r0
     r1 = *(u64 *)(r7 + 8)
     r1 += 1
     *(u64 *)(r7 + 8) = r1
     r1 &= 7
     r1 <<= 3
     r7 += r1
     r0 = *(u32 *)(r7 + 4)
     r1 = 1
     r1 = xchg_64(r7 + 0, r1)
     r0 = 0
     r2 = 3
     r0 = cmpxchg_32(r7 + 4, r0, r2)
     r0 = 2
     exit",
    // The packet moved, and checked again.
    "r6 = r1
     r2 = -14
     call xdp_adjust_head
     if r0 != 0 goto out
     r1 = r6
     r2 = 4
     call xdp_adjust_tail
     r2 = *(u32 *)(r6 + 4)
     r1 = *(u32 *)(r6 + 0)
     r3 = r1
     r3 += 14
     if r3 > r2 goto out
     *(u32 *)(r1 + 10) = r3
     r0 = 2
     exit
     out: r0 = 1
     exit",
    // Functions, one of which writes to its caller's frame.
    "r1 = r10
     r1 += -8
     r2 = 7
     call fill
     r0 = *(u64 *)(r10 - 8)
     if r0 > 5 goto out
     r1 = r0
     call twice
     out: exit
     fill: r3 = r2
     r3 *= 3
     *(u64 *)(r1 + 0) = r3
     exit
     twice: r0 = r1
     r0 += r1
     exit",
    // Bytes copied, hashed, summed.
    "r6 = r1
     r2 = 3
     r3 = r10
     r3 += -24
     r4 = 24
     call xdp_load_bytes
     r1 = r10
     r1 += -24
     r2 = *(u8 *)(r10 - 1)
     r2 &= 15
     r2 += 1
     r3 = 5
     call lw_hash
     r7 = r0
     r1 = 0
     r2 = 0
     r3 = r10
     r3 += -16
     r4 = 16
     r5 = r7
     call csum_diff
     w0 &= 1
     exit",
    // Redirection by a devmap or at random, and variables of a data section.
    "call get_prandom_u32
     w0 &= 3
     w0 *= 4
     r1 = map[3][0]+16 ll
     r1 += r0
     w2 = *(u32 *)(r1 + 0)
     w2 += 1
     *(u32 *)(r1 + 0) = r2
     r1 = map[2] ll
     r2 = r2
     r3 = 2
     call redirect_map
     exit",
    // An address with alternatives, and signed comparisons.
    "call get_prandom_u32
     r6 = r0
     *(u64 *)(r10 - 8) = r6
     *(u64 *)(r10 - 24) = 0
     *(u64 *)(r10 - 16) = 0
     r1 = r10
     r1 += -24
     if w6 s< 5 goto stack
     r1 = map[0][0]+0 ll
     stack: r0 = *(u64 *)(r10 - 8)
     if r0 s> 15 goto out
     if r0 s< 0 goto out
     r0 &= 8
     r1 += r0
     r0 = *(u64 *)(r1 + 0)
     out: r0 = 2
     exit",
    // Addresses kept while the packet is moved, and reloaded.
    "r6 = r1
     r7 = *(u32 *)(r6 + 0)
     r8 = *(u32 *)(r6 + 4)
     r3 = r7
     r3 += 30
     if r3 > r8 goto out
     r9 = *(u8 *)(r7 + 29)
     r1 = r6
     r2 = 10
     call xdp_adjust_head
     r7 = *(u32 *)(r6 + 0)
     r8 = *(u32 *)(r6 + 4)
     r3 = r7
     r3 += 20
     if r8 < r3 goto out
     r9 = *(u8 *)(r7 + 19)
     out: r0 = 2
     exit",
    // An address on the stack beside changing words, and a number known by its copy.
    "r2 = map[0][0]+0 ll
     *(u64 *)(r10 - 16) = r2
     *(u32 *)(r10 - 8) = 3
     *(u32 *)(r10 - 4) = 4
     call get_prandom_u32
     r7 = r0
     *(u64 *)(r10 - 24) = r0
     if r7 > 23 goto out
     r2 = *(u64 *)(r10 - 16)
     r3 = *(u64 *)(r10 - 24)
     r2 += r3
     r0 = *(u8 *)(r2 + 0)
     r3 = *(u64 *)(r10 - 8)
     out: r0 = 2
     exit",
    // A header with or without a tag, and one of two numbers.
    "r2 = *(u32 *)(r1 + 4)
     r1 = *(u32 *)(r1 + 0)
     r5 = 3
     r3 = r1
     r3 += 18
     if r3 > r2 goto out
     r4 = *(u8 *)(r1 + 12)
     if r4 == 0x81 goto tagged
     r3 += -4
     r5 = 1
     tagged: r4 = r3
     r4 += 4
     if r4 > r2 goto out
     r0 = *(u32 *)(r3 + 0)
     r3 += r5
     r0 = *(u8 *)(r3 + 0)
     r1 += r5
     r0 = *(u8 *)(r1 + 14)
     out: r0 = 2
     exit",
    // From the end backward.
    "r2 = *(u32 *)(r1 + 4)
     r3 = *(u32 *)(r1 + 8)
     r1 = *(u32 *)(r1 + 0)
     r4 = r2
     r4 -= r1
     if r4 < 4 goto out
     r5 = r1
     if r4 > 60 goto out
     r5 += r4
     r5 -= 4
     r6 = r5
     r6 += 4
     if r6 > r2 goto out
     r0 = *(u32 *)(r5 + 0)
     if r3 < r1 goto out
     *(u8 *)(r5 + 0) = 3
     out: r0 = 2
     exit",
];

/// The original programs; their maps are small.
pub fn pool() -> Vec<Program> {
    let maps = [
        MapSpec::new("a", MapKind::Array, 4, 24, 4),
        MapSpec::new("h", MapKind::LruHash, 4, 8, 4),
        MapSpec::new("d", MapKind::DevMap, 4, 4, 8),
        MapSpec::new("v", MapKind::Array, 4, 64, 1),
    ];
    let mut pool: Vec<Program> =
        SMALL.iter().map(|text| Program::new("small", assemble(text).unwrap(), maps.clone())).collect();
    for bytes in OBJECTS {
        let object = Object::parse(bytes).unwrap();
        for (name, _) in object.programs() {
            let mut program = object.program(name).unwrap();
            let mut maps = program.maps.to_vec();
            maps.iter_mut().for_each(|map| {
                map.max_entries = map.max_entries.min(if map.kind.is_ring() { 4096 } else { 16 });
            });
            program.maps = maps.into();
            pool.push(program);
        }
    }
    pool
}
