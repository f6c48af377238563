//! `longwire man`

use crate::{Cli, Outcome, outcome};
use anyhow::Context;
use clap::CommandFactory;
use std::path::PathBuf;

/// Print the man page, or write one for each command
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire man | man -l -
  longwire man ~/.local/share/man/man1")]
pub struct Args {
    /// The folder for one page per command, made if missing. Without it the main page is printed.
    dir: Option<PathBuf>,
}

impl Args {
    /// Prints or writes the pages.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let Some(dir) = self.dir else {
            return outcome::print_with(|out| clap_mangen::Man::new(Cli::command()).render(out));
        };
        std::fs::create_dir_all(&dir).with_context(|| format!("can't make the folder {}", dir.display()))?;
        clap_mangen::generate_to(Cli::command(), &dir)
            .with_context(|| format!("can't write to {}; name another folder", dir.display()))?;
        Ok(Outcome::Well)
    }
}
