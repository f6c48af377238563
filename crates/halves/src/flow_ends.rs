//! Options that select packets by addresses and ports.

use longwire_scenario::WrittenKey;

/// The ends of a flow.
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
