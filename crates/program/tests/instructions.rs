//! Instructions as bytes and as text. The bytes of the table are the output of LLVM 19's assembler (its
//! 32-bit atomics are written with `w`), except for maps and calls: its last five rows follow RFC 9669.

use longwire_program::{
    Arithmetic, Atomic, ByteOrder, Code, CodeError, Condition, Instruction, Operand, Register, Size, Width,
    assemble,
};
use proptest::prelude::*;

const TABLE: &[(&str, &str)] = &[
    ("0f21000000000000", "r1 += r2"),
    ("1f21000000000000", "r1 -= r2"),
    ("2f21000000000000", "r1 *= r2"),
    ("3f21000000000000", "r1 /= r2"),
    ("3f21010000000000", "r1 s/= r2"),
    ("4f21000000000000", "r1 |= r2"),
    ("5f21000000000000", "r1 &= r2"),
    ("6f21000000000000", "r1 <<= r2"),
    ("7f21000000000000", "r1 >>= r2"),
    ("9f21000000000000", "r1 %= r2"),
    ("9f21010000000000", "r1 s%= r2"),
    ("af21000000000000", "r1 ^= r2"),
    ("bf21000000000000", "r1 = r2"),
    ("cf21000000000000", "r1 s>>= r2"),
    ("0703000005000000", "r3 += 5"),
    ("17030000fbffffff", "r3 -= -5"),
    ("2703000005000000", "r3 *= 5"),
    ("3703000005000000", "r3 /= 5"),
    ("37030100fbffffff", "r3 s/= -5"),
    ("4703000005000000", "r3 |= 5"),
    ("57030000f0ffffff", "r3 &= -16"),
    ("670300003f000000", "r3 <<= 63"),
    ("7703000001000000", "r3 >>= 1"),
    ("9703000007000000", "r3 %= 7"),
    ("97030100f9ffffff", "r3 s%= -7"),
    ("a7030000ffffffff", "r3 ^= -1"),
    ("b7030000ffffff7f", "r3 = 2147483647"),
    ("c703000005000000", "r3 s>>= 5"),
    ("0c21000000000000", "w1 += w2"),
    ("1c21000000000000", "w1 -= w2"),
    ("2c21000000000000", "w1 *= w2"),
    ("3c21000000000000", "w1 /= w2"),
    ("3c21010000000000", "w1 s/= w2"),
    ("4c21000000000000", "w1 |= w2"),
    ("5c21000000000000", "w1 &= w2"),
    ("6c21000000000000", "w1 <<= w2"),
    ("7c21000000000000", "w1 >>= w2"),
    ("9c21000000000000", "w1 %= w2"),
    ("9c21010000000000", "w1 s%= w2"),
    ("ac21000000000000", "w1 ^= w2"),
    ("bc21000000000000", "w1 = w2"),
    ("cc21000000000000", "w1 s>>= w2"),
    ("0409000005000000", "w9 += 5"),
    ("3409010003000000", "w9 s/= 3"),
    ("9409010003000000", "w9 s%= 3"),
    ("b409000000000080", "w9 = -2147483648"),
    ("8704000000000000", "r4 = -r4"),
    ("8404000000000000", "w4 = -w4"),
    ("bf65080000000000", "r5 = (s8)r6"),
    ("bf65100000000000", "r5 = (s16)r6"),
    ("bf65200000000000", "r5 = (s32)r6"),
    ("bc65080000000000", "w5 = (s8)w6"),
    ("bc65100000000000", "w5 = (s16)w6"),
    ("d407000010000000", "r7 = le16 r7"),
    ("d407000020000000", "r7 = le32 r7"),
    ("d407000040000000", "r7 = le64 r7"),
    ("dc07000010000000", "r7 = be16 r7"),
    ("dc07000020000000", "r7 = be32 r7"),
    ("dc07000040000000", "r7 = be64 r7"),
    ("d707000010000000", "r7 = bswap16 r7"),
    ("d707000020000000", "r7 = bswap32 r7"),
    ("d707000040000000", "r7 = bswap64 r7"),
    ("18080000887766550000000044332211", "r8 = 0x1122334455667788 ll"),
    ("18080000ffffffff00000000ffffffff", "r8 = 0xffffffffffffffff ll"),
    ("7121010000000000", "r1 = *(u8 *)(r2 + 1)"),
    ("6921feff00000000", "r1 = *(u16 *)(r2 - 2)"),
    ("6121ff7f00000000", "r1 = *(u32 *)(r2 + 32767)"),
    ("79a1f8ff00000000", "r1 = *(u64 *)(r10 - 8)"),
    ("9121010000000000", "r1 = *(s8 *)(r2 + 1)"),
    ("8921feff00000000", "r1 = *(s16 *)(r2 - 2)"),
    ("8121008000000000", "r1 = *(s32 *)(r2 - 32768)"),
    ("7321010000000000", "*(u8 *)(r1 + 1) = r2"),
    ("6b21020000000000", "*(u16 *)(r1 + 2) = r2"),
    ("6321040000000000", "*(u32 *)(r1 + 4) = r2"),
    ("7b2af8ff00000000", "*(u64 *)(r10 - 8) = r2"),
    ("7201010007000000", "*(u8 *)(r1 + 1) = 7"),
    ("6a01020007000000", "*(u16 *)(r1 + 2) = 7"),
    ("62010400f9ffffff", "*(u32 *)(r1 + 4) = -7"),
    ("7a0af8ff07000000", "*(u64 *)(r10 - 8) = 7"),
    ("c321040000000000", "lock *(u32 *)(r1 + 4) += r2"),
    ("db21080000000000", "lock *(u64 *)(r1 + 8) += r2"),
    ("db21080040000000", "lock *(u64 *)(r1 + 8) |= r2"),
    ("db21080050000000", "lock *(u64 *)(r1 + 8) &= r2"),
    ("db210800a0000000", "lock *(u64 *)(r1 + 8) ^= r2"),
    ("db21080001000000", "r2 = atomic_fetch_add((u64 *)(r1 + 8), r2)"),
    ("db21080041000000", "r2 = atomic_fetch_or((u64 *)(r1 + 8), r2)"),
    ("db21080051000000", "r2 = atomic_fetch_and((u64 *)(r1 + 8), r2)"),
    ("db210800a1000000", "r2 = atomic_fetch_xor((u64 *)(r1 + 8), r2)"),
    ("c321040001000000", "r2 = atomic_fetch_add((u32 *)(r1 + 4), r2)"),
    ("db210800e1000000", "r2 = xchg_64(r1 + 8, r2)"),
    ("c3210400e1000000", "r2 = xchg_32(r1 + 4, r2)"),
    ("db210800f1000000", "r0 = cmpxchg_64(r1 + 8, r0, r2)"),
    ("c3210400f1000000", "r0 = cmpxchg_32(r1 + 4, r0, r2)"),
    ("0500050000000000", "goto +5"),
    ("0500fdff00000000", "goto -3"),
    ("0600000070110100", "gotol +70000"),
    ("1d21030000000000", "if r1 == r2 goto +3"),
    ("5d21030000000000", "if r1 != r2 goto +3"),
    ("4d21030000000000", "if r1 & r2 goto +3"),
    ("2d21030000000000", "if r1 > r2 goto +3"),
    ("3d21030000000000", "if r1 >= r2 goto +3"),
    ("ad21030000000000", "if r1 < r2 goto +3"),
    ("bd21030000000000", "if r1 <= r2 goto +3"),
    ("6d21030000000000", "if r1 s> r2 goto +3"),
    ("7d21030000000000", "if r1 s>= r2 goto +3"),
    ("cd21030000000000", "if r1 s< r2 goto +3"),
    ("dd21030000000000", "if r1 s<= r2 goto +3"),
    ("1501fcffffffffff", "if r1 == -1 goto -4"),
    ("4501030008000000", "if r1 & 8 goto +3"),
    ("c5010300ffffffff", "if r1 s< -1 goto +3"),
    ("1e21030000000000", "if w1 == w2 goto +3"),
    ("4e21030000000000", "if w1 & w2 goto +3"),
    ("7e21030000000000", "if w1 s>= w2 goto +3"),
    ("2601030003000000", "if w1 > 3 goto +3"),
    ("d6010300fdffffff", "if w1 s<= -3 goto +3"),
    ("8500000001000000", "call 1"),
    ("8500000003000100", "call 65539"),
    ("9500000000000000", "exit"),
    ("18510000030000000000000000000000", "r1 = map[3] ll"),
    ("18610000020000000000000010000000", "r1 = map[2][0]+16 ll"),
    ("8510000005000000", "call pc+5"),
    ("85100000fbffffff", "call pc-5"),
    ("8520000007000000", "call kernel 7"),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn bytes_and_text_mean_the_same() {
    for (hex, text) in TABLE {
        let instruction = Instruction::decode(&bytes(hex), 0).unwrap();
        assert_eq!(instruction.to_string(), *text);
        let mut encoded = Vec::new();
        instruction.encode(&mut encoded);
        assert_eq!(encoded, bytes(hex), "{text}");
        assert_eq!(encoded.len(), instruction.slots() * 8);
    }
}

#[test]
fn text_is_read_as_it_is_printed() {
    for (_, text) in TABLE.iter().filter(|(_, text)| !text.contains("goto") && !text.contains("pc")) {
        let code = assemble(text).unwrap();
        assert_eq!(code.instructions()[0].to_string(), *text);
    }
}

#[test]
fn every_opcode_is_defined_or_refused() {
    // Number of opcodes of each class in RFC 9669 (appendix A), without packet loads. Arithmetic: 12
    // operations with both operands, negation, and one or two byte orders; jumps: 11 conditions with both
    // operands, and 4 or 1 more (JA, CALL, EXIT; JA); loads of 4 sizes, 3 sign-extended; stores of 4 sizes, 2
    // atomic.
    let wanted = [1, 7, 4, 6, 27, 25, 23, 26];
    let mut found = [0; 8];
    for opcode in 0..=255u8 {
        // Fields required by some opcodes: a byte order's width.
        let works = [0, 16].iter().any(|&immediate| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[4]) = (opcode, immediate);
            Instruction::decode(&bytes, 0).is_ok()
        });
        found[usize::from(opcode & 7)] += usize::from(works);
    }
    assert_eq!(found, wanted);
}

#[test]
fn malformed_instructions_are_refused_by_number() {
    for (hex, wanted) in [
        (
            "0f21010000000000",
            "instruction 1: opcode 0x0f does not use its field offset, which must be 0 and is 1",
        ),
        ("0f21000001000000", "does not use its field imm, which must be 0 and is 1"),
        ("0721000001000000", "does not use its field src_reg, which must be 0 and is 2"),
        ("3f21020000000000", "opcode 0x3f has no operation for offset 2"),
        ("b701080000000000", "opcode 0xb7 has no operation for offset 8"),
        ("bc21200000000000", "opcode 0xbc has no operation for offset 32"),
        ("0f2b000000000000", "there is no register r11; r10 is the last"),
        ("0ff1000000000000", "there is no register r15; r10 is the last"),
        ("d401000008000000", "opcode 0xd4 has no operation for imm 8"),
        ("df01000010000000", "opcode 0xdf is none of RFC 9669's"),
        ("8f01000000000000", "opcode 0x8f is none of RFC 9669's"),
        ("c721000000000000", "does not use its field src_reg, which must be 0 and is 2"),
        ("db21000002000000", "opcode 0xdb has no operation for imm 2"),
        ("d321000000000000", "opcode 0xd3 is none of RFC 9669's"),
        ("9921000000000000", "opcode 0x99 is none of RFC 9669's"),
        ("8530000000000000", "opcode 0x85 has no operation for src_reg 3"),
        ("8d00000000000000", "opcode 0x8d is none of RFC 9669's"),
        ("9500000001000000", "opcode 0x95 does not use its field imm, which must be 0 and is 1"),
        ("e500000000000000", "opcode 0xe5 is none of RFC 9669's"),
        (
            "2000000000000000",
            "opcode 0x20 is a packet load of classic BPF; read the packet through data and data_end",
        ),
        ("1800000000000000", "the program ends within it; it needs 16 bytes"),
        ("18000000000000000100000000000000", "does not use its field next opcode, which must be 0 and is 1"),
        (
            "18100000000000000000000000000000",
            "it names a map by a file descriptor of the kernel; load the object file instead",
        ),
        ("18300000000000000000000000000000", "opcode 0x18 has no operation for src_reg 3"),
        ("18500000000000000000000001000000", "does not use its field next_imm, which must be 0 and is 1"),
    ] {
        let mut program = bytes("b700000000000000");
        program.extend(bytes(hex));
        let message = Code::decode(&program).unwrap_err().to_string();
        assert!(message.starts_with("instruction 1: ") && message.contains(wanted), "{hex}: {message}");
    }
}

#[test]
fn code_knows_where_jumps_lead() {
    let code = assemble(
        "r1 = 5 ll
         if r1 == 0 goto end
         call twice
         goto end
         r0 = 1
    end: exit
  twice: r0 = r1
         r0 += r0
         exit",
    )
    .unwrap();
    let targets: Vec<_> = (0..code.len()).map(|i| code.target(i)).collect();
    assert_eq!(targets, [None, Some(5), Some(6), Some(5), None, None, None, None, None]);
    let slots: Vec<_> = (0..code.len()).map(|i| code.slot(i)).collect();
    assert_eq!(slots, [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(code.slot_count(), 10);
    assert_eq!(code.entries(), [0, 6]);
    assert_eq!(Code::decode(&code.encode()), Ok(code));
}

#[test]
fn programs_that_cannot_be_are_refused() {
    let message = |code: &str| Code::decode(&bytes(code)).unwrap_err().to_string();
    assert_eq!(message(""), "the program has no instructions");
    assert_eq!(message("95"), "the program is 1 B long, which is no multiple of 8");
    assert_eq!(
        message("0500010000000000950000000000000018"),
        "the program is 17 B long, which is no multiple of 8"
    );
    assert_eq!(
        message("05000100000000009500000000000000"),
        "instruction 0: `goto +1` leads to slot 2, where no instruction begins"
    );
    assert_eq!(
        message("050001000000000018000000000000000000000000000000"),
        "instruction 0: `goto +1` leads to slot 2, where no instruction begins"
    );
    assert_eq!(
        message("0500feff00000000"),
        "instruction 0: `goto -2` leads to slot -1, where no instruction begins"
    );
    assert_eq!(
        message("b70a000000000000"),
        "instruction 0: `r10 = 0` writes r10; use another register and leave the frame pointer alone"
    );
    let long = [0x95, 0, 0, 0, 0, 0, 0, 0].repeat(Code::MAX_SLOTS + 1);
    assert_eq!(Code::decode(&long), Err(CodeError::TooLong(Code::MAX_SLOTS + 1)));
}

#[test]
fn text_that_is_no_program_is_refused() {
    for (text, wanted) in [
        ("r0 = 1\nr11 = 2", "line 2: \"r11\" can't stand here; a register is wanted"),
        ("r0 = w1", "line 1: \"w1\" can't stand here; a register as wide is wanted"),
        ("r0 =", "line 1: the end can't stand here; a register or a number is wanted"),
        ("exit now", "line 1: \"now\" can't stand here; the end of the line is wanted"),
        ("goto nowhere", "line 1: no line within reach is called nowhere"),
        (
            "*(u31 *)(r1 + 0) = r2",
            "line 1: \"u31\" can't stand here; u8, u16, u32, u64, s8, s16 or s32 is wanted",
        ),
        ("r0 = 99999999999", "line 1: \"99999999999\" can't stand here; a register or a number is wanted"),
        ("", "the program has no instructions"),
    ] {
        assert_eq!(assemble(text).unwrap_err().to_string(), wanted, "{text}");
    }
}

fn register() -> impl Strategy<Value = Register> {
    (0..=9u8).prop_map(|n| Register::new(n).unwrap())
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::W32), Just(Width::W64)]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![Just(Size::Byte), Just(Size::Half), Just(Size::Word), Just(Size::Double)]
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![register().prop_map(Operand::Register), any::<i32>().prop_map(Operand::Immediate)]
}

fn operations() -> impl Strategy<Value = Instruction> {
    let arithmetic = prop::sample::select(Arithmetic::ALL);
    let order = prop::sample::select(ByteOrder::ALL);
    let swapped = prop::sample::select(vec![Size::Half, Size::Word, Size::Double]);
    let narrow = prop::sample::select(vec![Size::Byte, Size::Half, Size::Word]);
    prop_oneof![
        (width(), arithmetic, register(), operand()).prop_map(|(width, operation, dst, source)| {
            Instruction::Arithmetic { width, operation, dst, source }
        }),
        (width(), narrow, register(), register()).prop_map(|(width, from, dst, src)| {
            let width = if from == Size::Word { Width::W64 } else { width };
            Instruction::MoveExtended { width, from, dst, src }
        }),
        (width(), register()).prop_map(|(width, dst)| Instruction::Negate { width, dst }),
        (order, swapped, register()).prop_map(|(order, size, dst)| Instruction::Swap { order, size, dst }),
        (register(), any::<u64>()).prop_map(|(dst, value)| Instruction::LoadWide { dst, value }),
        (register(), any::<u32>()).prop_map(|(dst, map)| Instruction::LoadMap { dst, map }),
        (register(), any::<u32>(), any::<u32>()).prop_map(|(dst, map, offset)| Instruction::LoadMapValue {
            dst,
            map,
            offset
        }),
    ]
}

fn accesses() -> impl Strategy<Value = Instruction> {
    use Atomic::*;
    let atomic = prop::sample::select(vec![
        Add,
        Or,
        And,
        Xor,
        FetchAdd,
        FetchOr,
        FetchAnd,
        FetchXor,
        Exchange,
        CompareExchange,
    ]);
    prop_oneof![
        (size(), register(), register(), any::<i16>())
            .prop_map(|(size, dst, base, offset)| Instruction::Load { size, dst, base, offset }),
        (0..3usize, register(), register(), any::<i16>()).prop_map(|(size, dst, base, offset)| {
            let size = [Size::Byte, Size::Half, Size::Word][size];
            Instruction::LoadExtended { size, dst, base, offset }
        }),
        (size(), register(), any::<i16>(), operand())
            .prop_map(|(size, base, offset, source)| Instruction::Store { size, base, offset, source }),
        (width(), atomic, register(), any::<i16>(), register()).prop_map(
            |(width, operation, base, offset, src)| {
                Instruction::Atomic { width, operation, base, offset, src }
            }
        ),
    ]
}

fn jumps() -> impl Strategy<Value = Instruction> {
    use Condition::*;
    let condition = prop::sample::select(vec![
        Equal,
        NotEqual,
        BitsSet,
        Greater,
        GreaterEqual,
        Less,
        LessEqual,
        SignedGreater,
        SignedGreaterEqual,
        SignedLess,
        SignedLessEqual,
    ]);
    prop_oneof![
        any::<i16>().prop_map(|offset| Instruction::Jump { offset }),
        any::<i32>().prop_map(|offset| Instruction::JumpLong { offset }),
        (width(), condition, register(), operand(), any::<i16>()).prop_map(
            |(width, condition, dst, source, offset)| Instruction::Branch {
                width,
                condition,
                dst,
                source,
                offset
            }
        ),
        any::<u32>().prop_map(|helper| Instruction::Call { helper }),
        any::<i32>().prop_map(|id| Instruction::CallKernel { id }),
        any::<i32>().prop_map(|offset| Instruction::CallLocal { offset }),
        Just(Instruction::Exit),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(instruction in prop_oneof![operations(), accesses(), jumps()]) {
        let mut bytes = Vec::new();
        instruction.encode(&mut bytes);
        prop_assert_eq!(Instruction::decode(&bytes, 0), Ok(instruction));
    }

    #[test]
    fn what_is_printed_is_read(instruction in prop_oneof![operations(), accesses()]) {
        let code = assemble(&instruction.to_string()).unwrap();
        prop_assert_eq!(code.instructions(), &[instruction][..]);
    }

    #[test]
    fn what_is_decoded_is_encoded_as_it_was(bytes in prop::collection::vec(any::<u8>(), 16)) {
        if let Ok(instruction) = Instruction::decode(&bytes, 0) {
            let mut encoded = Vec::new();
            instruction.encode(&mut encoded);
            prop_assert_eq!(&encoded[..], &bytes[..encoded.len()]);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[rw0-9a-z+*=<>()\\[\\],:; \n-]{0,60}") {
        assemble(&text).ok();
    }
}
