//! The control halves of forwarders: processes beside a running router, which they access through its
//! instance's API.
//!
//! Each is a module with its options ([`echo::Args`] and so on) and a `run` that ends when it is stopped or
//! its instance ends. `post` is their shared part: programs that are installed, read, written, and removed at
//! the end.
#![forbid(unsafe_code)]

pub mod echo;
mod flow_ends;
pub mod heavy_hitters;
pub mod intrusion;
pub mod monitor;
pub mod nat44;
mod post;
pub mod splice;
pub mod syn_alarm;
pub mod wavelet;

use anyhow::Context;
pub use flow_ends::FlowEnds;
use longwire_control::{Client, ForwarderAsk, directory};
use longwire_units::Nanos;
use serde_json::Value;

/// The router of a control half.
#[derive(Debug, Clone, clap::Args)]
pub struct Beside {
    /// The router.
    router: String,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,
}

/// The router of a control half that installs programs.
#[derive(Debug, Clone, clap::Args)]
pub struct Stay {
    #[command(flatten)]
    beside: Beside,

    /// Lifetime of its programs after it is killed or hangs; 1 s to 1 h.
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    lease: Nanos,
}

/// A polling interval, long enough to cost little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Nanos);

impl Interval {
    /// The shortest.
    const LEAST: Nanos = Nanos::from_millis(10);

    /// Its length.
    pub const fn nanos(self) -> Nanos {
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
    /// Sends a request to the router's instance.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses or does not answer.
    fn ask(&self, ask: &ForwarderAsk) -> anyhow::Result<Value> {
        let client = Client::connect(&directory(), self.instance.as_deref())?;
        Ok(client.forwarders(&self.router, ask)?)
    }

    /// The socket for control processes.
    ///
    /// # Errors
    /// If no process is expected.
    fn socket(&self) -> anyhow::Result<String> {
        let levels = self.ask(&ForwarderAsk::Levels)?;
        let socket = levels["socket"].as_str();
        let socket = socket
            .context("no control process is expected there: install a forwarder with --where control")?;
        Ok(socket.to_owned())
    }
}
