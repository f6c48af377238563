//! `longwire control`

use crate::Outcome;
use longwire_halves::{echo, heavy_hitters, intrusion, monitor, nat44, splice, syn_alarm, wavelet};
use longwire_run::labs;

/// The control halves of forwarders: processes beside a running router
///
/// A forwarder has two parts: a program on the data path, which sees every packet, and a control half, which
/// reads the program's counters, decides, and changes what the program does. Each of these runs until it is
/// stopped, or its instance ends.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control echo r1
  longwire control syn-alarm r1
  longwire control intrusion r1
  longwire control splice r1 --listen 10.0.1.1:8080 --backend 10.0.2.9:80
  longwire control wavelet r1 --link a-b --destination 10.0.2.9 --destination-port 5004
  longwire control monitor r1 --by protocol,flags
  longwire control nat44 r1 --inside 10.0.1.0/24 --external 10.0.2.1
  longwire control heavy-hitters r1 --top 5")]
pub struct Args {
    #[command(subcommand)]
    half: Half,
}

#[derive(Debug, clap::Subcommand)]
enum Half {
    Echo(echo::Args),
    SynAlarm(Box<syn_alarm::Args>),
    Intrusion(Box<intrusion::Args>),
    Splice(Box<splice::Args>),
    Wavelet(Box<wavelet::Args>),
    Monitor(Box<monitor::Args>),
    Nat44(Box<nat44::Args>),
    HeavyHitters(Box<heavy_hitters::Args>),
}

impl Args {
    /// Runs the control half.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses, or ends.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.half {
            Half::Echo(args) => args.run(),
            Half::SynAlarm(args) => args.run(),
            Half::Intrusion(args) => args.run(),
            Half::Splice(args) => args.run(labs::open),
            Half::Wavelet(args) => args.run(),
            Half::Monitor(args) => args.run(),
            Half::Nat44(args) => args.run(),
            Half::HeavyHitters(args) => args.run(),
        }?;
        Ok(Outcome::Well)
    }
}
