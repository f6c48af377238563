//! Hostile input: damaged objects, and unverified programs. Nothing panics, hangs, or accesses memory outside
//! the program's.

use crate::exercise::program;
use longwire_program::{Code, Instruction, Size, Words, assemble};
use proptest::prelude::*;

const OBJECTS: &[&[u8]] = &[
    include_bytes!("objects/counter.o"),
    include_bytes!("objects/events.o"),
    include_bytes!("objects/globals.o"),
    include_bytes!("objects/legacy.o"),
    include_bytes!("objects/longwire.o"),
    include_bytes!("objects/modern.o"),
    include_bytes!("objects/refused.o"),
    include_bytes!("objects/relocated.o"),
];

#[test]
fn whole_objects_load() {
    let loaded: Vec<usize> = OBJECTS.iter().map(|bytes| program::object(bytes)).collect();
    assert_eq!(loaded, [1, 3, 3, 0, 1, 1, 2, 1]);
}

#[test]
fn objects_that_are_cut_off_are_refused_or_loaded() {
    for bytes in OBJECTS {
        for end in (0..bytes.len()).step_by(7) {
            program::object(&bytes[..end]);
        }
    }
}

/// Instructions with short forward jumps and arbitrary accesses, so that many programs run for a while.
fn instruction() -> impl Strategy<Value = Instruction> {
    any::<([u8; 8], u8, u64)>().prop_map(|(mut bytes, near, wide)| {
        bytes[1] = ((bytes[1] % 11) << 4) | (bytes[1] / 16 % 10);
        bytes[3] = if bytes[3] & 1 == 0 { 0 } else { 0xff };
        if matches!(bytes[0] & 7, 5 | 6) {
            (bytes[2], bytes[3]) = (near % 4, 0);
        }
        let mut slots = bytes.to_vec();
        slots.extend([0, 0, 0, 0]);
        slots.extend(&wide.to_le_bytes()[..4]);
        let plain = |bytes: &[u8]| Instruction::decode(bytes, 0).ok();
        let without = |places: &[usize]| {
            let mut slots = slots.clone();
            places.iter().for_each(|&place| slots[place] = 0);
            slots
        };
        // Whichever fields must be zero.
        let attempts = [&[][..], &[4, 5, 6, 7], &[2, 3], &[2, 3, 4, 5, 6, 7]];
        let found = attempts.iter().find_map(|places| plain(&without(places)));
        let call = Instruction::Call { helper: u32::from(near) };
        match found {
            Some(Instruction::CallKernel { .. }) | Some(Instruction::CallLocal { .. }) | None => call,
            Some(Instruction::JumpLong { .. }) => Instruction::Jump { offset: i16::from(near % 3) },
            Some(found) => found,
        }
    })
}

/// A beginning that loads an address of every region into a register.
const POINTERS: &str = "r6 = r1
    r7 = *(u32 *)(r1 + 0)
    r8 = map[0][0]+24 ll
    r1 = 64
    call lw_flow_state
    r9 = r0
    *(u64 *)(r10 - 8) = 1
    r2 = r10
    r2 += -8
    r1 = map[1] ll
    r3 = r2
    r4 = 0
    r5 = 5";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_objects_are_refused_or_loaded(
        which in 0..OBJECTS.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = OBJECTS[which].to_vec();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        program::object(&bytes);
    }

    #[test]
    fn any_bytes_are_an_object_or_not(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        program::object(&bytes);
        Code::decode(&bytes).ok();
    }

    #[test]
    fn unverified_programs_stay_where_they_belong(body in prop::collection::vec(instruction(), 1..40)) {
        let mut instructions = assemble(POINTERS).unwrap().instructions().to_vec();
        instructions.extend(body);
        // Targets for jumps near the end.
        instructions.extend([Instruction::Exit; 4]);
        let Ok(code) = Code::new(instructions) else { return Ok(()) };
        program::bytecode(&code.encode());
    }

    #[test]
    fn words_are_bytes(writes in prop::collection::vec((0..60usize,
        prop::collection::vec(any::<u8>(), 0..20)), 0..10)) {
        let (words, mut bytes) = (Words::new(80), [0; 80]);
        for (place, data) in writes {
            words.write(place, &data);
            bytes[place..place + data.len()].copy_from_slice(&data);
        }
        let mut read = [0; 80];
        words.read(0, &mut read);
        prop_assert_eq!(read, bytes);
        for (place, &byte) in bytes.iter().enumerate() {
            prop_assert_eq!(words.load(place, Size::Byte), u64::from(byte));
        }
    }
}
