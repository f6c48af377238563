//! Emulators that start a program in their own namespace, behind an interface whose far end is in the
//! namespace where they were started. Packets enter by an interface moved into the program's namespace, and
//! leave by the other one, with IP forwarding.

use super::program::Program;
use super::testbed::{ADDRESSES, Testbed};
use crate::BenchError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Timeout for the emulator's interfaces.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts an emulator and places it between the interfaces of `bed`. `inside` is the name prefix of the
/// interface by which packets leave its namespace. `outside` returns the interface at the far end, and the
/// address behind it whose Ethernet address leads to its namespace, if any.
///
/// # Errors
/// If it ends or its interfaces do not appear in time, a tool is missing, or the kernel refuses.
pub fn start(
    bed: &Testbed,
    command: Command,
    inside: &str,
    outside: impl FnOnce(&Testbed) -> Result<(String, Option<String>), BenchError>,
) -> Result<Program, BenchError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut program, (id, inside)) = bed.shielded(|| {
        let mut program = bed.spawn(command)?;
        let found = wait_for_shell(&mut program, &name, inside)?;
        Ok((program, found))
    })?;
    let placed =
        outside(bed).and_then(|(outside, gateway)| place(bed, id, &inside, &outside, gateway.as_deref()));
    if let Err(error) = placed {
        // Its last output explains more.
        program.check()?;
        return Err(error);
    }
    Ok(program)
}

/// Waits until the namespace has its interface. Returns a process in it, and the interface.
fn wait_for_shell(program: &mut Program, name: &str, inside: &str) -> Result<(u32, String), BenchError> {
    let outside = namespace(program.id());
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        program.check()?;
        let mut children = children(program.id()).into_iter();
        let inner = children.find(|id| namespace(*id).is_some() && namespace(*id) != outside);
        if let Some(found) = inner.and_then(|inner| Some((inner, way_out(inner, inside)?))) {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let reason = format!("made no namespace with a route within {} s", PATIENCE.as_secs());
    Err(BenchError::Tool { command: name.to_owned(), reason })
}

/// Child processes of all threads of a process.
fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn namespace(id: u32) -> Option<PathBuf> {
    std::fs::read_link(Path::new("/proc").join(id.to_string()).join("ns/net")).ok()
}

/// The interface of the default route, if its name has this prefix.
fn way_out(id: u32, inside: &str) -> Option<String> {
    let routes = std::fs::read_to_string(format!("/proc/{id}/net/route")).ok()?;
    let mut lines = routes.lines().map(|line| line.split('\t'));
    lines.find_map(|mut fields| {
        let interface = fields.next().filter(|interface| interface.starts_with(inside))?;
        (fields.next() == Some("00000000")).then(|| interface.to_owned())
    })
}

/// Moves the interface of `a` into the namespace, and enables forwarding in both namespaces.
fn place(
    bed: &Testbed,
    inner: u32,
    inside: &str,
    outside: &str,
    gateway: Option<&str>,
) -> Result<(), BenchError> {
    let [from, _] = bed.interfaces();
    bed.route()?;
    bed.tool(&format!("ip link set {from} netns {inner}"))?;
    let enter = format!("nsenter --target {inner} --net");
    bed.tool(&format!("{enter} sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0"))?;
    bed.tool(&format!(
        "{enter} sysctl -q -w net.ipv4.conf.{from}.rp_filter=0 net.ipv4.conf.{inside}.rp_filter=0"
    ))?;
    bed.tool(&format!("{enter} ip link set {from} up"))?;
    bed.attach(0, &enter)?;
    bed.set(&format!("conf/{outside}/rp_filter"), "0")?;
    let via = gateway.map_or_else(String::new, |gateway| format!("via {gateway} onlink"));
    bed.tool(&format!("ip route replace {}/32 dev {outside} {via}", ADDRESSES[0]))?;
    Ok(())
}
