//! The control halves of forwarders: processes beside a running router, which they access through its
//! instance's API.
//!
//! Each is a module with its options ([`echo::Args`] and so on) and a `run` that ends when it is stopped or
//! its instance ends. `session` is their shared part: programs that are installed, read, written, and removed
//! at the end.
#![forbid(unsafe_code)]

pub mod echo;
pub mod heavy_hitters;
pub mod intrusion;
pub mod monitor;
pub mod nat44;
mod session;
pub mod splice;
pub mod syn_alarm;
pub mod wavelet;

use anyhow::Context;
use longwire_control::{Client, ProgramRequest, directory};
use longwire_scenario::WrittenKey;
use longwire_units::Nanos;
use serde_json::Value;

/// Options that select the router.
#[derive(Debug, Clone, clap::Args)]
pub struct RouterArgs {
    /// The router.
    router: String,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,
}

/// Options of control halves that install programs.
#[derive(Debug, Clone, clap::Args)]
pub struct ResidentArgs {
    #[command(flatten)]
    target: RouterArgs,

    /// Lifetime of its programs after it is killed or hangs; 1 s to 1 h.
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    lease: Nanos,
}

/// The ends of a flow: options that select packets by addresses and ports.
#[derive(Debug, clap::Args)]
pub struct FlowEnds {
    /// Only packets from this address, or from this network: 10.0.0.0/8.
    #[arg(long, value_name = "ADDRESS")]
    source: Option<String>,

    /// Only packets from this port.
    #[arg(long, value_name = "PORT")]
    source_port: Option<String>,

    /// Only packets to this address, or to this network.
    #[arg(long, value_name = "ADDRESS")]
    destination: Option<String>,

    /// Only packets to this port.
    #[arg(long, value_name = "PORT")]
    destination_port: Option<String>,
}

impl FlowEnds {
    /// The key of packets of this protocol between them.
    pub fn key(self, protocol: Option<String>) -> WrittenKey {
        let Self { source, source_port, destination, destination_port } = self;
        WrittenKey { source, source_port, destination, destination_port, protocol }
    }
}

/// A polling interval, long enough to cost little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(Nanos);

impl Interval {
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
            return Err(format!("{time} is too short: the minimum is {}", Self::LEAST));
        }
        Ok(Self(time))
    }
}

impl std::ops::Deref for ResidentArgs {
    type Target = RouterArgs;

    fn deref(&self) -> &RouterArgs {
        &self.target
    }
}

impl RouterArgs {
    /// Sends a request to the router's instance.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses or does not answer.
    fn ask(&self, ask: &ProgramRequest) -> anyhow::Result<Value> {
        let client = Client::connect(&directory(), self.instance.as_deref())?;
        Ok(client.forwarders(&self.router, ask)?)
    }

    /// The socket for control processes.
    ///
    /// # Errors
    /// If no process is expected.
    fn socket(&self) -> anyhow::Result<String> {
        let levels = self.ask(&ProgramRequest::Levels)?;
        let socket = levels["socket"].as_str();
        let socket = socket
            .context("the router expects no control process: install a forwarder with --where control")?;
        Ok(socket.to_owned())
    }
}

/// The usual name of an IP protocol, or its number.
fn protocol_name(protocol: u8) -> String {
    match protocol {
        1 => "icmp".into(),
        6 => "tcp".into(),
        17 => "udp".into(),
        58 => "icmpv6".into(),
        other => other.to_string(),
    }
}
