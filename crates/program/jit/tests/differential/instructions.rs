//! Every instruction in all widths, with boundary operands: compiled and interpreted.

use crate::bench::Bench;
use longwire_program::{
    Arithmetic, Atomic, ByteOrder, Code, Condition, Instruction, MapKind, MapSpec, Operand, Program, Region,
    Register, Size, Width,
};

const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const SIZES: [Size; 4] = [Size::Byte, Size::Half, Size::Word, Size::Double];
const ATOMICS: [Atomic; 10] = [
    Atomic::Add,
    Atomic::Or,
    Atomic::And,
    Atomic::Xor,
    Atomic::FetchAdd,
    Atomic::FetchOr,
    Atomic::FetchAnd,
    Atomic::FetchXor,
    Atomic::Exchange,
    Atomic::CompareExchange,
];
/// Zero, one, the limits of 8, 16, 32 and 64 bits with and without sign, their neighbours, and shifts around
/// a width.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x8000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0xffff_ffff_8000_0000,
    0xffff_ffff_ffff_fff3,
    u64::MAX,
];

fn register(number: u8) -> Register {
    Register::new(number).unwrap()
}

fn mov(dst: u8, src: u8) -> Instruction {
    let (operation, width) = (Arithmetic::Mov, Width::W64);
    Instruction::Arithmetic { width, operation, dst: register(dst), source: Operand::Register(register(src)) }
}

fn set(dst: u8, value: u64) -> Instruction {
    Instruction::LoadWide { dst: register(dst), value }
}

/// Immediates: the boundary values that fit.
fn immediates() -> impl Iterator<Item = i32> {
    EDGES.into_iter().filter_map(|edge| i32::try_from(edge as i64).ok())
}

/// All computations of `r2` from `r2` and `r3`.
fn computations() -> Vec<Instruction> {
    let (dst, src) = (register(2), register(3));
    let mut all = Vec::new();
    for width in WIDTHS {
        for &operation in Arithmetic::ALL {
            let sources = immediates().map(Operand::Immediate).chain([Operand::Register(src)]);
            all.extend(sources.map(|source| Instruction::Arithmetic { width, operation, dst, source }));
        }
        all.push(Instruction::Negate { width, dst });
        all.extend([Size::Byte, Size::Half].map(|from| Instruction::MoveExtended { width, from, dst, src }));
    }
    all.push(Instruction::MoveExtended { width: Width::W64, from: Size::Word, dst, src });
    for size in [Size::Half, Size::Word, Size::Double] {
        all.extend(ByteOrder::ALL.iter().map(|&order| Instruction::Swap { order, size, dst }));
    }
    all
}

/// A program that loads `r2` and `r3` from the packet, executes `middle`, and returns `r2`.
fn of_packet(middle: &[Instruction]) -> (Program, Vec<Option<Region>>) {
    let load = |size, dst, base, offset| Instruction::Load {
        size,
        dst: register(dst),
        base: register(base),
        offset,
    };
    let mut all = vec![load(Size::Word, 6, 1, 0), load(Size::Double, 2, 6, 0), load(Size::Double, 3, 6, 8)];
    let mut hints = vec![Some(Region::Context), Some(Region::Packet), Some(Region::Packet)];
    all.extend(middle);
    hints.resize(all.len(), None);
    all.extend([mov(0, 2), Instruction::Exit]);
    (Program::new("computes", Code::new(all).unwrap(), []), hints)
}

/// Runs a program on every pair of boundary values, interpreted and compiled once.
fn compare_on_pairs((program, hints): (Program, Vec<Option<Region>>)) {
    let mut bench = Bench::new(program, &[]);
    let maps = bench.maps();
    let compiled = longwire_jit::compile_unverified(&bench.program, &hints, maps.clone()).unwrap();
    for left in EDGES {
        for right in EDGES {
            bench.packet = [left.to_le_bytes(), right.to_le_bytes()].concat();
            let (wanted, got) = (bench.interpreted(), bench.run(&compiled, &maps));
            assert!(wanted.result.is_ok());
            assert_eq!(got, wanted, "{left:#x} {right:#x}\n{}", bench.program);
        }
    }
}

#[test]
fn computations_of_unknown_numbers() {
    for computation in computations() {
        compare_on_pairs(of_packet(&[computation]));
    }
}

/// The code generator knows the operands and may compute the results itself.
#[test]
fn computations_of_known_numbers() {
    for computation in computations() {
        let mut all = vec![set(0, 1)];
        for left in EDGES {
            for right in EDGES {
                all.extend([set(2, left), set(3, right), computation]);
                // A hash of all results.
                let times = Operand::Immediate(0x0100_0193);
                let (width, dst) = (Width::W64, Register::R0);
                all.push(Instruction::Arithmetic { width, operation: Arithmetic::Mul, dst, source: times });
                let source = Operand::Register(register(2));
                all.push(Instruction::Arithmetic { width, operation: Arithmetic::Xor, dst, source });
            }
        }
        all.push(Instruction::Exit);
        let bench = Bench::new(Program::new("known", Code::new(all).unwrap(), []), &[]);
        assert_eq!(bench.unverified(&[]), bench.interpreted(), "{computation}");
    }
}

#[test]
fn branches() {
    for width in WIDTHS {
        for &condition in Condition::ALL {
            let sources = immediates().map(Operand::Immediate).chain([Operand::Register(register(3))]);
            for source in sources {
                let branch = Instruction::Branch { width, condition, dst: register(2), source, offset: 1 };
                compare_on_pairs(of_packet(&[branch, set(2, 0x55).short()]));
            }
        }
    }
}

trait Short {
    fn short(self) -> Instruction;
}

impl Short for Instruction {
    /// The instruction in one slot.
    fn short(self) -> Instruction {
        match self {
            Self::LoadWide { dst, value } => {
                let source = Operand::Immediate(value as i32);
                Self::Arithmetic { width: Width::W64, operation: Arithmetic::Mov, dst, source }
            }
            other => other,
        }
    }
}

fn spec(value_size: u32, read_only: bool) -> MapSpec {
    MapSpec { read_only, ..MapSpec::new("m", MapKind::Array, 4, value_size, 3) }
}

/// With an address of each region in `r6` and valid contents: calls `after`.
fn in_each_region(mut after: impl FnMut(&Bench, Region, usize)) {
    let context = vec![mov(6, 1)];
    let packet = Instruction::Load { size: Size::Word, dst: register(6), base: register(1), offset: 0 };
    let value = |map| Instruction::LoadMapValue { dst: register(6), map, offset: 32 };
    let state = Instruction::LoadWide { dst: register(6), value: Region::State.address(0) };
    let nowhere = Instruction::LoadWide { dst: register(6), value: 0 };
    let handle = Instruction::LoadMap { dst: register(6), map: 1 };
    for (region, begin) in [
        (Region::Context, context),
        (Region::Packet, vec![packet]),
        (Region::Stack, vec![mov(6, 10)]),
        (Region::State, vec![state]),
        (Region::Map(0), vec![value(0)]),
        (Region::Map(1), vec![value(1)]),
        (Region::Map(2), vec![value(2)]),
        (Region::Map(7), vec![value(7)]),
        (Region::Handle(1), vec![handle]),
        (Region::Context, vec![nowhere]),
    ] {
        let mut all = begin;
        let at = all.len() + 3;
        all.extend([mov(9, 10), set(2, 0x8182_8384_8586_8788), set(0, 0x1817_1615_1413_1211)]);
        let code = Code::new([&all[..], &[Instruction::Exit, Instruction::Exit]].concat()).unwrap();
        let maps = [spec(16, false), spec(12, false), spec(16, true)];
        let packet: Vec<u8> = (0..40u8).map(|byte| byte ^ 0x95).collect();
        after(&Bench::new(Program::new("touches", code, maps), &packet), region, at);
    }
}

/// Offsets around the ends of everything.
const OFFSETS: [i16; 39] = [
    -32768, -4096, -520, -513, -512, -505, -40, -33, -32, -31, -9, -8, -7, -4, -2, -1, 0, 1, 2, 3, 4, 8, 12,
    13, 16, 20, 24, 32, 33, 34, 35, 36, 37, 38, 39, 40, 56, 63, 64,
];

fn compare_in_each_region(accesses: &[Instruction]) {
    let all_regions =
        [Region::Context, Region::Packet, Region::Stack, Region::State, Region::Map(0), Region::Map(1)];
    in_each_region(|bench, region, at| {
        for (number, &access) in accesses.iter().enumerate() {
            let mut bench = bench.clone();
            let mut instructions = bench.program.code.instructions().to_vec();
            instructions[at] = access;
            bench.program.code = Code::new(instructions).unwrap();
            let wanted = bench.interpreted();
            let wrong = all_regions[number % all_regions.len()];
            for hint in [None, Some(region), Some(wrong)] {
                let mut hints = vec![None; at];
                hints.push(hint);
                assert_eq!(bench.unverified(&hints), wanted, "{hint:?}\n{}", bench.program);
            }
            if let Some(got) = bench.verified() {
                assert_eq!(got, wanted, "{}", bench.program);
            }
        }
    });
}

#[test]
fn loads() {
    let (dst, base) = (Register::R0, register(6));
    let mut all = Vec::new();
    for offset in OFFSETS {
        all.extend(SIZES.map(|size| Instruction::Load { size, dst, base, offset }));
        let narrow = [Size::Byte, Size::Half, Size::Word];
        all.extend(narrow.map(|size| Instruction::LoadExtended { size, dst, base, offset }));
    }
    compare_in_each_region(&all);
}

#[test]
fn stores() {
    let mut all = Vec::new();
    for offset in OFFSETS {
        for source in [Operand::Register(register(2)), Operand::Immediate(-2)] {
            all.extend(SIZES.map(|size| Instruction::Store { size, base: register(6), offset, source }));
        }
    }
    compare_in_each_region(&all);
}

#[test]
fn atomics() {
    let mut all = Vec::new();
    for width in WIDTHS {
        for operation in ATOMICS {
            let change = |offset| Instruction::Atomic {
                width,
                operation,
                base: register(6),
                offset,
                src: register(2),
            };
            all.extend([-32, -30, -8, -4, 0, 1, 4, 8, 40, 60, 64].map(change));
        }
    }
    compare_in_each_region(&all);
}

#[test]
fn exchanges_that_find_what_they_compare_with() {
    for width in WIDTHS {
        let size = if width == Width::W32 { Size::Word } else { Size::Double };
        let (base, src) = (register(6), register(2));
        in_each_region(|bench, region, at| {
            let mut bench = bench.clone();
            let mut instructions = bench.program.code.instructions().to_vec();
            let operation = Atomic::CompareExchange;
            instructions.truncate(at);
            instructions.extend([
                Instruction::Load { size, dst: Register::R0, base, offset: -8 },
                Instruction::Atomic { width, operation, base, offset: -8, src },
                Instruction::Exit,
            ]);
            bench.program.code = Code::new(instructions).unwrap();
            let wanted = bench.interpreted();
            for hint in [None, Some(region)] {
                let mut hints = vec![None; at];
                hints.extend([hint, hint]);
                assert_eq!(bench.unverified(&hints), wanted, "{}", bench.program);
            }
        });
    }
}
