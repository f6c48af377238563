//! The `longwire` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    longwire_cli::main()
}
