//! A way out for a process without root: pasta or slirp4netns, which carry packets through ordinary sockets.

use std::env;
use std::ffi::OsStr;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::free_network::has_way_out;
use crate::resolver::Resolver;
use crate::{LabError, Result};

/// Time limit for setting up its interface.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between checks whether it has.
const LOOK: Duration = Duration::from_millis(2);

/// Waits for the start signal, and ends the program at the end of its input, however this process ends.
const ATTEND: &str = "read -r go || exit 1
exec 3<&0
\"$@\" </dev/null & program=$!
{ read -r end <&3; kill $program; } & watch=$!
wait $program
kill $watch";

/// The program's name for the interface in the network that it serves.
const INTERFACE: &str = "out0";

/// A program that carries packets between the network namespace of this process and the machine's network,
/// until dropped.
#[derive(Debug)]
pub struct UserNetwork {
    child: Child,
    input: Option<ChildStdin>,
    program: Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Pasta,
    Slirp4netns,
}

impl UserNetwork {
    /// Prepares the better of the installed ones, if any. Must be called in the machine's network, before
    /// [`crate::enter_user_namespace`].
    ///
    /// # Errors
    /// If no process can be started.
    pub fn prepare() -> Result<Option<Self>> {
        let path = env::var_os("PATH").unwrap_or_default();
        let all = [Program::Pasta, Program::Slirp4netns];
        let Some(program) = all.into_iter().find(|program| is_in(&path, program.name())) else {
            return Ok(None);
        };
        let mut command = Command::new("sh");
        command
            .args(["-c", ATTEND, "longwire", program.name()])
            .args(program.arguments(std::process::id(), Resolver::here()));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // The terminal's Ctrl-C is for the command.
        command.process_group(0);
        let mut child = command.spawn().map_err(LabError::system(format!("starting {}", program.name())))?;
        let input = child.stdin.take();
        Ok(Some(Self { child, input, program }))
    }

    /// Starts it for this process's present namespace, and waits until packets have a way out.
    ///
    /// # Errors
    /// If it ends, or does not set up its interface in time.
    pub fn start(&mut self) -> Result<()> {
        let name = self.program.name();
        let mut input = self.input.as_ref();
        let told = input.as_mut().map_or(Ok(()), |input| input.write_all(b"begin\n"));
        told.map_err(LabError::system(format!("starting {name}")))?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if has_way_out() {
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(LabError::system(format!("waiting for {name}")))?;
            if ended.is_some() {
                return Err(LabError::UserNetwork { program: name, reason: "has ended at once" });
            }
            std::thread::sleep(LOOK);
        }
        Err(LabError::UserNetwork { program: name, reason: "has set no network up within 5 s" })
    }

    /// The address at which the machine's own name server resolves names.
    #[must_use]
    pub const fn name_server(&self) -> IpAddr {
        self.program.name_server()
    }
}

impl Drop for UserNetwork {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        }
    }

    const fn name_server(self) -> IpAddr {
        IpAddr::V4(match self {
            // Link-local, so that it conflicts with no address in the networks behind.
            Self::Pasta => Ipv4Addr::new(169, 254, 1, 1),
            Self::Slirp4netns => Ipv4Addr::new(10, 0, 2, 3),
        })
    }

    /// The arguments for the namespaces of a process. Nothing outside can connect in, and the machine's
    /// loopback is not reachable.
    fn arguments(self, pid: u32, resolver: Resolver) -> Vec<String> {
        let [user, network] = ["user", "net"].map(|kind| format!("/proc/{pid}/ns/{kind}"));
        match self {
            Self::Pasta => {
                let fixed = "--foreground --quiet --config-net --no-map-gw -t none -u none -T none -U none";
                let fixed = fixed.split(' ').map(str::to_owned);
                let own = ["--ns-ifname", INTERFACE, "--userns", &user, "--netns", &network];
                let mut all: Vec<String> = fixed.chain(own.map(str::to_owned)).collect();
                // Answers then come from this address, which clients of the server itself would not accept.
                if resolver != Resolver::Same {
                    all.extend(["--dns-forward".to_owned(), self.name_server().to_string()]);
                }
                all
            }
            Self::Slirp4netns => {
                let fixed = "--configure --mtu=65520 --disable-host-loopback --netns-type=path";
                let fixed = fixed.split(' ').map(str::to_owned);
                fixed.chain([format!("--userns-path={user}"), network, INTERFACE.to_owned()]).collect()
            }
        }
    }
}

/// Whether a program is in one of the folders of a search path.
fn is_in(path: &OsStr, program: &str) -> bool {
    let runs = |folder: &Path| {
        let found = std::fs::metadata(folder.join(program));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(path).any(|folder| runs(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_commands_are() {
        assert!(is_in("/nowhere:/bin:/usr/bin".as_ref(), "sh"));
        assert!(!is_in("/nowhere:/bin:/usr/bin".as_ref(), "no-such-program-here"));
        assert!(!is_in("/".as_ref(), "etc"), "a folder is none");
    }

    #[test]
    fn nothing_comes_in_and_the_loopback_is_not_reached() {
        let pasta = Program::Pasta.arguments(7, Resolver::Same).join(" ");
        assert!(pasta.contains("--no-map-gw -t none -u none -T none -U none"), "{pasta}");
        assert!(pasta.ends_with("--userns /proc/7/ns/user --netns /proc/7/ns/net"), "{pasta}");
        let pasta = Program::Pasta.arguments(7, Resolver::of("nameserver 127.0.0.53")).join(" ");
        assert!(pasta.ends_with("--dns-forward 169.254.1.1"), "{pasta}");
        let slirp = Program::Slirp4netns.arguments(7, Resolver::Same).join(" ");
        assert!(slirp.contains("--disable-host-loopback"), "{slirp}");
        assert!(slirp.ends_with("--userns-path=/proc/7/ns/user /proc/7/ns/net out0"), "{slirp}");
    }
}
