//! mahimahi's shells: `mm-delay` and `mm-link`, each a namespace behind a TUN interface whose far end is in
//! the namespace where it was started.

use super::program::find;
use super::shell;
use super::testbed::Testbed;
use super::{Carrier, DELAY_MS, Job, Peer, PeerAbilities};
use crate::BenchError;
use crate::files::Files;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// `nobody`: mahimahi refuses to be started by root, and becomes root by setuid.
const NOBODY: u32 = 65_534;
/// Five packets in six milliseconds, 10 Mbit/s, and none in the first.
const TRACE_10_MBIT: &str = "2\n3\n4\n5\n6\n";
/// A thousand packets per millisecond, 12 Gbit/s: more than it can forward.
const FASTEST: usize = 1000;
/// The setuid mode bit.
const SETUID: u32 = 0o4000;

/// mahimahi.
pub struct Mahimahi;

impl Peer for Mahimahi {
    fn abilities(&self) -> PeerAbilities {
        // mm-link sends 1504 bytes at each time of its trace: an IP packet of 1500 bytes with TUN's header.
        PeerAbilities { name: "mahimahi", nominal_delay_ms: Some(DELAY_MS), rate_overhead: Some(0) }
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        installed("mm-delay")?;
        installed("mm-link")?;
        for tool in ["iptables", "dnsmasq", "nsenter"] {
            find(tool).ok_or_else(|| format!("mahimahi needs {tool}, which is not in PATH"))?;
        }
        Ok("mm-delay: packets cross two kernel IP forwarders and a TUN interface".to_owned())
    }

    fn start(&self, bed: &Testbed, job: Job) -> Result<Carrier, BenchError> {
        let limited = if job == Job::Rate { TRACE_10_MBIT.to_owned() } else { "1\n".repeat(FASTEST) };
        let traces = Files::new("mahimahi", [("up", limited), ("down", "1\n".repeat(FASTEST))])?;
        let command = command(job, &traces)?;
        // Its own end of the TUN interface is the only one of that type.
        let outside = |bed: &Testbed| {
            let list = bed.tool("ip -o link show type tun")?;
            Ok((list.split(": ").nth(1).unwrap_or_default().to_owned(), None))
        };
        Ok(Carrier::Program(shell::start(bed, command, "ingress", outside)?.keeping(traces)))
    }
}

/// Path of a program of mahimahi, if it is setuid root.
fn installed(name: &str) -> Result<PathBuf, String> {
    let path = find(name).ok_or_else(|| {
        format!(
            "{name} is not in PATH: apt-get install mahimahi where the system has it (Ubuntu), else build it"
        )
    })?;
    let of_root =
        std::fs::metadata(&path).is_ok_and(|meta| meta.uid() == 0 && meta.permissions().mode() & SETUID != 0);
    if of_root { Ok(path) } else { Err(format!("{0} is not setuid root: chmod u+s {0}", path.display())) }
}

fn command(job: Job, traces: &Files) -> Result<Command, BenchError> {
    let path = |name| installed(name).map_err(|reason| BenchError::Tool { command: name.to_owned(), reason });
    let mut command = Command::new(path(if job == Job::Rate { "mm-link" } else { "mm-delay" })?);
    match job {
        Job::Forward => command.arg("0"),
        Job::Delay => command.arg(DELAY_MS.to_string()),
        Job::Rate => {
            command.arg(traces.path("up")).arg(traces.path("down"));
            command.args(["--uplink-queue=droptail", "--uplink-queue-args=packets=166", "--"])
        }
    };
    // The shell of the namespace, which ends with its input.
    command.arg("cat").uid(NOBODY).gid(NOBODY).env_remove("MAHIMAHI_BASE").env("HOME", "/").current_dir("/");
    Ok(command)
}
