//! `longwire completions`

use crate::{Cli, Outcome};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;

/// Print a shell's completions
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire completions bash > ~/.local/share/bash-completion/completions/longwire
  longwire completions zsh > ~/.zfunc/_longwire
  longwire completions fish > ~/.config/fish/completions/longwire.fish")]
pub struct Args {
    /// The shell.
    shell: Shell,
}

impl Args {
    /// Prints them.
    ///
    /// # Errors
    /// If standard output can't be written to.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "longwire", &mut text);
        std::io::stdout().write_all(&text)?;
        Ok(Outcome::Well)
    }
}
