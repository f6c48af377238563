//! Arguments of commands that make a key file.

use crate::{Json, Outcome, outcome};
use anyhow::anyhow;
use longwire_nesp::Key;
use longwire_report::Report;
use longwire_rundir::{make_key_file, random};
use std::io::ErrorKind;
use std::path::PathBuf;

/// The file to make.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// The file to make; an existing one is not changed.
    file: PathBuf,

    #[command(flatten)]
    json: Json,
}

impl KeyArgs {
    /// Makes a file with a random key of 32 bytes, for `command`.
    ///
    /// # Errors
    /// If the file exists, or can't be written.
    pub fn make(&self, command: &str) -> anyhow::Result<Outcome> {
        let file = &self.file;
        let made = make_key_file(file, &Key::text_of(&random::<32>()?));
        made.map_err(|error| {
            let is_there = error.kind() == ErrorKind::AlreadyExists;
            let fix = if is_there { "; name another file, or remove it" } else { "" };
            anyhow!("can't make {}: {error}{fix}", file.display())
        })?;
        let report = Report::new(command).with("file", file.display().to_string());
        outcome::print_if_json(&report, self.json)
    }
}
