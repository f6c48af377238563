//! DPDK's test program, which forwards frames between two ports unmodified.

use super::program::find;
use super::testbed::Testbed;
use super::{Carrier, Job, Peer, PeerAbilities};
use crate::{BenchError, processors};
use std::process::Command;

const PROGRAM: &str = "dpdk-testpmd";

/// testpmd with one of DPDK's drivers for kernel interfaces.
pub struct Testpmd {
    name: &'static str,
    driver: &'static str,
    package: &'static str,
}

/// With packet sockets and a mapped ring.
pub const AF_PACKET: Testpmd =
    Testpmd { name: "DPDK testpmd, AF_PACKET", driver: "net_af_packet", package: "librte-net-af-packet23" };

/// With AF_XDP.
pub const AF_XDP: Testpmd =
    Testpmd { name: "DPDK testpmd, AF_XDP", driver: "net_af_xdp", package: "librte-net-af-xdp23" };

impl Testpmd {
    /// The first processor forwards; the program's main thread is on the last one.
    fn command(&self, bed: &Testbed) -> Command {
        let last = processors() - 1;
        let [from, to] = bed.interfaces();
        let mut command = Command::new(PROGRAM);
        command.args(["--no-huge", "-m", "128", "--no-pci", "--no-telemetry", "--no-shconf"]);
        command.arg(format!("--lcores=0@{last},1@0"));
        command.arg(format!("--file-prefix=longwire-{}", std::process::id()));
        command.arg(format!("--vdev={}0,iface={from}", self.driver));
        command.arg(format!("--vdev={}1,iface={to}", self.driver));
        command.args(["--", "--forward-mode=io", "--auto-start", "--nb-cores=1", "--total-num-mbufs=16384"]);
        command
    }
}

impl Peer for Testpmd {
    fn abilities(&self) -> PeerAbilities {
        PeerAbilities { name: self.name, ..PeerAbilities::default() }
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        let install = || format!("apt-get install dpdk-dev {}", self.package);
        let path =
            find(PROGRAM).ok_or_else(|| format!("{PROGRAM} is not in PATH: on Debian, {}", install()))?;
        Ok(path.display().to_string())
    }

    fn start(&self, bed: &Testbed, _: Job) -> Result<Carrier, BenchError> {
        Ok(Carrier::Program(bed.spawn(self.command(bed))?))
    }
}
