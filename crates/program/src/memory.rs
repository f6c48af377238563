//! Addresses: the pointers of a program, and where they may point.
//!
//! An address is a region's number in the upper 32 bits and an offset in the region in the lower 32.
//! Interpreted and compiled programs have the same values in their registers, so that they can be compared
//! register by register, and a program never sees an address of the process. To a program they behave as
//! pointers do: sums and differences, comparisons within a region, and 0 for none.
//!
//! | region | 0 is | accesses | alignment | atomics |
//! |---|---|---|---|---|
//! | context | the first field of `xdp_md` | loads of one whole field, unsigned | 4 | no |
//! | packet | the first byte of its buffer, headroom included | between `data` and `data_end` | any | no |
//! | stack | the lower end of the innermost possible frame | within one frame in use; loads of initialized bytes | natural | yes |
//! | state | the first byte of the flow's state | all of it | natural | yes |
//! | map n | the first byte of map n's first value | within one value except its lock; stores unless it is read-only; of a ring, within a record that the program has reserved | natural | yes |
//! | handle n | — | none: the result of a map load, for helpers | | |
//! | code | the program's first instruction | none: a function's address, for helpers | | |
//!
//! [`Machine`](crate::Machine) checks every access against this table. A compiler that knows an access's
//! region from the verifier adds the lower half of the address to the region's real base and compares with
//! its length: one comparison per access, whatever the register holds.

/// A part of a program's memory, a map's handle, or the program's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Region {
    /// The context, `struct xdp_md`.
    Context,
    /// The packet with its headroom and tailroom.
    Packet,
    /// The stack frames of the program and the functions it calls.
    Stack,
    /// The flow's state.
    State,
    /// The values of the object's map with this number.
    Map(u16),
    /// The object's map with this number itself.
    Handle(u16),
    /// The program's instructions, by index in [`Code`](crate::Code).
    Code,
}

/// Most maps of an object.
pub const MAX_MAPS: usize = 256;
/// Bytes of a function's stack frame.
pub const FRAME_SIZE: usize = 512;
/// Most frames at once: the program's and those of functions it calls.
pub const MAX_FRAMES: usize = 8;
/// Bytes of all frames.
pub const STACK_SIZE: usize = FRAME_SIZE * MAX_FRAMES;

const FIRST_MAP: u32 = 0x100;
const FIRST_HANDLE: u32 = FIRST_MAP + MAX_MAPS as u32;

impl Region {
    /// Its number, the upper half of its addresses. 0 is unused, so that no address in a region is 0.
    pub const fn number(self) -> u32 {
        match self {
            Self::Context => 1,
            Self::Packet => 2,
            Self::Stack => 3,
            Self::State => 4,
            Self::Code => 5,
            Self::Map(map) => FIRST_MAP + map as u32,
            Self::Handle(map) => FIRST_HANDLE + map as u32,
        }
    }

    /// The address of the byte at `offset`.
    pub const fn address(self, offset: u32) -> u64 {
        (self.number() as u64) << 32 | offset as u64
    }

    /// The region and offset of an address.
    pub const fn of(address: u64) -> Option<(Self, u32)> {
        let number = (address >> 32) as u32;
        let region = match number {
            1 => Self::Context,
            2 => Self::Packet,
            3 => Self::Stack,
            4 => Self::State,
            5 => Self::Code,
            FIRST_MAP.. if number < FIRST_HANDLE => Self::Map((number - FIRST_MAP) as u16),
            FIRST_HANDLE.. if number < FIRST_HANDLE + MAX_MAPS as u32 => {
                Self::Handle((number - FIRST_HANDLE) as u16)
            }
            _ => return None,
        };
        Some((region, address as u32))
    }
}

/// `r10` of the frame with this number: 0 is the program's own. The address after its last byte.
pub const fn frame_pointer(frame: usize) -> u64 {
    Region::Stack.address((STACK_SIZE - frame * FRAME_SIZE) as u32)
}

/// Reason why a program was stopped. A verified program never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The address is in no region, or the access is outside the region's limits.
    #[error("an access of {size} B at {address:#x} is to nothing of the program's")]
    OutOfBounds {
        /// The address.
        address: u64,
        /// The size.
        size: u32,
    },
    /// The address is not aligned to the size, where required.
    #[error("an access of {size} B at {address:#x} is not aligned")]
    Misaligned {
        /// The address.
        address: u64,
        /// The size.
        size: u32,
    },
    /// The memory is read-only, or does not support atomic operations.
    #[error("a write of {size} B at {address:#x} is not possible in this way")]
    ReadOnly {
        /// The address.
        address: u64,
        /// The size.
        size: u32,
    },
    /// These stack bytes are uninitialized.
    #[error("a read of {size} B at {address:#x} finds nothing written")]
    Unwritten {
        /// The address.
        address: u64,
        /// The size.
        size: u32,
    },
    /// The register is uninitialized, or undefined after a call.
    #[error("r{0} was never written")]
    Register(u8),
    /// There is no such helper.
    #[error("there is no helper {0}")]
    Helper(u32),
    /// Invalid argument of a helper.
    #[error("argument {0} is not what the helper takes")]
    Argument(u8),
    /// The map can't be used with this helper.
    #[error("the map is of a kind that the helper can't use")]
    Map,
    /// The lock of a map's value was not released in time, or was not taken.
    #[error("the lock was not given back in time, or not taken before")]
    Lock,
    /// It ended with a reserved record that it neither submitted nor discarded.
    #[error("a record of a ring was neither submitted nor discarded")]
    Unreleased,
    /// It reserved too many records at once.
    #[error("more than {limit} records were reserved at once", limit = crate::reserved::MAX_RECORDS)]
    Records,
    /// Functions of the kernel can't be called.
    #[error("functions of the kernel can't be called")]
    Kernel,
    /// Nested calls exceed the number of frames.
    #[error("calls are nested too deeply")]
    Depth,
    /// Tail call within a called function, or to a missing program.
    #[error("no other program can go on from there")]
    TailCall,
    /// It ran into the end of the program.
    #[error("the program ran off its end")]
    End,
    /// It exceeded its budget of instructions.
    #[error("the program took more instructions than it was given")]
    Budget,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_region() {
        let regions = [
            (Region::Context, 0x1_0000_0000),
            (Region::Packet, 0x2_0000_0000),
            (Region::Stack, 0x3_0000_0000),
            (Region::State, 0x4_0000_0000),
            (Region::Code, 0x5_0000_0000),
            (Region::Map(0), 0x100_0000_0000),
            (Region::Map(255), 0x1ff_0000_0000),
            (Region::Handle(0), 0x200_0000_0000),
            (Region::Handle(255), 0x2ff_0000_0000),
        ];
        for (region, base) in regions {
            assert_eq!(region.address(0), base);
            assert_eq!(Region::of(base + 0xffff_fff8), Some((region, 0xffff_fff8)));
        }
        for none in [0, 0xffff_ffff, 0x6_0000_0000, 0x300_0000_0000, u64::MAX] {
            assert_eq!(Region::of(none), None);
        }
    }

    #[test]
    fn frames_grow_downward() {
        assert_eq!(frame_pointer(0), 0x3_0000_1000);
        assert_eq!(frame_pointer(7), 0x3_0000_0200);
    }
}
