//! `longwire forwarder replace`

use super::{ask, constant, text};
use crate::{Outcome, outcome};
use anyhow::Context;
use longwire_control::ForwarderAsk;
use longwire_program::Shipped;
use longwire_scenario::WrittenForwarder;
use serde_json::Value;
use std::path::Path;

/// Put another program in the place of an installed one while packets flow
///
/// It keeps the number, the key, the level, the way and the links of the one that goes; its maps, with all that is in them, where they are declared
/// alike (name, kind, sizes and what they hold at first); and its state if that is as large. What is not kept is said to be new. It is verified and
/// compiled before; the router's packets wait for the change of a pointer.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder replace r1 1 syn-monitor
  longwire forwarder replace r1 1 mine.o --function count --constant limit=200 --json")]
pub struct Args {
    /// The router.
    router: String,

    /// The number of the program that goes.
    fid: u32,

    /// A program that comes with Longwire, or an object file.
    program: String,

    /// The function in the object, if it has several programs.
    #[arg(long)]
    function: Option<String>,

    /// A constant of the object (const volatile) and the whole number that takes its place; of an array, all of them: 1,2,3. May be given several times.
    #[arg(long = "constant", value_name = "NAME=VALUE", value_parser = constant)]
    constants: Vec<(String, String)>,

    /// A map of the object and how many entries it has; of a program array, its programs: first,second. May be given several times. Default: what the source says.
    #[arg(long = "map", value_name = "NAME=ENTRIES", value_parser = super::entries)]
    maps: Vec<(String, String)>,

    /// What it is called. Default: as the one that goes.
    #[arg(long)]
    name: Option<String>,

    /// How large its state is. Default: as large as the program uses.
    #[arg(long, value_name = "SIZE")]
    state: Option<String>,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Does it, and says what was kept.
    ///
    /// # Errors
    /// If the program is refused, no instance is meant, or it refuses or does not answer.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let written = WrittenForwarder {
            program: self.program,
            function: self.function,
            constants: self.constants.into_iter().collect(),
            maps: self.maps.into_iter().collect(),
            name: self.name,
            state: self.state,
            ..WrittenForwarder::default()
        };
        let object = match Shipped::named(&written.program) {
            Some(_) => None,
            None => Some(crate::live_forwarders::digits(&written.object(Path::new(""))?)),
        };
        let forwarder = serde_json::to_value(&written).context("a forwarder can be written as JSON")?;
        let asked = ForwarderAsk::Replace { fid: self.fid, forwarder, object };
        let answer = ask(self.instance.as_deref(), &self.router, &asked)?;
        if self.json {
            outcome::print(&serde_json::to_string_pretty(&answer)?)?;
            return Ok(Outcome::Well);
        }
        for what in ["kept", "new", "gone"] {
            let maps = answer["maps"][what].as_array().into_iter().flatten();
            let names: Vec<&str> = maps.filter_map(Value::as_str).collect();
            if !names.is_empty() {
                outcome::print(&format!("maps {what}: {}", names.join(", ")))?;
            }
        }
        outcome::print(&format!("state: {}", text(&answer["state"])))?;
        Ok(Outcome::Well)
    }
}
