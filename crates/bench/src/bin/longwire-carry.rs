//! Carries packets of one kind and exits: `cargo xtask instructions` runs it under an instruction counter.
#![forbid(unsafe_code)]

use longwire_bench::{BenchError, carry};
use std::process::ExitCode;

/// Exit status if this machine lacks what the row needs.
const NOT_HERE: u8 = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--names"] => carry::names().map(|names| names.iter().for_each(|name| println!("{name}"))),
        [name, packets] => match packets.parse() {
            Ok(packets) => carry::carry(name, packets).map(|never| match never {}),
            Err(_) => Err(BenchError::NotHere(format!("{packets} is no number of packets"))),
        },
        _ => Err(BenchError::NotHere("longwire-carry --names, or longwire-carry NAME PACKETS".into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            match error {
                BenchError::NotHere(_) => ExitCode::from(NOT_HERE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
