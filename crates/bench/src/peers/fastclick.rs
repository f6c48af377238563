//! FastClick: the Click modular router at user level, with one queue between two packet sockets.

use super::program::find;
use super::testbed::Testbed;
use super::{Carrier, Job, Peer, PeerAbilities};
use crate::BenchError;
use std::process::{Command, Stdio};

/// FastClick.
pub struct FastClick;

impl Peer for FastClick {
    fn abilities(&self) -> PeerAbilities {
        PeerAbilities { name: "FastClick", ..PeerAbilities::default() }
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        const HOW: &str = "build FastClick from its sources and put userlevel/click into PATH; \
                           Debian's package \"click\" is another program";
        let path = find("click").ok_or_else(|| format!("click is not in PATH: {HOW}"))?;
        let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let first = text.unwrap_or_default().lines().next().unwrap_or_default().to_owned();
        // The original says "click (Click) 2.1"; Python's package of that name knows no version.
        if first.to_ascii_lowercase().contains("click") {
            Ok(first)
        } else {
            Err(format!("{} is another program: {HOW}", path.display()))
        }
    }

    fn start(&self, bed: &Testbed, _: Job) -> Result<Carrier, BenchError> {
        let [a, b] = bed.interfaces();
        let way = |from: &str, to: &str| {
            let source = format!("FromDevice({from}, PROMISC true, METHOD LINUX)");
            format!("{source} -> Queue(1024) -> ToDevice({to}, METHOD LINUX);")
        };
        // It reads no input and would outlive this process, so a shell ends it.
        let mut command = Command::new("sh");
        command.args(["-c", "click -e \"$1\" & cat; kill $!", "sh"]).arg(way(a, b) + &way(b, a));
        Ok(Carrier::Program(bed.spawn(command)?))
    }
}
