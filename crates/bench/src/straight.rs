//! A program that only executes a number of instructions.

use crate::BenchError;
use longwire_program::{Program, assemble};

/// A program of this many instructions, all of which every packet executes; 2 is an empty program.
pub(crate) fn straight(instructions: usize) -> Result<Program, BenchError> {
    let mut text = String::new();
    if instructions >= 6 {
        text += "r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n";
        for at in 0..instructions - 6 {
            text += if at % 2 == 0 { "r7 += r8\n" } else { "r8 ^= r7\n" };
        }
        // The result must be used at the end.
        text += "r7 ^= r8\n r0 = 2\n if r7 != 0x12345677 goto out\n out: exit";
    } else {
        text += "r0 = 2\n exit";
    }
    Ok(Program::new("straight", assemble(&text)?, []))
}
