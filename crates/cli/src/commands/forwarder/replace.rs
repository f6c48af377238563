//! `longwire forwarder replace`

use super::answers::program_row;
use super::program_args::{ProgramArgs, sent};
use super::{Target, text};
use crate::{Outcome, outcome};
use longwire_control::ProgramRequest;
use longwire_scenario::WrittenForwarder;
use serde_json::Value;

/// Replace an installed program while packets flow
///
/// The number, name, key, level, route and links of the old program are kept. Its maps and their contents are
/// kept if they are declared alike (name, kind, sizes and initial contents), and its state if the size is the
/// same. Everything else is reported as new. The program is verified and compiled first; the router's packets
/// only wait for the change of a pointer.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder replace r1 1 syn-monitor
  longwire forwarder replace r1 1 mine.o --function count --constant limit=200 --json")]
pub struct Args {
    #[command(flatten)]
    target: Target,

    /// The number of the old program.
    fid: u32,

    /// A built-in program, or an object file.
    program: String,

    #[command(flatten)]
    chosen: ProgramArgs,

    /// Its name. Default: that of the old one.
    #[arg(long)]
    name: Option<String>,

    /// Size of its state. Default: as large as the program uses.
    #[arg(long, value_name = "SIZE")]
    state: Option<String>,
}

impl Args {
    /// Replaces the program, and reports what was kept.
    ///
    /// # Errors
    /// If the program is refused, no instance is selected, or it refuses or does not answer.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let written = WrittenForwarder { name: self.name, state: self.state, ..self.chosen.of(self.program) };
        let answer = self.target.ask(&ProgramRequest::Replace(self.fid, sent(&written, None)?))?;
        if self.target.of.json.on {
            return self.target.print_one("forwarder replace", answer, program_row);
        }
        for what in ["kept", "new", "gone"] {
            let maps = answer["maps"][what].as_array().into_iter().flatten();
            let names: Vec<&str> = maps.filter_map(Value::as_str).collect();
            if !names.is_empty() {
                outcome::print(&format!("maps {what}: {}", names.join(", ")))?;
            }
        }
        outcome::print(&format!("state: {}", text(&answer["state"])))
    }
}
