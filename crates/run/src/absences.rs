//! What the ports of a scenario need in a run, and this machine lacks now: keys, captures, interfaces and
//! network namespaces. The run may be elsewhere, or later.

use crate::port_files::Captures;
use longwire_drivers::tap;
use longwire_port::driver::pcap::interfaces;
use longwire_port::driver::{fault_in, tunnel};
use longwire_port::interface::{Interface, OpenError, namespace};
use longwire_scenario::{DriverSettings, Plan, Port};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most ports of which it is said.
const MOST_SAID: usize = 50;

/// What a port lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// The port.
    pub port: Box<str>,
    /// What is not there or can't be used, and the fix.
    pub what: String,
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port \"{}\": {}", self.port, self.what)
    }
}

/// What the ports of `plan` lack on this machine, in their order.
pub fn absences(plan: &Plan) -> Vec<Absence> {
    let lacking = plan.ports.iter().filter_map(|port| {
        let what = absence(port, port.attachment.driven()?)?;
        Some(Absence { port: port.name.clone(), what })
    });
    lacking.take(MOST_SAID).collect()
}

/// What a port with these settings lacks, if anything.
fn absence(port: &Port, driven: &DriverSettings) -> Option<String> {
    if let Some(key) = driven.setting::<Arc<PathBuf>>("key")
        && let Err(fault) = tunnel::read_key(&key)
    {
        return Some(fault);
    }
    if let Some(fault) = Captures::of_scenario(port).input.and_then(|input| unreadable(&input)) {
        return Some(format!("{fault}; a run takes another by --input {}=FILE", port.name));
    }
    let fault = no_interface(driven)?;
    Some(fault_in(&driven.netns(), fault.into()).to_string())
}

/// Why a capture can't be read. Pipes and devices are not opened: that would take what they have.
fn unreadable(input: &Path) -> Option<String> {
    if std::fs::metadata(input).is_ok_and(|found| !found.is_file()) {
        return None;
    }
    interfaces(input).err().map(|error| error.to_string())
}

/// Why a port's namespace or interface can't be used. What may not be entered may be right.
fn no_interface(driven: &DriverSettings) -> Option<OpenError> {
    // A TAP device is made.
    let name = driven.interface().filter(|_| *driven.driver != tap::DRIVER);
    let look = || name.as_deref().map_or(Ok(()), |name| Interface::open(name).map(drop));
    match namespace::visit(&driven.netns(), look).flatten().err()? {
        OpenError::Namespace { source, .. } if source.kind() == ErrorKind::PermissionDenied => None,
        fault => Some(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: &str = "listen = \"127.0.0.1:7000\"\npeer = \"127.0.0.1:7001\"\n";

    #[test]
    fn what_is_not_here_is_named_with_its_port() {
        let port = |name: &str, keys: &str| format!("[[port]]\nname = \"{name}\"\n{keys}\n");
        let text = [
            port("key", &format!("driver = \"tunnel\"\n{ENDS}key = \"no.key\"")),
            port("capture", "driver = \"pcap\"\ninput = \"no.pcap\"\noutput = \"out.pcap\""),
            port("interface", "driver = \"af_packet\"\ninterface = \"lw-nowhere\""),
            port("netns", "driver = \"af_packet\"\nnetns = \"lw-no-such-namespace\""),
            // These are here, are made, or need nothing.
            port("lo", "driver = \"af_packet\""),
            port("made", "driver = \"tap\""),
            port("pipe", "driver = \"pcap\"\ninput = \"/dev/null\""),
            port("memory", "driver = \"memory\""),
        ];
        let plan = longwire_scenario::parse("/nowhere/x.toml", &text.concat()).unwrap();
        let said: Vec<String> = absences(&plan).iter().map(ToString::to_string).collect();
        let wanted = [
            ["port \"key\": ", "/nowhere/no.key"],
            ["port \"capture\": /nowhere/no.pcap: ", "--input capture=FILE"],
            ["port \"interface\": interface lw-nowhere: there is none", "\"ip link\""],
            ["port \"netns\": network namespace \"lw-no-such-namespace\"", "ip netns list"],
        ];
        assert_eq!(said.len(), wanted.len(), "{said:?}");
        for (said, [begin, more]) in said.iter().zip(wanted) {
            assert!(said.starts_with(begin) && said.contains(more), "{said}");
        }
    }
}
