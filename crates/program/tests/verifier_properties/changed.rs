//! Mutations of the pool's programs by a few instructions.

use super::*;

/// A mutation of one instruction, by arbitrary numbers.
type Change = (Index, u8, u8, i32);

fn register(number: u8) -> Register {
    Register::new(number % 11).unwrap()
}

/// The mutated instruction.
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

/// A mutated load or store.
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
