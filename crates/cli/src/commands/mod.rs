//! The subcommands, a file each.
//!
//! To add one, write `commands/<name>.rs` with a documented `pub struct Args` (derive `clap::Args`, long help with
//! examples) that has `pub fn run(self) -> anyhow::Result<Outcome>`, and add it to the list below.

use crate::Outcome;
use clap::Subcommand;

/// Makes the modules and the enum of all subcommands.
macro_rules! commands {
    ($($variant:ident = $module:ident,)+) => {
        $(pub mod $module;)+

        /// A subcommand with its arguments.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $(#[allow(missing_docs, reason = "the help is that of the arguments")] $variant($module::Args),)+
        }

        impl Command {
            /// Carries it out.
            ///
            /// # Errors
            /// What could not be done, with its causes.
            pub fn run(self) -> anyhow::Result<Outcome> {
                match self { $(Self::$variant(args) => args.run(),)+ }
            }
        }
    };
}

// In the order in which the help lists them.
commands! {
    Demo = demo,
    Run = run,
    Check = check,
    Import = import,
    Ctl = ctl,
    Nesp = nesp,
    Forwarder = forwarder,
    Control = control,
    Exec = exec,
    Lab = lab,
    Traffic = traffic,
    Bench = bench,
    Calibrate = calibrate,
    Validate = validate,
    Schema = schema,
    Blocks = blocks,
    Profiles = profiles,
    Completions = completions,
    Man = man,
}
