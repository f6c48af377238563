//! Longwire itself, with each driver that works on the interfaces of all peers.

use super::testbed::Testbed;
use super::{Carrier, DELAY_MS, Job, Peer, PeerAbilities, RATE};
use crate::BenchError;
use crate::world::Driver;

/// Longwire with one driver.
pub struct Longwire(pub Driver);

impl Peer for Longwire {
    fn abilities(&self) -> PeerAbilities {
        let name = if self.0 == Driver::AfXdp { "Longwire, AF_XDP" } else { "Longwire, AF_PACKET" };
        // A link counts Ethernet frames with FCS by default.
        PeerAbilities { name, nominal_delay_ms: Some(DELAY_MS), rate_overhead: Some(18) }
    }

    fn presence(&self, bed: &Testbed) -> Result<String, String> {
        let opened = bed.world.open_by(self.0).map_err(|error| error.to_string())?;
        let version = env!("CARGO_PKG_VERSION");
        let ports = opened.iter().map(|port| port.describe()).collect::<Vec<_>>().join("; ");
        Ok(format!("version {version}; {ports}"))
    }

    fn start(&self, bed: &Testbed, job: Job) -> Result<Carrier, BenchError> {
        let link = match job {
            Job::Forward => "loss = \"0 %\"".to_owned(),
            Job::Delay => format!("delay = \"{DELAY_MS} ms\"\nloss = \"0 %\""),
            Job::Rate => format!("rate = \"{RATE} bit/s\"\nloss = \"0 %\"\nqueue = \"200 ms\""),
        };
        Ok(Carrier::Engine(Box::new(bed.world.start_by(self.0, &link)?)))
    }
}
