//! `longwire completions`

use crate::{Outcome, completion, outcome};
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;

/// Print a shell's completions
///
/// The shell asks longwire for possible values, so that the names of links, hosts, labs and profiles are
/// current.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire completions bash > ~/.local/share/bash-completion/completions/longwire
  longwire completions zsh > ~/.zfunc/_longwire
  longwire completions fish > ~/.config/fish/completions/longwire.fish")]
pub struct Args {
    /// The shell.
    #[arg(value_parser = PossibleValuesParser::new(Shells::builtins().names().collect::<Vec<_>>()))]
    shell: String,
}

impl Args {
    /// Prints them.
    ///
    /// # Errors
    /// If standard output can't be written to.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let shells = Shells::builtins();
        let shell = shells.completer(&self.shell).context("the shell is one of those listed")?;
        let mut text = Vec::new();
        shell.write_registration(completion::VARIABLE, "longwire", "longwire", "longwire", &mut text)?;
        outcome::print(String::from_utf8(text)?.trim_end())
    }
}
