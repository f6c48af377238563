//! The subcommands, a file each.
//!
//! To add one, write `commands/<name>.rs` with a documented `pub struct Args` (derive `clap::Args`, long help
//! with examples) that has `pub fn run(self) -> anyhow::Result<Outcome>`, declare the module, and add it to
//! the list below.

pub mod attach;
pub mod bench;
pub mod blocks;
pub mod calibrate;
pub mod check;
pub mod completions;
pub mod constellation;
pub mod control;
pub mod ctl;
pub mod demo;
pub mod distill;
pub mod exec;
pub mod forwarder;
pub mod import;
pub mod lab;
pub mod log;
pub mod man;
pub mod nesp;
pub mod partition;
pub mod profiles;
pub mod proxy;
pub mod quic_interop;
pub mod run;
pub mod schema;
pub mod serve;
pub mod sweep;
pub mod top;
pub mod traffic;
pub mod tunnel;
pub mod validate;

use crate::Outcome;
use clap::Subcommand;

/// Generates the enum of all subcommands. Their modules are declared above, where rustfmt finds them.
macro_rules! commands {
    ($($variant:ident = $module:ident,)+) => {
        /// A subcommand with its arguments.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $(#[allow(missing_docs, reason = "the help is that of the arguments")] $variant($module::Args),)+
        }

        impl Command {
            /// Runs the command.
            ///
            /// # Errors
            /// What failed, with its causes.
            pub fn run(self) -> anyhow::Result<Outcome> {
                match self { $(Self::$variant(args) => args.run(),)+ }
            }
        }
    };
}

// In the order of the help.
commands! {
    Demo = demo, Run = run, Sweep = sweep, Serve = serve, Log = log, Check = check, Partition = partition,
    Import = import, Constellation = constellation, Distill = distill,
    Top = top, Ctl = ctl, Nesp = nesp, Tunnel = tunnel, Forwarder = forwarder, Control = control,
    Exec = exec, Attach = attach, Proxy = proxy, QuicInterop = quic_interop, Lab = lab, Traffic = traffic,
    Bench = bench, Calibrate = calibrate, Validate = validate,
    Schema = schema, Blocks = blocks, Profiles = profiles, Completions = completions, Man = man,
}
