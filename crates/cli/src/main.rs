//! The `longwire` command.
#![forbid(unsafe_code)]

use longwire_packet::CountingAllocator;
use std::process::ExitCode;

/// Counts allocations, so that `longwire bench alloc` can show that the packet path makes none.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    longwire_cli::main()
}
