//! Options that select a program.

use anyhow::Context;
use longwire_control::NewForwarder;
use longwire_program::ShippedForwarder;
use longwire_scenario::WrittenForwarder;
use std::path::Path;

/// The program in an object, with constants and maps.
#[derive(Debug, clap::Args)]
pub(super) struct ProgramArgs {
    /// The function in the object, if it has several programs.
    #[arg(long)]
    function: Option<String>,

    /// A constant of the object (const volatile) with its new value, a whole number; for an array, all of
    /// them: 1,2,3. May be given several times.
    #[arg(long = "constant", value_name = "NAME=VALUE",
        value_parser = |text: &str| assignment(text, "write NAME=VALUE, such as limit=100"))]
    constants: Vec<(String, String)>,

    /// A map of the object with its number of entries; for a program array, its programs: first,second; for a
    /// devmap or cpumap, the targets of its entries: 1:stamp,2:. May be given several times. Default: as in
    /// the source.
    #[arg(long = "map", value_name = "NAME=ENTRIES",
        value_parser = |text: &str| assignment(text, "write NAME=ENTRIES, such as counts=64"))]
    maps: Vec<(String, String)>,

    /// A program of the object, of SEC("xdp/devmap") or SEC("xdp/cpumap"), that entries of devmaps and
    /// cpumaps may name by its number from 1, in this order. May be given several times.
    #[arg(long = "exit", value_name = "FUNCTION")]
    exits: Vec<String>,
}

impl ProgramArgs {
    /// The program `program`, as scenarios write it.
    pub fn of(self, program: String) -> WrittenForwarder {
        WrittenForwarder {
            program,
            function: self.function,
            constants: self.constants.into_iter().collect(),
            maps: self.maps.into_iter().collect(),
            exits: self.exits,
            ..WrittenForwarder::default()
        }
    }
}

/// Parses a name and what is assigned to it; `fix` says how to write both.
fn assignment(text: &str, fix: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or(fix)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The request for a program: its description, and its object's bytes unless it is built in or absent.
pub(super) fn sent(written: &WrittenForwarder, lease: Option<String>) -> anyhow::Result<NewForwarder> {
    let object = match ShippedForwarder::named(&written.program) {
        Some(_) => None,
        None if written.lets_all_pass() => None,
        None => Some(longwire_scenario::digits(&written.object(Path::new(""))?)),
    };
    let forwarder = serde_json::to_value(written).context("a forwarder can be written as JSON")?;
    Ok(NewForwarder { forwarder, object, lease })
}
