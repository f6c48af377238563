//! `longwire control`

mod echo;
mod heavy_hitters;
mod intrusion;
mod monitor;
mod nat44;
mod post;
mod splice;
mod syn_alarm;
mod wavelet;

use crate::Outcome;
use anyhow::Context;
use longwire_control::{Client, ForwarderAsk, directory};
use longwire_units::Nanos;
use serde_json::Value;

/// The control halves of forwarders: processes of their own beside a running router
///
/// A forwarder has two parts: a program on the data path, which sees every packet, and a control half, which sees what the program has counted,
/// decides, and changes what the program does. Each of these runs until it is stopped, or its instance ends.
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
    /// Runs it.
    ///
    /// # Errors
    /// If no instance is meant, or it refuses, or ends.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.half {
            Half::Echo(args) => args.run(),
            Half::SynAlarm(args) => args.run(),
            Half::Intrusion(args) => args.run(),
            Half::Splice(args) => args.run(),
            Half::Wavelet(args) => args.run(),
            Half::Monitor(args) => args.run(),
            Half::Nat44(args) => args.run(),
            Half::HeavyHitters(args) => args.run(),
        }
    }
}

/// The router beside which a control half runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Beside {
    /// The router.
    router: String,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,
}

/// The same for one that installs programs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Stay {
    #[command(flatten)]
    beside: Beside,

    /// How long its programs stay when it is killed, or hangs; 1 s to 1 h.
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    lease: Nanos,
}

/// How often something is looked at: so often that it takes no time from anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval(Nanos);

impl Interval {
    /// The shortest.
    const LEAST: Nanos = Nanos::from_millis(10);

    /// Its length.
    pub(crate) const fn nanos(self) -> Nanos {
        self.0
    }
}

impl std::str::FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
        if time < Self::LEAST {
            return Err(format!("{time} is too often: {} is the least", Self::LEAST));
        }
        Ok(Self(time))
    }
}

impl std::ops::Deref for Stay {
    type Target = Beside;

    fn deref(&self) -> &Beside {
        &self.beside
    }
}

impl Beside {
    /// Asks the router's instance.
    ///
    /// # Errors
    /// If no instance is meant, or it refuses or does not answer.
    pub(crate) fn ask(&self, ask: &ForwarderAsk) -> anyhow::Result<Value> {
        let client = Client::connect(&directory(), self.instance.as_deref())?;
        Ok(client.forwarders(&self.router, ask)?)
    }

    /// Where control processes come.
    ///
    /// # Errors
    /// If none is expected.
    pub(crate) fn socket(&self) -> anyhow::Result<String> {
        let levels = self.ask(&ForwarderAsk::Levels {})?;
        let socket = levels["socket"].as_str();
        let socket = socket
            .context("no control process is expected there: install a forwarder with --where control")?;
        Ok(socket.to_owned())
    }
}
