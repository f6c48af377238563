//! Whatever the verifier lets in runs without a fault on any packet, and never costs more than was said.

mod harness;

use harness::{Bench, ROOM};
use longwire_program::{
    Arithmetic, ByteOrder, Code, Condition, Counts, Fault, Instruction, Item, MapKind, MapSpec, Maps, Narrow,
    Object, Operand, Prices, Program, Register, Size, State, SwapWidth, Verified, Width, assemble, verify,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use std::cell::Cell;

const OBJECTS: &[&[u8]] = &[
    include_bytes!("objects/counter.o"),
    include_bytes!("objects/events.o"),
    include_bytes!("objects/globals.o"),
    include_bytes!("objects/longwire.o"),
    include_bytes!("objects/modern.o"),
    include_bytes!("xdp/filter.v4.o"),
    include_bytes!("xdp/headers.v3.o"),
    include_bytes!("xdp/limits.v4.o"),
    include_bytes!("xdp/options.v4.o"),
    include_bytes!("xdp/rewrite.v3.o"),
    include_bytes!("xdp/rewrite.v4.o"),
    include_bytes!("xdp/tunnel.v3.o"),
];

/// Small programs that between them do everything that programs can do. Maps: 0 an array of 4 values of 24 bytes, 1 a hash map of
/// words, 2 a device map, 3 an array of one value of 64 bytes.
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
    // A value of an array, found and changed.
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
    // A word searched, written if it is not there, removed.
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
    // The packet moved, and looked at anew.
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
    // Redirected by a device map or drawn lots, and variables of a data section.
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
    // An address that is one thing or another, and numbers that are compared as signed.
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
    // Addresses kept while the packet is moved, and loaded again.
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
    // An address kept on the stack beside words that change, and a number that is known by its copy.
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

/// Programs to begin with; their maps are small.
fn pool() -> Vec<Program> {
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

/// A change of one instruction, by numbers that anything can be made of.
type Change = (Index, u8, u8, i32);

fn register(number: u8) -> Register {
    Register::new(number % 11).unwrap()
}

/// The instruction, somewhat different.
fn changed(
    instruction: Instruction,
    others: &[Instruction],
    (at, what, which, value): Change,
) -> Instruction {
    use Instruction as I;
    let widths = [Width::W32, Width::W64];
    let small = SMALL_STEPS[which as usize % 10];
    let number = match which % 4 {
        0 => value,
        1 => value % 64,
        2 => [0, 1, -1, 255, i32::MAX, i32::MIN, 0xffff, 31][value as usize % 8],
        _ => small,
    };
    let source =
        if which & 1 == 0 { Operand::Immediate(number) } else { Operand::Register(register(which / 2)) };
    match (instruction, what % 6) {
        (I::Arithmetic { operation, dst, source, .. }, 0) => {
            I::Arithmetic { width: widths[which as usize % 2], operation, dst, source }
        }
        (I::Arithmetic { width, dst, source, .. }, 1) => I::Arithmetic {
            width,
            operation: Arithmetic::ALL[which as usize % Arithmetic::ALL.len()],
            dst,
            source,
        },
        (I::Arithmetic { width, operation, dst, .. }, 2 | 3) => {
            I::Arithmetic { width, operation, dst, source }
        }
        (I::Arithmetic { width, operation, source, .. }, 4) => {
            I::Arithmetic { width, operation, dst: register(which % 10), source }
        }
        (I::Branch { condition, dst, source, offset, .. }, 0) => {
            I::Branch { width: widths[which as usize % 2], condition, dst, source, offset }
        }
        (I::Branch { width, dst, source, offset, .. }, 1) => {
            let condition = Condition::ALL[which as usize % Condition::ALL.len()];
            I::Branch { width, condition, dst, source, offset }
        }
        (I::Branch { width, condition, dst, offset, .. }, 2) => {
            I::Branch { width, condition, dst, source, offset }
        }
        (I::Branch { width, condition, source, offset, .. }, 3) => {
            I::Branch { width, condition, dst: register(which), source, offset }
        }
        (I::Branch { width, condition, dst, source, offset }, 4) => {
            I::Branch { width, condition, dst, source, offset: offset.saturating_add(small as i16) }
        }
        (I::Load { .. } | I::Store { .. }, 0..=4) => changed_access(instruction, what % 6, which, source),
        (I::LoadMapValue { dst, map, .. }, 0..=4) => {
            I::LoadMapValue { dst, map, offset: u32::from(which % 64) }
        }
        (_, 5) if which & 1 == 0 => I::Jump { offset: i16::from(which) / 2 % 3 },
        _ => match others[at.index(others.len())] {
            I::Jump { .. } | I::JumpLong { .. } | I::Branch { .. } | I::CallLocal { .. } => instruction,
            other => other,
        },
    }
}

/// A load or a store, somewhat different.
fn changed_access(instruction: Instruction, what: u8, which: u8, source: Operand) -> Instruction {
    use Instruction as I;
    let sizes = [Size::Byte, Size::Half, Size::Word, Size::Double];
    let small = SMALL_STEPS[which as usize % 10] as i16;
    match (instruction, what) {
        (I::Load { dst, base, offset, .. }, 0) => {
            I::Load { size: sizes[which as usize % 4], dst, base, offset }
        }
        (I::Load { size, dst, base, offset }, 1 | 2) => {
            I::Load { size, dst, base, offset: offset.saturating_add(small) }
        }
        (I::Load { size, dst, offset, .. }, 3) => I::Load { size, dst, base: register(which), offset },
        (I::Load { size, dst, base, offset }, 4) if size != Size::Double => {
            I::LoadExtended { size, dst, base, offset }
        }
        (I::Store { base, offset, source, .. }, 0) => {
            I::Store { size: sizes[which as usize % 4], base, offset, source }
        }
        (I::Store { size, base, offset, source }, 1 | 2) => {
            I::Store { size, base, offset: offset.saturating_add(small), source }
        }
        (I::Store { size, offset, source, .. }, 3) => {
            I::Store { size, base: register(which), offset, source }
        }
        (I::Store { size, base, offset, .. }, 4) => I::Store { size, base, offset, source },
        (other, _) => other,
    }
}

const SMALL_STEPS: [i32; 10] = [-16, -8, -4, -2, -1, 1, 2, 4, 8, 16];

/// A packet that looks like one, more or less.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let header = select(vec![&[8u8, 0, 0x45][..], &[8, 0, 0x4f], &[0x81, 0, 0], &[0x86, 0xdd, 0x60], &[]]);
    let protocol = select(vec![1, 4, 6, 17, 0]);
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..160),
        prop::collection::vec(select(vec![0, 1, 4, 8, 0x7f, 0x80, 0xff]), 0..160),
    ];
    (bytes, header, protocol).prop_map(|(mut bytes, header, protocol)| {
        if let Some(place) = bytes.get_mut(12..12 + header.len()) {
            place.copy_from_slice(header);
        }
        if let Some(place) = bytes.get_mut(23) {
            *place = protocol;
        }
        bytes
    })
}

fn bench(verified: &Verified, packet: &[u8]) -> Bench {
    let mut bench = Bench::new(packet, Maps::new(&verified.program().maps, 2, 1).unwrap());
    bench.state = State::new(verified.state_size());
    bench.budget = 1 << 20;
    bench
}

/// Runs a verified program on packets, one after the other.
fn run(verified: &Verified, packets: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let code = &verified.program().code;
    let mut bench = bench(verified, &[]);
    for packet in packets {
        bench.buffer = [&[0xee; ROOM][..], packet, &[0xee; ROOM]].concat();
        let ran = bench.run(code);
        let listing = || format!("{}\n{packet:?}", verified.program());
        let ran = ran.map_err(|stopped| TestCaseError::fail(format!("{stopped}\n{}", listing())))?;
        prop_assert!(ran.instructions <= u64::from(verified.most()[Item::Instruction]), "{}", listing());
    }
    Ok(())
}

/// The instructions that a program takes for a packet: it is stopped a little later every time.
fn path(verified: &Verified, packet: &[u8]) -> Vec<usize> {
    let code = &verified.program().code;
    let stop = |budget| {
        let mut bench = bench(verified, packet);
        bench.budget = budget;
        match bench.run(code) {
            Err(stopped) if stopped.fault == Fault::Budget => code.at_slot(stopped.slot),
            _ => None,
        }
    };
    (0..).map_while(stop).collect()
}

/// That what is known of instructions is so on the way that a packet takes, and that it costs no more than was said.
fn check_path(verified: &Verified, packet: &[u8]) -> Result<(), TestCaseError> {
    let path = path(verified, packet);
    let mut counts = Counts::NONE;
    for (step, &index) in path.iter().enumerate() {
        let fact = &verified.facts()[index];
        prop_assert!(fact.reached);
        if let Instruction::Branch { .. } = verified.program().code.instructions()[index]
            && let Some(&next) = path.get(step + 1)
        {
            let jumps = verified.program().code.target(index) == Some(next);
            let falls = next == index + 1;
            prop_assert!(jumps && fact.jumps || falls && fact.falls);
        }
        counts = counts.plus(verified.cost(index).unwrap());
    }
    prop_assert_eq!(counts.most(verified.most()), *verified.most());
    for prices in [Prices::VRP_CYCLES, Prices::ASSUMED_PICOSECONDS] {
        let worst = verified.worst_path(&prices);
        prop_assert!(prices.total(&counts) <= worst.price);
        prop_assert_eq!(prices.total(&worst.counts), worst.price);
    }
    Ok(())
}

/// Something computed with `r0` to `r5`, `r7` and `r8`.
fn computed() -> impl Strategy<Value = Instruction> {
    let register =
        || select(vec![0u8, 1, 2, 3, 4, 5, 7, 8]).prop_map(|number| Register::new(number).unwrap());
    let width = || select(vec![Width::W32, Width::W64]);
    let number = prop_oneof![-9..70, select(vec![0, 1, 255, 0xffff, i32::MAX, i32::MIN, -1]), any::<i32>()];
    let operand = prop_oneof![number.prop_map(Operand::Immediate), register().prop_map(Operand::Register)];
    let operand = operand.boxed();
    let plain = (width(), select(Arithmetic::ALL), register(), operand.clone()).prop_map(
        |(width, operation, dst, source)| Instruction::Arithmetic { width, operation, dst, source },
    );
    let branch = (width(), select(Condition::ALL), register(), operand, 0..4i16).prop_map(
        |(width, condition, dst, source, offset)| Instruction::Branch {
            width,
            condition,
            dst,
            source,
            offset,
        },
    );
    let narrow = select(vec![Narrow::S8, Narrow::S16]);
    let extended = (width(), narrow, register(), register())
        .prop_map(|(width, from, dst, src)| Instruction::MoveExtended { width, from, dst, src });
    let order = select(vec![ByteOrder::Big, ByteOrder::Little, ByteOrder::Swapped]);
    let swap = (order, select(vec![SwapWidth::B16, SwapWidth::B32, SwapWidth::B64]), register())
        .prop_map(|(order, width, dst)| Instruction::Swap { order, width, dst });
    let negate = (width(), register()).prop_map(|(width, dst)| Instruction::Negate { width, dst });
    prop_oneof![12 => plain, 8 => branch, 1 => extended, 1 => swap, 1 => negate]
}

/// 64 bytes of the stack that may be read, and eight registers with words of the packet, some cut shorter.
fn words() -> String {
    let mut text = String::from("r6 = r1\n r2 = 0\n r3 = r10\n r3 += -64\n r4 = 64\n call xdp_load_bytes\n");
    for (place, number) in [0, 1, 2, 3, 4, 5, 7, 8].into_iter().enumerate() {
        let size = ["u64", "u64", "u32", "u32", "u16", "u8", "u8", "u64"][place];
        text += &format!("r{number} = *({size} *)(r10 - {})\n", 64 - 8 * place);
    }
    text
}

fn interesting() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        any::<u64>(),
        0..70u64,
        select(vec![0, u64::MAX, 1 << 63, i64::MAX as u64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 32])
    ];
    prop::collection::vec(word, 8)
        .prop_map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// How many of the cases that a test tried were let in.
#[derive(Default)]
struct Tally {
    tried: Cell<u32>,
    accepted: Cell<u32>,
}

impl Tally {
    fn verify(&self, program: Program) -> Option<Verified> {
        self.tried.set(self.tried.get() + 1);
        let verified = verify(program).ok()?;
        self.accepted.set(self.accepted.get() + 1);
        Some(verified)
    }

    /// At least one of so many was let in, so that a test that tries nothing fails.
    fn at_least_one_of(&self, times: u32) {
        let (tried, accepted) = (self.tried.get(), self.accepted.get());
        assert!(accepted * times >= tried && tried > CASES / 2, "{accepted} of {tried}");
    }
}

const CASES: u32 = 8000;

fn runner() -> TestRunner {
    TestRunner::new(ProptestConfig { cases: CASES, source_file: Some(file!()), ..ProptestConfig::default() })
}

#[test]
fn changed_programs_run_if_they_are_let_in() {
    let (pool, tally) = (pool(), Tally::default());
    let changes = prop::collection::vec((any::<Index>(), any::<Change>()), 1..4);
    let cases = (any::<Index>(), changes, prop::collection::vec(packet(), 4));
    let case = |(which, changes, packets): (Index, Vec<(Index, Change)>, Vec<Vec<u8>>)| {
        let mut program = which.get(&pool).clone();
        let mut instructions = program.code.instructions().to_vec();
        for (place, change) in changes {
            let place = place.index(instructions.len());
            instructions[place] = changed(instructions[place], &instructions, change);
        }
        let Ok(code) = Code::new(instructions) else { return Ok(()) };
        program.code = code;
        let Some(verified) = tally.verify(program) else { return Ok(()) };
        run(&verified, &packets)?;
        if verified.facts().len() > 40 {
            return Ok(());
        }
        check_path(&verified, &packets[0])?;
        let cuts = (0..48).map(|length| packets[1].iter().copied().chain([0x81; 48]).take(length).collect());
        run(&verified, &cuts.collect::<Vec<_>>())
    };
    runner().run(&cases, case).unwrap();
    tally.at_least_one_of(5);
}

#[test]
fn computed_places_are_where_they_were_said_to_be() {
    let tally = Tally::default();
    let masks = select(vec!["&= 63", ">>= 58", "%= 60", "&= 31", ">>= 60"]);
    let compared = select(vec!["rX > 63", "wX > 31", "rX s> 40", "wX s> 40", "rX >= 64"]);
    let bound = prop_oneof![
        Just(String::new()),
        masks.prop_map(|text| format!("rX {text}\n")),
        compared.prop_map(|text| format!("if {text} goto out\n")),
        Just("if rX s> 63 goto out\n if rX s< 0 goto out\n".into()),
        Just("if wX s> 63 goto out\n if wX s< -2 goto out\n wX += 2\n".into()),
    ];
    let index = select(vec![0u8, 1, 2, 3, 4, 5, 7, 8]);
    let body = prop::collection::vec(computed(), 1..14);
    let cases = (body, index, bound, prop::collection::vec(interesting(), 4));
    let case = |(body, index, bound, packets): (Vec<Instruction>, u8, String, Vec<Vec<u8>>)| {
        let finale = "r6 = r10\n r6 += -64\n r6 += rX\n r0 = *(u8 *)(r6 + 0)\n out: r0 = 2\n exit";
        let finale = (bound + finale).replace('X', &index.to_string());
        let mut instructions = assemble(&words()).unwrap().instructions().to_vec();
        instructions.extend(body);
        instructions.extend(assemble(&finale).unwrap().instructions());
        let Ok(code) = Code::new(instructions) else { return Ok(()) };
        match tally.verify(Program::new("computed", code, [])) {
            Some(verified) => run(&verified, &packets),
            None => Ok(()),
        }
    };
    runner().run(&cases, case).unwrap();
    tally.at_least_one_of(5);
}

/// The programs to begin with are let in, and cost on a packet's path no more than was said.
#[test]
fn whole_programs_run() {
    let mut packets = vec![vec![], vec![0; 14], vec![0xff; 200]];
    for protocol in [1, 4, 6, 17] {
        let mut packet = vec![0; 120];
        packet[12..15].copy_from_slice(&[8, 0, 0x45]);
        packet[22..24].copy_from_slice(&[64, protocol]);
        packet[46..48].copy_from_slice(&[0x80, 2]);
        packets.push(packet);
    }
    for program in pool() {
        let verified = verify(program).unwrap();
        run(&verified, &packets).unwrap();
        for packet in &packets {
            check_path(&verified, packet).unwrap();
        }
    }
}
