//! A program that does nothing but take so many instructions.

use crate::BenchError;
use longwire_program::{Program, assemble};

/// A program of so many instructions, all of which every packet takes; 2 are none that do anything.
pub(crate) fn straight(instructions: usize) -> Result<Program, BenchError> {
    let mut text = String::new();
    if instructions >= 6 {
        text += "r7 = *(u32 *)(r1 + 12)\n r8 = *(u32 *)(r1 + 16)\n";
        for at in 0..instructions - 6 {
            text += if at % 2 == 0 { "r7 += r8\n" } else { "r8 ^= r7\n" };
        }
        // What was computed has to be there at the end.
        text += "r7 ^= r8\n r0 = 2\n if r7 != 0x12345677 goto out\n out: exit";
    } else {
        text += "r0 = 2\n exit";
    }
    Ok(Program::new("straight", assemble(&text)?, []))
}
