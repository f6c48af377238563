//! Carries packets of one kind and ends: `cargo xtask instructions` runs this under a counter of instructions.
#![forbid(unsafe_code)]

use longwire_bench::{BenchError, carry};
use std::process::ExitCode;

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
            ExitCode::FAILURE
        }
    }
}
