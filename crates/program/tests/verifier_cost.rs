//! Worst-case costs of programs, counted by hand.

use crate::harness::Bench;
use longwire_program::{
    Budget, BudgetItem, Code, Counts, Demand, Fault, Item, MapKind, MapSpec, Maps, Prices, Program,
    ProgramState, Resource, VerifiedProgram, admit, assemble, verify,
};

fn verified(text: &str) -> VerifiedProgram {
    let maps =
        [MapSpec::new("table", MapKind::Array, 4, 128, 4), MapSpec::new("flows", MapKind::Hash, 12, 16, 4)];
    verify(Program::new("test", assemble(text).unwrap(), maps))
        .unwrap_or_else(|rejected| panic!("{rejected}"))
}

fn counts(items: &[(Item, u32)]) -> Counts {
    let mut counts = Counts::NONE;
    items.iter().for_each(|&(item, count)| counts[item] = count);
    counts
}

/// Without cycles, which have their own test.
fn untimed(counts: &Counts) -> Counts {
    let mut counts = *counts;
    counts[Item::Cycle] = 0;
    counts
}

#[test]
fn accesses_are_counted_by_what_they_touch() {
    use Item::*;
    for (text, items) in [
        ("r0 = 0\n exit", &[(Instruction, 2)][..]),
        ("r0 = 5 ll\n exit", &[(Instruction, 2)]),
        ("*(u64 *)(r10 - 8) = 1\n r0 = *(u64 *)(r10 - 8)\n exit", &[(Instruction, 3)]),
        (
            "r2 = *(u32 *)(r1 + 4)\n r1 = *(u32 *)(r1 + 0)\n r0 = 1\n r3 = r1\n r3 += 8\n if r3 > r2 goto +2
             r0 = *(u64 *)(r1 + 0)\n *(u16 *)(r1 + 2) = r0\n r0 = 0\n exit",
            &[(Instruction, 10), (PacketLoad, 1), (PacketStore, 1)],
        ),
        // 8 bytes are two transfers, 1 byte is one; the second is in the line of the first, the third is not.
        (
            "r1 = 128\n call lw_flow_state\n r1 = *(u64 *)(r0 + 8)\n *(u8 *)(r0 + 0) = 1\n r1 = *(u32 *)(r0 \
             + 64)
             r0 = 0\n exit",
            &[(Instruction, 7), (Call, 1), (StateAccess, 3), (StateTransfer, 4), (StateByte, 13),
                (StateLine, 2)],
        ),
        // An atomic addition sends only the number.
        (
            "r1 = 8\n call lw_flow_state\n r1 = 1\n lock *(u64 *)(r0 + 0) += r1\n r0 = 0\n exit",
            &[(Instruction, 6), (Call, 1), (StateAccess, 2), (StateTransfer, 2), (StateByte, 8),
                (StateLine, 1), (Atomic, 1)],
        ),
        // The previous value is returned: a read and a write at once.
        (
            "r1 = 8\n call lw_flow_state\n r1 = 1\n r1 = atomic_fetch_add((u64 *)(r0 + 0), r1)\n r0 = 0\n \
             exit",
            &[(Instruction, 6), (Call, 1), (StateAccess, 2), (StateTransfer, 4), (StateByte, 16),
                (StateLine, 1), (Atomic, 1)],
        ),
        // One of two lines, unknown which: it may be new each time.
        (
            "call get_prandom_u32\n r0 &= 127\n r1 = map[0][0]+0 ll\n r1 += r0\n r2 = *(u8 *)(r1 + 0)\n r2 = \
             *(u8 *)(r1 + 0)
             r0 = 0\n exit",
            &[(Instruction, 8), (Random, 1), (MapAccess, 2), (MapTransfer, 2), (MapLine, 2)],
        ),
    ] {
        assert_eq!(untimed(verified(text).most()), counts(items), "{text}");
    }
}

#[test]
fn helpers_are_counted_by_kind_and_bytes() {
    use Item::*;
    let key = "*(u64 *)(r10 - 16) = 0\n *(u64 *)(r10 - 8) = 0\n r2 = r10\n r2 += -16\n r3 = r2\n r4 = 0\n";
    for (call, items) in [
        ("r1 = map[0] ll\n call map_lookup_elem", &[(ArrayLookup, 1)][..]),
        ("r1 = map[1] ll\n call map_lookup_elem", &[(HashLookup, 1), (HashedByte, 12), (MapTransfer, 3)]),
        (
            "r1 = map[1] ll\n call map_update_elem",
            &[(HashUpdate, 1), (HashedByte, 12), (MapTransfer, 3 + 4), (MapLine, 2), (CopiedByte, 16)],
        ),
        ("r1 = map[1] ll\n call map_delete_elem", &[(HashUpdate, 1), (HashedByte, 12), (MapTransfer, 3)]),
        ("r1 = r2\n r2 = 16\n r3 = 0\n call lw_hash", &[(Hash, 1), (HashedByte, 16)]),
        ("r1 = 0\n r3 = r2\n r2 = 0\n r4 = 12\n r5 = 0\n call csum_diff", &[(Checksum, 1), (SummedByte, 12)]),
        ("r3 = r2\n r2 = 0\n r4 = 14\n call xdp_load_bytes", &[(Copy, 1), (CopiedByte, 14)]),
        ("r2 = 20\n call xdp_adjust_tail", &[(Adjust, 1), (CopiedByte, 20)]),
        ("r2 = -20\n call xdp_adjust_head", &[(Adjust, 1)]),
    ] {
        let instructions = 6 + call.lines().count() as u32 + 2;
        let text = format!("{key} {call}\n r0 = 0\n exit");
        let mut wanted = counts(items);
        wanted[Instruction] = instructions;
        assert_eq!(untimed(verified(&text).most()), wanted, "{call}");
    }
}

/// With a new key, the other workers' values are cleared, 24 bytes each.
#[test]
fn an_update_of_a_map_with_values_for_each_worker_writes_them_all() {
    let most = |kind, key_size, workers| {
        let maps = [MapSpec::new("m", kind, key_size, 20, 4)];
        let text = "*(u64 *)(r10 - 24) = 0\n *(u64 *)(r10 - 16) = 0\n *(u64 *)(r10 - 8) = 0\n r2 = r10\n \
            r2 += -24\n r3 = r2\n r4 = 0\n r1 = map[0] ll\n call map_update_elem\n r0 = 0\n exit";
        let program = Program::new("test", assemble(text).unwrap(), maps).for_workers(workers);
        let most = *verify(program).unwrap_or_else(|rejected| panic!("{rejected}")).most();
        [most[Item::CopiedByte], most[Item::MapLine]]
    };
    assert_eq!(most(MapKind::PerCpuHash, 12, 8), [20 + 7 * 24, 3 + 1]);
    assert_eq!(most(MapKind::LruPerCpuHash, 12, 8), [20 + 7 * 24, 3 + 1]);
    for (kind, key_size, workers) in
        [(MapKind::PerCpuHash, 12, 1), (MapKind::Hash, 12, 8), (MapKind::PerCpuArray, 4, 8)]
    {
        assert_eq!(most(kind, key_size, workers), [20, 1 + 1], "{} {workers}", kind.name());
    }
}

/// A short path with a hash, and a long one without; one is impossible.
const TWO_WAYS: &str = "call get_prandom_u32
    r6 = r0
    *(u64 *)(r10 - 8) = r6
    if r6 == 0 goto long
    r1 = r10
    r1 += -8
    r2 = 8
    r3 = 0
    call lw_hash
    goto out
    long: r1 = 1
    if r1 == 2 goto never
    r1 += 1
    r1 += 1
    r1 += 1
    r1 += 1
    r1 += 1
    r1 += 1
    out: r0 = 2
    exit
    never: r0 = *(u64 *)(r10 - 400)
    goto out";

#[test]
fn the_worst_path_depends_on_the_prices() {
    let verified = verified(TWO_WAYS);
    let head = [0, 1, 2, 3];
    let long: Vec<usize> = head.into_iter().chain(10..20).collect();
    let hashing: Vec<usize> = head.into_iter().chain(4..10).chain(18..20).collect();

    let worst = verified.worst_path(&Prices::VRP_CYCLES);
    assert_eq!((worst.price, worst.path), (14, long));
    assert_eq!(worst.counts, counts(&[(Item::Instruction, 14), (Item::Cycle, 14), (Item::Random, 1)]));

    let worst = verified.worst_path(&Prices::VRP_CYCLES.with(Item::Hash, 3));
    assert_eq!((worst.price, &worst.path), (12 + 3, &hashing));
    assert_eq!(worst.counts[Item::HashedByte], 8);

    // The maximum of each, though no packet has both; unreachable code costs nothing.
    let most = [
        (Item::Instruction, 14),
        (Item::Cycle, 14),
        (Item::Random, 1),
        (Item::Hash, 1),
        (Item::HashedByte, 8),
    ];
    assert_eq!(*verified.most(), counts(&most));
    assert!(!verified.facts()[20].reached && !verified.facts()[11].jumps);
}

#[test]
fn functions_cost_as_much_as_they_do_each_time() {
    let verified = verified(
        "call f
         call f
         r0 = 0
         exit
         f: call get_prandom_u32
         if r0 == 0 goto out
         call g
         out: exit
         g: r0 = 1
         exit",
    );
    // Two calls, and in each: the draw, the branch, the call of g, g's two, exit.
    assert_eq!(verified.most()[Item::Instruction], 4 + 2 * 6);
    assert_eq!(verified.most()[Item::Random], 2);
    let worst = verified.worst_path(&Prices::VRP_CYCLES);
    assert_eq!(worst.path, [0, 4, 5, 6, 8, 9, 7, 1, 4, 5, 6, 8, 9, 7, 2, 3]);
    assert_eq!(verified.frames(), 3);
}

/// The instruction that begins at a slot.
pub fn at_slot(code: &Code, slot: usize) -> Option<usize> {
    (0..code.len()).find(|&index| code.slot(index) == slot)
}

/// The instructions of a run: it is stopped a little later every time.
fn path(verified: &VerifiedProgram, packet: &[u8]) -> Vec<usize> {
    let code = &verified.program().code;
    let stop = |budget| {
        let mut bench = Bench::new(packet, Maps::new(&verified.program().maps, 1, 0).unwrap());
        (bench.state, bench.budget) = (ProgramState::new(verified.state_size()), budget);
        match bench.run(code) {
            Err(stopped) if stopped.fault == Fault::Budget => at_slot(code, stopped.slot),
            Err(stopped) => panic!("{stopped}"),
            Ok(_) => None,
        }
    };
    (0..).map_while(stop).collect()
}

#[test]
fn a_packet_can_take_the_worst_path() {
    // Counts packets of one protocol by a bit of their addresses; the most expensive counts twice.
    let verified = verified(
        "r6 = r1
         r1 = 16
         call lw_flow_state
         r2 = *(u32 *)(r6 + 4)
         r1 = *(u32 *)(r6 + 0)
         r3 = r1
         r3 += 34
         if r3 > r2 goto pass
         r4 = *(u8 *)(r1 + 23)
         if r4 != 17 goto pass
         r5 = 1
         lock *(u64 *)(r0 + 0) += r5
         r4 = *(u8 *)(r1 + 26)
         if r4 & 1 goto pass
         lock *(u64 *)(r0 + 8) += r5
         pass: r0 = 2
         exit",
    );
    let worst = verified.worst_path(&Prices::ASSUMED_PICOSECONDS);
    let mut packet = [0; 34];
    packet[23] = 17;
    assert_eq!(path(&verified, &packet), worst.path);
    packet[26] = 1;
    assert_ne!(path(&verified, &packet), worst.path);

    let demand = Demand::of(&verified, &Prices::ASSUMED_PICOSECONDS);
    let amounts: Vec<u64> = Resource::ALL.iter().map(|&resource| demand.amount(resource)).collect();
    // 17 instructions, five of them for the packet's bounds and two for addresses; two atomic operations on 8
    // bytes: 2 · 2 transfers, 16 bytes. 17 · 400 for instructions, 2 · 400 for packet loads, 4 · 400 for
    // accesses, 90,000 for the line, 2 · 7000 for atomics and 2000 for the call.
    assert_eq!(amounts, [10, 4, 0, 16, 17, 115_200]);
    let counter = [BudgetItem { name: "counter".into(), demand }];
    assert!(admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &counter, &[]).is_ok());
    // The classifier has 5 of the 24 transfers.
    for (copies, fits) in [(4, true), (5, false)] {
        let copies = vec![counter[0].clone(); copies];
        assert_eq!(admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &[], &copies).is_ok(), fits);
    }
}

/// Before every line: the addresses of packet, its end, state and a map's value, and a number from the
/// packet.
const ADDRESSES: &str = "r6 = r1
        r1 = 16
        call lw_flow_state
        r7 = r0
        r9 = *(u32 *)(r6 + 4)
        r8 = *(u32 *)(r6 + 0)
        r2 = r8
        r2 += 64
        if r2 > r9 goto out
        r3 = *(u8 *)(r8 + 14)
        r3 &= 15
        r4 = r8
        r4 += r3
        r5 = r4
        r5 += 20
        if r5 > r9 goto out
";

#[test]
fn cycles_are_register_operations() {
    let cycles = |lines: &str| {
        let verified = verified(&format!("{ADDRESSES}{lines}\n out: r0 = 2\n exit"));
        verified.worst_path(&Prices::VRP_CYCLES).price
    };
    // The state's size, a byte of the packet, its lower half, and a variable offset; the end.
    let head = cycles("");
    assert_eq!(head, 1 + 3 + 2);
    for (line, expected) in [
        ("r0 = 1", 1),
        ("r0 = 0x100000000 ll", 1),
        ("if r3 > 7 goto out", 1),
        // Register names.
        ("r0 = r8", 0),
        ("r8 += 4", 0),
        ("r7 += 4", 0),
        ("r0 = r6", 0),
        ("r0 = *(u32 *)(r6 + 4)", 0),
        // Other context fields, and results of address arithmetic, are numbers.
        ("r0 = *(u32 *)(r6 + 12)", 1),
        ("w0 = w8", 1),
        ("r8 += r3", 1),
        ("r0 = r10", 1),
        // State is transferred.
        ("r0 = *(u32 *)(r7 + 0)", 0),
        ("*(u64 *)(r7 + 8) = r3", 0),
        ("lock *(u32 *)(r7 + 0) += r3", 1),
        // Packet registers, whole and in part, one and two.
        ("r0 = *(u32 *)(r8 + 12)", 0),
        ("r0 = *(u64 *)(r8 + 12)", 0),
        ("r0 = *(u32 *)(r8 + 26)", 1),
        ("r0 = *(u64 *)(r8 + 26)", 2),
        ("r0 = *(u16 *)(r8 + 12)", 1),
        ("r0 = *(u32 *)(r4 + 12)", 1),
        ("*(u32 *)(r8 + 12) = r3", 1),
        ("*(u64 *)(r8 + 12) = r3", 2),
        ("*(u32 *)(r8 + 26) = r3", 2),
        ("*(u64 *)(r8 + 26) = r3", 3),
        ("*(u16 *)(r8 + 15) = r3", 2),
        ("*(u16 *)(r8 + 14) = r3", 1),
        ("*(u8 *)(r8 + 15) = r3", 1),
        ("*(u32 *)(r4 + 12) = r3", 2),
        ("*(u8 *)(r4 + 12) = r3", 1),
        // Helpers, and their arguments: the stack's address, moved, and numbers.
        ("call get_prandom_u32", 1),
        ("r1 = r6\n r2 = 16\n call xdp_adjust_tail", 1 + 1 + 4),
        ("r1 = r6\n call lw_transport", 1),
        // The paper's processor has no stack.
        ("*(u64 *)(r10 - 8) = r3", 1),
    ] {
        assert_eq!(cycles(line) - head, expected, "{line}");
    }
}
