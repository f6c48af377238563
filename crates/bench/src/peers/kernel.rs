//! The kernel's bridge, IP forwarding, and queue disciplines behind the bridge.

use super::testbed::Testbed;
use super::{Carrier, DELAY_MS, Job, Peer, PeerAbilities};
use crate::BenchError;

/// Connects the interfaces with a bridge.
fn bridge(bed: &Testbed) -> Result<(), BenchError> {
    bed.tool("ip link add bridge0 type bridge stp_state 0 mcast_snooping 0")?;
    for port in bed.interfaces() {
        bed.tool(&format!("ip link set {port} master bridge0"))?;
    }
    bed.tool("ip link set bridge0 up").map(|_| ())
}

/// The kernel's version, for a note.
fn version() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Reason why a kernel function is missing.
fn missing(error: &BenchError, option: &str, module: &str) -> String {
    match error {
        BenchError::Tool { reason, command } if reason.contains("os error 2") => {
            let tool = command.split(' ').next().unwrap_or_default();
            format!("{tool} is not in PATH: apt-get install iproute2")
        }
        error => format!("{error}; this kernel needs {option} (modprobe {module}, or a kernel that has it)"),
    }
}

/// The bridge alone.
pub struct Bridge;

impl Peer for Bridge {
    fn abilities(&self) -> PeerAbilities {
        PeerAbilities { name: "kernel bridge", nominal_delay_ms: Some(0), ..PeerAbilities::default() }
    }

    fn presence(&self, bed: &Testbed) -> Result<String, String> {
        bridge(bed).map(|()| version()).map_err(|error| missing(&error, "CONFIG_BRIDGE", "bridge"))
    }

    fn start(&self, bed: &Testbed, _: Job) -> Result<Carrier, BenchError> {
        bridge(bed)?;
        bed.steer_to_first_processor().map(|()| Carrier::Kernel)
    }
}

/// IPv4 forwarding, with one route each way.
pub struct Routing;

impl Peer for Routing {
    fn abilities(&self) -> PeerAbilities {
        PeerAbilities { name: "kernel IP forwarding", ..PeerAbilities::default() }
    }

    fn presence(&self, bed: &Testbed) -> Result<String, String> {
        bed.route().map(|()| version()).map_err(|error| missing(&error, "CONFIG_INET", "ipv4"))
    }

    fn start(&self, bed: &Testbed, _: Job) -> Result<Carrier, BenchError> {
        bed.route()?;
        bed.steer_to_first_processor().map(|()| Carrier::Kernel)
    }
}

/// The bridge with a queue discipline on the interface to `b`.
pub struct Qdisc {
    name: &'static str,
    option: &'static str,
    module: &'static str,
    /// For each job: arguments of `tc qdisc add dev PORT`, or whole commands.
    forward: &'static [&'static str],
    rate: &'static [&'static str],
    delay: &'static [&'static str],
}

/// Token bucket filter; a bucket of little more than one packet.
pub const TBF: Qdisc = Qdisc {
    name: "kernel bridge with TBF",
    option: "CONFIG_NET_SCH_TBF",
    module: "sch_tbf",
    forward: &["qdisc add dev PORT root tbf rate 30gbit burst 1mb latency 50ms"],
    rate: &["qdisc add dev PORT root tbf rate 10mbit burst 1600 latency 200ms"],
    delay: &[],
};

/// Hierarchical token bucket with one class; buckets of little more than one packet.
pub const HTB: Qdisc = Qdisc {
    name: "kernel bridge with HTB",
    option: "CONFIG_NET_SCH_HTB",
    module: "sch_htb",
    forward: &[
        "qdisc add dev PORT root handle 1: htb default 1",
        "class add dev PORT parent 1: classid 1:1 htb rate 30gbit burst 1mb cburst 1mb quantum 60000",
    ],
    rate: &[
        "qdisc add dev PORT root handle 1: htb default 1",
        "class add dev PORT parent 1: classid 1:1 htb rate 10mbit burst 1600 cburst 1600 quantum 1514",
        "qdisc add dev PORT parent 1:1 pfifo limit 166",
    ],
    delay: &[],
};

/// The kernel's emulator.
pub const NETEM: Qdisc = Qdisc {
    name: "tc netem",
    option: "CONFIG_NET_SCH_NETEM",
    module: "sch_netem",
    forward: &["qdisc add dev PORT root netem limit 10000"],
    rate: &["qdisc add dev PORT root netem rate 10mbit limit 166"],
    delay: &["qdisc add dev PORT root netem delay 10ms limit 10000"],
};

impl Qdisc {
    fn add(&self, bed: &Testbed, job: Job) -> Result<(), BenchError> {
        let [_, out] = bed.interfaces();
        let lines = match job {
            Job::Forward => self.forward,
            Job::Delay => self.delay,
            Job::Rate => self.rate,
        };
        lines.iter().try_for_each(|line| bed.tool(&format!("tc {}", line.replace("PORT", out))).map(|_| ()))
    }
}

impl Peer for Qdisc {
    fn abilities(&self) -> PeerAbilities {
        let nominal_delay_ms = (!self.delay.is_empty()).then_some(DELAY_MS);
        // The kernel counts Ethernet frames without FCS.
        PeerAbilities { name: self.name, nominal_delay_ms, rate_overhead: Some(14) }
    }

    fn presence(&self, bed: &Testbed) -> Result<String, String> {
        self.add(bed, Job::Forward)
            .map(|()| version())
            .map_err(|error| missing(&error, self.option, self.module))
    }

    fn start(&self, bed: &Testbed, job: Job) -> Result<Carrier, BenchError> {
        bridge(bed)?;
        self.add(bed, job)?;
        bed.steer_to_first_processor().map(|()| Carrier::Kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_to_install() {
        let tool =
            |reason: &str| BenchError::Tool { command: "tc qdisc add".into(), reason: reason.to_owned() };
        let absent = missing(&tool("No such file or directory (os error 2)"), "CONFIG_X", "sch_x");
        assert_eq!(absent, "tc is not in PATH: apt-get install iproute2");
        let unknown = missing(&tool("Error: Specified qdisc kind is unknown."), "CONFIG_X", "sch_x");
        assert!(unknown.contains("unknown") && unknown.contains("modprobe sch_x"), "{unknown}");
    }
}
