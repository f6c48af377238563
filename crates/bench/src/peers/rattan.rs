//! Rattan, a path emulator in Rust, between its own namespace and the one where it was started.

use super::program::find;
use super::shell;
use super::testbed::Testbed;
use super::{Carrier, DELAY_MS, Job, Peer, PeerAbilities, RATE};
use crate::BenchError;
use crate::files::Files;
use std::process::{Command, Stdio};

const PROGRAM: &str = "rattan";
/// Its interface in the namespace where it was started.
const OUTSIDE: &str = "vR1-R-";

/// Rattan.
pub struct Rattan;

impl Peer for Rattan {
    fn abilities(&self) -> PeerAbilities {
        // Configured to count IP packets.
        PeerAbilities { name: "Rattan", nominal_delay_ms: Some(DELAY_MS), rate_overhead: Some(0) }
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        find(PROGRAM)
            .ok_or_else(|| format!("{PROGRAM} is not in PATH: cargo install {PROGRAM}, or build it"))?;
        for tool in ["nsenter", "sysctl"] {
            find(tool).ok_or_else(|| format!("its hosts are set up by {tool}, which is not in PATH"))?;
        }
        let output = Command::new(PROGRAM).arg("-V").stdin(Stdio::null()).output();
        let text = output.map_err(|error| error.to_string())?.stdout;
        let version = String::from_utf8_lossy(&text).trim().to_owned();
        Ok(format!("{version}: packets cross two kernel IP forwarders and two more veth pairs"))
    }

    fn start(&self, bed: &Testbed, job: Job) -> Result<Carrier, BenchError> {
        let files = Files::new("rattan", [("rattan.toml", settings(job))])?;
        let mut command = Command::new(PROGRAM);
        command.arg("run").arg("--config").arg(files.path("rattan.toml")).args(["--left", "cat"]);
        let outside = |bed: &Testbed| {
            let list = bed.tool("ip -o link show type veth")?;
            let names = list.lines().filter_map(|line| line.split(": ").nth(1)?.split('@').next());
            let found = names.into_iter().find(|name| name.starts_with(OUTSIDE)).map(str::to_owned);
            let reason = format!("made no interface {OUTSIDE}…");
            let found = found.ok_or(BenchError::Tool { command: PROGRAM.into(), reason })?;
            let known = bed.tool(&format!("ip -o neigh show dev {found} nud permanent"))?;
            Ok((found, known.split_ascii_whitespace().next().map(str::to_owned)))
        };
        Ok(Carrier::Program(shell::start(bed, command, "vL1-L-", outside)?.keeping(files)))
    }
}

/// Its settings for a job: one cell in the forward direction, none in the other; its thread is on the first
/// processor, like Longwire's worker.
fn settings(job: Job) -> String {
    let cell = match job {
        Job::Forward => "type = \"Delay\"\ndelay = \"0ms\"".to_owned(),
        Job::Delay => format!("type = \"Delay\"\ndelay = \"{DELAY_MS}ms\""),
        Job::Rate => format!(
            "type = \"Bw\"\nbw_type = \"NetworkLayer\"\nbandwidth = \"{}Mbps\"\nqueue = \"DropTail\"\n\
             queue_config = {{ packet_limit = 166 }}",
            RATE / 1_000_000
        ),
    };
    format!(
        "[env]\nmode = \"Compatible\"\n\n[cells.up]\n{cell}\n\n[links]\nleft = \"up\"\nup = \"right\"\n\
         right = \"left\"\n\n[resource]\ncpu = [0]\n"
    )
}
