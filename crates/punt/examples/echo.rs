//! A control process that sends every packet back out of its input port.
//!
//! `cargo run --release -p longwire-punt --example echo -- SOCKET NAME [PACKETS_PER_SECOND]`

use longwire_punt::client::{ClientError, Control, Hello};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(name)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: echo SOCKET NAME [PACKETS_PER_SECOND]");
        return ExitCode::from(2);
    };
    let packets = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let hello = Hello { name, packets, cycles: 0, share: 1 };
    match Control::connect(Path::new(&path), &hello).and_then(|mut control| control.echo()) {
        Err(ClientError::Ended(why)) => {
            println!("{}", ClientError::Ended(why));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Ok(never) => match never {},
    }
}
