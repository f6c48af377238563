//! Random programs, straight or with forward jumps only, that access all regions.

use longwire_program::{
    Arithmetic, Atomic, ByteOrder, Code, Condition, Instruction, MapKind, MapSpec, Operand, Program, Region,
    Register, Size, Width, assemble,
};
use proptest::prelude::*;

/// Behaviour of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Invalid accesses.
    Wild,
    /// Mostly accepted by the verifier.
    Tame,
    /// Mostly accepted by the kernel, where its behaviour is defined.
    Kernel,
}

/// A piece of a program: instructions with the regions of their accesses, and the length in pieces of a
/// branch instead.
#[derive(Debug, Clone)]
pub struct Piece {
    instructions: Vec<Instruction>,
    hint: Option<Region>,
    skip: Option<usize>,
}

/// A beginning that loads an address of every region: `r6` the packet's, `r7` a map's value, `r8` the state,
/// `r9` the context; and numbers into the other registers.
const BEGINNING: &str = "r9 = r1
    r6 = *(u32 *)(r1 + 0)
    r7 = *(u32 *)(r1 + 4)
    r5 = r6
    r5 += 60
    r0 = 1
    if r5 > r7 goto +60
    r1 = 64
    call lw_flow_state
    r8 = r0
    *(u64 *)(r10 - 8) = 1
    *(u64 *)(r10 - 16) = -2
    *(u64 *)(r10 - 24) = 3
    *(u64 *)(r10 - 32) = 0
    r7 = map[0][0]+24 ll
    r0 = 0x8000000000000000 ll
    r1 = 1
    r2 = -1
    r3 = 0x123456789abcdef0 ll
    r4 = 0x80000000 ll
    r5 = 7";
/// The regions of its accesses.
const BEGINNING_HINTS: [Option<Region>; 3] = [None, Some(Region::Context), Some(Region::Context)];

fn number() -> impl Strategy<Value = Register> {
    (0..6u8).prop_map(|number| Register::new(number).unwrap())
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::W32), Just(Width::W64)]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![Just(Size::Byte), Just(Size::Half), Just(Size::Word), Just(Size::Double)]
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        number().prop_map(Operand::Register),
        prop_oneof![-9..70i32, any::<i32>()].prop_map(Operand::Immediate)
    ]
}

fn arithmetic() -> impl Strategy<Value = Arithmetic> {
    prop::sample::select(Arithmetic::ALL)
}

fn condition() -> impl Strategy<Value = Condition> {
    prop::sample::select(Condition::ALL)
}

fn atomic() -> impl Strategy<Value = Atomic> {
    prop::sample::select(vec![
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
    ])
}

/// A computation.
fn computation() -> impl Strategy<Value = Instruction> {
    prop_oneof![
        6 => (width(), arithmetic(), number(), operand()).prop_map(|(width, operation, dst, source)| {
            Instruction::Arithmetic { width, operation, dst, source }
        }),
        1 => (width(), number()).prop_map(|(width, dst)| Instruction::Negate { width, dst }),
        1 => (any::<bool>(), number(), number(), 0..3u8).prop_map(|(wide, dst, src, from)| {
            let from = [Size::Byte, Size::Half, Size::Word][usize::from(from)];
            let width = if wide || from == Size::Word { Width::W64 } else { Width::W32 };
            Instruction::MoveExtended { width, from, dst, src }
        }),
        1 => (0..3usize, 0..3usize, number()).prop_map(|(order, size, dst)| Instruction::Swap {
            order: ByteOrder::ALL[order],
            size: [Size::Half, Size::Word, Size::Double][size],
            dst,
        }),
        1 => (number(), any::<u64>()).prop_map(|(dst, value)| Instruction::LoadWide { dst, value }),
    ]
}

/// An address register, its region, and an offset: within the region and aligned, except in wild programs.
fn place(size: Size, kind: Kind) -> impl Strategy<Value = (Register, Region, i16)> {
    let bases = [
        (6, Region::Packet, 0..60i16),
        (7, Region::Map(0), -24..24),
        (8, Region::State, 0..64),
        (9, Region::Context, 0..24),
        (10, Region::Stack, -32..0),
    ];
    let bytes = size.bytes() as i16;
    let bases = if kind == Kind::Kernel {
        vec![bases[0].clone(), bases[1].clone(), bases[4].clone()]
    } else {
        bases.to_vec()
    };
    let tame = kind != Kind::Wild;
    (0..bases.len(), any::<u16>(), 0..60u8).prop_map(move |(base, at, wild)| {
        let (number, region, range) = bases[base].clone();
        let room = (range.end - range.start - bytes + 1).max(1);
        let offset = range.start + (at % room as u16) as i16;
        let aligned = if region == Region::Packet { offset } else { offset & !(bytes - 1) };
        let offset = match wild {
            0 if !tame => at as i16,
            1 if !tame => offset,
            2 if !tame => range.end - at as i16 % 8,
            _ => aligned,
        };
        (Register::new(number).unwrap(), region, offset)
    })
}

/// A memory access.
fn access(of: Kind) -> impl Strategy<Value = (Instruction, Region)> {
    let parts = (0..8u8, number(), width(), atomic(), operand());
    (size(), parts).prop_flat_map(move |(size, (kind, register, width, operation, source))| {
        let size = match (kind, width) {
            (7, Width::W32) => Size::Word,
            (7, Width::W64) => Size::Double,
            _ => size,
        };
        let tame = of != Kind::Wild;
        place(size, of).prop_map(move |(base, region, offset)| {
            let size = if region == Region::Context && tame { Size::Word } else { size };
            // Addresses must not be used as numbers.
            let number = if region == Region::Context && tame { 12 + (offset & 4) } else { offset };
            let load = Instruction::Load { size, dst: register, base, offset: number };
            let instruction = match kind {
                _ if region == Region::Context && tame => load,
                0..=2 => Instruction::Load { size, dst: register, base, offset },
                3 if size != Size::Double => Instruction::LoadExtended { size, dst: register, base, offset },
                7 if region == Region::Packet && tame => load,
                7 => Instruction::Atomic { width, operation, base, offset, src: register },
                _ => Instruction::Store { size, base, offset, source },
            };
            (instruction, region)
        })
    })
}

/// Helper calls with valid arguments, and numbers in `r1` to `r5` afterwards.
fn call(kind: Kind) -> impl Strategy<Value = Vec<Instruction>> {
    let texts = [
        "call ktime_get_ns",
        "call get_prandom_u32",
        "call get_smp_processor_id",
        "call get_numa_node_id",
        "r1 = r9\n call xdp_get_buff_len",
        "r1 = r9\n call lw_transport",
        "r1 = r10\n r1 += -32\n r2 = 24\n r3 = 5\n call lw_hash",
        "r1 = 5\n call lw_drop",
        "r1 = 7\n r2 = 0\n call redirect",
        "r1 = 77\n call lw_mark",
        "call lw_read_mark",
        "r1 = 3\n call lw_redirect_link",
        "r1 = r6\n r1 &= 7\n call lw_choose_link",
        "*(u32 *)(r10 - 8) = 2\n r2 = r10\n r2 += -8\n r1 = map[1] ll\n r3 = r2\n r4 = 0\n call \
         map_update_elem",
        "*(u32 *)(r10 - 8) = 2\n r2 = r10\n r2 += -8\n r1 = map[1] ll\n call map_lookup_elem
         if r0 == 0 goto +1\n r0 = *(u64 *)(r0 + 0)",
        "*(u32 *)(r10 - 8) = 2\n r2 = r10\n r2 += -8\n r1 = map[1] ll\n call map_delete_elem",
        "r1 = r9\n r2 = 3\n r3 = r10\n r3 += -24\n r4 = 8\n call xdp_load_bytes",
        "r1 = r9\n r2 = 30\n r3 = r10\n r3 += -24\n r4 = 8\n call xdp_store_bytes",
        "r1 = r9\n r2 = 4\n call xdp_adjust_tail\n r6 = *(u32 *)(r9 + 0)\n r2 = *(u32 *)(r9 + 4)
         r3 = r6\n r3 += 60\n if r3 <= r2 goto +2\n r0 = 1\n exit",
    ];
    let known = |text: &&str| {
        let others = ["lw_", "ktime", "prandom", "processor", "numa", "adjust", "redirect"];
        kind != Kind::Kernel || !others.iter().any(|other| text.contains(other))
    };
    let texts: Vec<&str> = texts.into_iter().filter(known).collect();
    (0..texts.len()).prop_map(move |number| {
        let again = "r1 = 3\n r2 = -4\n r3 = 99\n r4 = 0x123456789 ll\n r5 = 6";
        let text = format!("{}\n{again}", texts[number]);
        assemble(&text).unwrap().instructions().to_vec()
    })
}

/// Avoids immediates that the kernel refuses: zero divisors, and shifts beyond the width.
fn mild(instruction: Instruction) -> Instruction {
    match instruction {
        Instruction::Arithmetic { width, operation, dst, source: Operand::Immediate(value) } => {
            use Arithmetic::{Div, Mod, ShiftLeft, ShiftRight, ShiftRightSigned, SignedDiv, SignedMod};
            let value = match operation {
                Div | Mod | SignedDiv | SignedMod => value | 1,
                ShiftLeft | ShiftRight | ShiftRightSigned => value & 31,
                _ => value,
            };
            Instruction::Arithmetic { width, operation, dst, source: Operand::Immediate(value) }
        }
        other => other,
    }
}

pub fn piece(kind: Kind) -> impl Strategy<Value = Piece> {
    let plain = |instruction| Piece { instructions: vec![instruction], hint: None, skip: None };
    prop_oneof![
        4 => computation().prop_map(move |instruction| {
            plain(if kind == Kind::Kernel { mild(instruction) } else { instruction })
        }),
        5 => access(kind).prop_map(|(instruction, region)| {
            Piece { instructions: vec![instruction], hint: Some(region), skip: None }
        }),
        1 => call(kind).prop_map(|instructions| Piece { instructions, hint: None, skip: None }),
        2 => (width(), condition(), number(), operand(), 0..6usize).prop_map(
            |(width, condition, dst, source, skip)| {
                let branch = Instruction::Branch { width, condition, dst, source, offset: 0 };
                Piece { instructions: vec![branch], hint: None, skip: Some(skip) }
            }
        ),
    ]
}

pub fn maps() -> [MapSpec; 2] {
    [MapSpec::new("a", MapKind::Array, 4, 48, 1), MapSpec::new("h", MapKind::Hash, 4, 8, 4)]
}

/// Joins pieces, with an end for all branches.
pub fn program(pieces: Vec<Piece>, kind: Kind) -> (Program, Vec<Option<Region>>) {
    let (body, body_hints) = body(pieces);
    let mut all = beginning(slots(&body), kind);
    let mut hints = BEGINNING_HINTS.to_vec();
    hints.resize(all.len(), None);
    all.extend(body);
    hints.extend(body_hints);
    all.push(Instruction::Exit);
    (Program::new("random", Code::new(all).unwrap(), maps()), hints)
}

/// The pieces in two nested loops with counters on the stack.
pub fn looped(pieces: Vec<Piece>, kind: Kind, (outer, inner): (u8, u8)) -> Program {
    let (body, _) = body(pieces);
    let length = slots(&body);
    let before = "*(u64 *)(r10 - 48) = 0\n *(u64 *)(r10 - 56) = 0";
    let turn = |place: u8, rounds: u8, back: usize| {
        format!(
            "r1 = *(u64 *)(r10 - {place})\n r1 += 1\n *(u64 *)(r10 - {place}) = r1\n if r1 < {rounds} goto \
             -{back}\n"
        )
    };
    let after = turn(56, inner, length + 4) + &turn(48, outer, length + 9);
    // Its target does not exist yet.
    let pad = "r0 = 0\n".repeat(length + 2);
    let after = assemble(&format!("{pad}{after}")).unwrap().instructions()[length + 2..].to_vec();
    let mut all = beginning(2 + length + slots(&after), kind);
    all.extend_from_slice(assemble(before).unwrap().instructions());
    all.extend(body);
    all.extend(after);
    all.push(Instruction::Exit);
    Program::new("looped", Code::new(all).unwrap(), maps())
}

/// The pieces in a callback that a helper calls this many times, or until they leave an odd number.
pub fn repeated(pieces: Vec<Piece>, kind: Kind, rounds: u8) -> Program {
    let (body, _) = body(pieces);
    let before = format!(
        "*(u64 *)(r10 - 8) = r1\n r1 = {rounds}\n r2 = pc f ll\n r3 = r10\n r3 += -8\n r4 = 0\n call loop\n \
         exit
         f: r1 = *(u64 *)(r2 + 0)"
    );
    let mut all = assemble(&before).unwrap().instructions().to_vec();
    all.extend(beginning(slots(&body), kind));
    all.extend(body);
    all.extend_from_slice(assemble("r0 &= 1\n exit").unwrap().instructions());
    Program::new("repeated", Code::new(all).unwrap(), maps())
}

fn slots(instructions: &[Instruction]) -> usize {
    instructions.iter().map(Instruction::slots).sum()
}

/// The pieces in sequence, with the regions of their accesses.
fn body(pieces: Vec<Piece>) -> (Vec<Instruction>, Vec<Option<Region>>) {
    let starts: Vec<usize> = pieces
        .iter()
        .scan(0, |at, piece| {
            let start = *at;
            *at += piece.instructions.iter().map(Instruction::slots).sum::<usize>();
            Some(start)
        })
        .collect();
    let end = starts.last().map_or(0, |&last| {
        last + pieces[pieces.len() - 1].instructions.iter().map(Instruction::slots).sum::<usize>()
    });
    let mut body = Vec::new();
    let mut body_hints = Vec::new();
    for (number, piece) in pieces.into_iter().enumerate() {
        for instruction in piece.instructions {
            let instruction = match (instruction, piece.skip) {
                (Instruction::Branch { width, condition, dst, source, .. }, Some(skip)) => {
                    let target = starts.get(number + 1 + skip).copied().unwrap_or(end);
                    let offset = (target - starts[number] - 1) as i16;
                    Instruction::Branch { width, condition, dst, source, offset }
                }
                (other, _) => other,
            };
            body.push(instruction);
            body_hints.push(piece.hint);
        }
    }
    (body, body_hints)
}

/// The beginning, whose branch leads to the end.
pub fn beginning(body: usize, kind: Kind) -> Vec<Instruction> {
    let text = BEGINNING.replace("goto +60", "goto out");
    let text = match kind {
        Kind::Kernel => text.replace("r1 = 64\n    call lw_flow_state\n", ""),
        Kind::Wild | Kind::Tame => text,
    };
    let text = format!("{text}\n r9 = r9\n out: exit");
    let mut all = assemble(&text).unwrap().instructions().to_vec();
    all.truncate(all.len() - 2);
    for instruction in &mut all {
        if let Instruction::Branch { offset, .. } = instruction {
            *offset += body as i16 - 1;
        }
    }
    all
}

pub fn packet() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 56..90)
}

pub fn some_region() -> impl Strategy<Value = Option<Region>> {
    prop::sample::select(vec![
        None,
        Some(Region::Context),
        Some(Region::Packet),
        Some(Region::Stack),
        Some(Region::State),
        Some(Region::Map(0)),
        Some(Region::Map(1)),
        Some(Region::Handle(0)),
    ])
}

/// Arbitrary bytes that form an instruction, with short forward jumps.
pub fn any_instruction() -> impl Strategy<Value = Instruction> {
    any::<([u8; 8], u8, u32)>().prop_map(|(mut bytes, near, wide)| {
        bytes[1] = ((bytes[1] % 11) << 4) | (bytes[1] / 16 % 10);
        bytes[3] = if bytes[3] & 1 == 0 { 0 } else { 0xff };
        if matches!(bytes[0] & 7, 5 | 6) {
            (bytes[2], bytes[3]) = (near % 4, 0);
        }
        let mut slots = bytes.to_vec();
        slots.extend([0, 0, 0, 0]);
        slots.extend(wide.to_le_bytes());
        // Whichever fields must be zero.
        let attempts = [&[][..], &[4, 5, 6, 7], &[2, 3], &[2, 3, 4, 5, 6, 7]];
        let found = attempts.iter().find_map(|places| {
            let mut slots = slots.clone();
            places.iter().for_each(|&place| slots[place] = 0);
            Instruction::decode(&slots, 0).ok()
        });
        match found {
            Some(Instruction::CallLocal { .. }) => Instruction::CallLocal { offset: i32::from(near % 5) },
            Some(Instruction::JumpLong { .. }) => Instruction::JumpLong { offset: i32::from(near % 3) },
            Some(found) => found,
            None => Instruction::Call { helper: u32::from(near) },
        }
    })
}
