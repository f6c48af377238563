//! mahimahi's shells: `mm-delay` and `mm-link`, each a namespace behind a TUN interface whose far end is in
//! the namespace that it was started in. Packets come in by an interface moved into that namespace and leave
//! by the other one, by forwarding of IP.

use super::program::{Program, find};
use super::testbed::{ADDRESSES, Testbed};
use super::{Carrier, DELAY_MS, Job, Peer};
use crate::BenchError;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// `nobody`: mahimahi refuses root, and becomes root by its owner.
const NOBODY: u32 = 65_534;
/// How long it may take to make its interfaces.
const PATIENCE: Duration = Duration::from_secs(10);
/// Five packets in six milliseconds, 10 Mbit/s, and none in the first.
const TRACE_10_MBIT: &str = "2\n3\n4\n5\n6\n";
/// A thousand packets each millisecond, 12 Gbit/s: more than it forwards.
const FASTEST: usize = 1000;
/// The mode bit by which a program runs as its owner.
const SETUID: u32 = 0o4000;

/// mahimahi.
pub struct Mahimahi;

impl Peer for Mahimahi {
    fn name(&self) -> &'static str {
        "mahimahi"
    }

    fn nominal_delay_ms(&self) -> Option<u64> {
        Some(DELAY_MS)
    }

    /// mm-link carries 1504 bytes at each of its trace's times: an IP packet of 1500 bytes with TUN's header.
    fn rate_overhead(&self) -> Option<u32> {
        Some(0)
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        let delay = installed("mm-delay")?;
        installed("mm-link")?;
        for tool in ["iptables", "dnsmasq", "nsenter"] {
            find(tool).ok_or_else(|| format!("mahimahi needs {tool}, which is not in PATH"))?;
        }
        Ok(format!("{}: packets cross two kernel IP forwarders and a TUN interface", delay.display()))
    }

    fn start(&self, bed: &Testbed, job: Job) -> Result<Carrier, BenchError> {
        let traces = Traces::new(job)?;
        let (mut program, inner) = bed.shielded(|| {
            let mut program = bed.spawn(command(job, &traces)?)?;
            let inner = wait_for_shell(&mut program)?;
            Ok((program, inner))
        })?;
        if let Err(error) = place(bed, inner) {
            // What it said when it ended explains more.
            program.check()?;
            return Err(error);
        }
        Ok(Carrier::Program(program.keeping(traces)))
    }
}

/// Where a program of mahimahi's is, if it may become root.
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

/// Files of times at which packets may leave, gone when dropped.
struct Traces {
    folder: PathBuf,
}

impl Traces {
    fn new(job: Job) -> Result<Self, BenchError> {
        let folder = std::env::temp_dir().join(format!("longwire-peers-{}", std::process::id()));
        let doing = |source| BenchError::System { doing: "writing mahimahi's traces", source };
        std::fs::create_dir(&folder).map_err(doing)?;
        let traces = Self { folder };
        let limited = if job == Job::Rate { TRACE_10_MBIT.to_owned() } else { "1\n".repeat(FASTEST) };
        std::fs::write(traces.up(), limited).map_err(doing)?;
        std::fs::write(traces.down(), "1\n".repeat(FASTEST)).map_err(doing)?;
        std::fs::set_permissions(&traces.folder, std::fs::Permissions::from_mode(0o755)).map_err(doing)?;
        Ok(traces)
    }

    fn up(&self) -> PathBuf {
        self.folder.join("up")
    }

    fn down(&self) -> PathBuf {
        self.folder.join("down")
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // What can't be removed stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn command(job: Job, traces: &Traces) -> Result<Command, BenchError> {
    let path = |name| installed(name).map_err(|reason| BenchError::Tool { command: name.to_owned(), reason });
    let mut command = Command::new(path(if job == Job::Rate { "mm-link" } else { "mm-delay" })?);
    match job {
        Job::Forward => command.arg("0"),
        Job::Delay => command.arg(DELAY_MS.to_string()),
        Job::Rate => {
            command.arg(traces.up()).arg(traces.down());
            command.args(["--uplink-queue=droptail", "--uplink-queue-args=packets=166", "--"])
        }
    };
    // The shell of the namespace, which ends with the input.
    command.arg("cat").uid(NOBODY).gid(NOBODY).env_remove("MAHIMAHI_BASE").env("HOME", "/").current_dir("/");
    Ok(command)
}

/// Waits until the namespace has its way out, and answers a process in it.
fn wait_for_shell(program: &mut Program) -> Result<u32, BenchError> {
    let outside = namespace(program.id());
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        program.check()?;
        let id = program.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let ids = children.split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok());
        let inner = ids.into_iter().find(|id| namespace(*id).is_some() && namespace(*id) != outside);
        if let Some(inner) = inner.filter(|inner| has_default_route(*inner)) {
            return Ok(inner);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let reason = format!("made no namespace with a route within {} s", PATIENCE.as_secs());
    Err(BenchError::Tool { command: "mahimahi".into(), reason })
}

fn namespace(id: u32) -> Option<PathBuf> {
    std::fs::read_link(Path::new("/proc").join(id.to_string()).join("ns/net")).ok()
}

fn has_default_route(id: u32) -> bool {
    let routes = std::fs::read_to_string(format!("/proc/{id}/net/route")).unwrap_or_default();
    routes.lines().any(|line| line.starts_with("ingress\t00000000\t"))
}

/// Moves the interface of `a` into mahimahi's namespace, and makes both namespaces forward.
fn place(bed: &Testbed, inner: u32) -> Result<(), BenchError> {
    let [from, _] = bed.interfaces();
    let egress = bed.tool("ip -o link show type tun")?;
    let egress = egress.split(": ").nth(1).unwrap_or_default().to_owned();
    bed.route()?;
    bed.tool(&format!("ip link set {from} netns {inner}"))?;
    let inside = format!("nsenter --target {inner} --net");
    bed.tool(&format!("{inside} sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0"))?;
    bed.tool(&format!(
        "{inside} sysctl -q -w net.ipv4.conf.{from}.rp_filter=0 net.ipv4.conf.ingress.rp_filter=0"
    ))?;
    bed.tool(&format!("{inside} ip link set {from} up"))?;
    bed.attach(0, &inside)?;
    bed.set(&format!("conf/{egress}/rp_filter"), "0")?;
    bed.tool(&format!("ip route replace {}/32 dev {egress}", ADDRESSES[0]))?;
    Ok(())
}
