//! Programs that compute the offsets of their reads.

use super::*;

/// A computation with `r0` to `r5`, `r7` and `r8`.
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
    let narrow = select(vec![Size::Byte, Size::Half]);
    let extended = (width(), narrow, register(), register())
        .prop_map(|(width, from, dst, src)| Instruction::MoveExtended { width, from, dst, src });
    let order = select(vec![ByteOrder::Big, ByteOrder::Little, ByteOrder::Swapped]);
    let swap = (order, select(vec![Size::Half, Size::Word, Size::Double]), register())
        .prop_map(|(order, size, dst)| Instruction::Swap { order, size, dst });
    let negate = (width(), register()).prop_map(|(width, dst)| Instruction::Negate { width, dst });
    prop_oneof![12 => plain, 8 => branch, 1 => extended, 1 => swap, 1 => negate]
}

/// 64 readable bytes of the stack, and eight registers with words of the packet, some truncated.
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
