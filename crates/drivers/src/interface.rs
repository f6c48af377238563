//! Settings of drivers with an interface.

use longwire_settings::{Fallback, Grammar, Param, ParamKind, Reading};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest name of an interface (IFNAMSIZ without its end).
const LONGEST: usize = 15;

/// The name of an interface, valid for the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceName(pub String);

/// The setting for the interface; a driver's own field has the help. By default the scenario uses the port's
/// name.
pub(crate) const INTERFACE: Param = shared(
    "interface",
    ParamKind::Parsed(Grammar { wanted: "the name of an interface", read, examples: &["eth0"], form: None }),
    "",
);

/// The setting for the number of workers that share it.
pub(crate) const QUEUES: Param = shared("queues", ParamKind::Integer { min: 1, max: 64 }, "1");

/// A setting of several drivers, whose own fields have the help.
const fn shared(name: &'static str, kind: ParamKind, default: &'static str) -> Param {
    Param { name, kind, default: Fallback::Value(default), help: "", live: false }
}

/// The network namespace of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Netns {
    /// The one that Longwire was started in.
    #[default]
    Own,
    /// One that `ip netns` knows by this name.
    Named(String),
    /// That of a process.
    Process(u32),
    /// One that is bound to a file.
    At(PathBuf),
}

impl Netns {
    /// The file by which it is entered; none for the own one.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Own => None,
            Self::Named(name) => Some(Path::new("/run/netns").join(name)),
            Self::Process(pid) => Some(format!("/proc/{pid}/ns/net").into()),
            Self::At(path) => Some(path.clone()),
        }
    }

    /// A command that is to be run in it: `ip link` becomes `ip -n lab link` for the namespace `lab`.
    pub fn command(&self, command: &str) -> String {
        match (self, command.strip_prefix("ip ")) {
            (Self::Own, _) => command.into(),
            (Self::Named(name), Some(words)) => format!("ip -n {name} {words}"),
            (Self::Named(name), None) => format!("ip netns exec {name} {command}"),
            (Self::Process(pid), _) => format!("nsenter --target {pid} --net {command}"),
            (Self::At(path), _) => format!("nsenter --net={} {command}", path.display()),
        }
    }
}

impl fmt::Display for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Named(name) => f.write_str(name),
            Self::Process(pid) => pid.fmt(f),
            Self::At(path) => path.display().fmt(f),
        }
    }
}

/// Where an interface is.
pub(crate) const NETNS: Param = shared(
    "netns",
    ParamKind::Parsed(Grammar {
        wanted: "a network namespace: its name, a process in it, or its file",
        read: read_netns,
        examples: &["lab", "1234", "/run/docker/netns/default"],
        form: None,
    }),
    "",
);

fn read_netns(text: &str, _folder: &Path) -> Reading {
    let netns = match text {
        "" => Netns::Own,
        _ if text.contains('\0') || matches!(text, "." | "..") => {
            return Err(format!("\"{text}\" can't be the name of a network namespace"));
        }
        _ if text.starts_with('/') => Netns::At(text.into()),
        _ if text.contains('/') => {
            return Err(format!(
                "\"{text}\" is no whole path; write the name of the namespace, or a path from / on"
            ));
        }
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => match text.parse() {
            Ok(pid) if pid > 0 => Netns::Process(pid),
            _ => return Err(format!("there is no process {text}")),
        },
        _ => Netns::Named(text.into()),
    };
    Ok(Arc::new(netns))
}

fn read(text: &str, _folder: &Path) -> Reading {
    let bad = text.len() > LONGEST
        || text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
        || matches!(text, "." | "..");
    if bad {
        return Err(format!(
            "\"{text}\" can't be the name of an interface; interface names have 1 to 15 characters without \
             blanks, slashes and colons"
        ));
    }
    Ok(Arc::new(InterfaceName(text.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_names_processes_or_files() {
        let read = |text: &str| {
            let value = read_netns(text, Path::new(".")).ok()?;
            let value: Arc<dyn std::any::Any + Send + Sync> = value;
            value.downcast::<Netns>().ok().map(|netns| (*netns).clone())
        };
        assert_eq!(read(""), Some(Netns::Own));
        assert_eq!(read("lab"), Some(Netns::Named("lab".into())));
        assert_eq!(read("1234"), Some(Netns::Process(1234)));
        assert_eq!(read("/proc/1/ns/net"), Some(Netns::At("/proc/1/ns/net".into())));
        for bad in ["..", "a/b", "0", "99999999999", "a\0b"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        let path = |text| read(text).and_then(|netns| netns.path());
        assert_eq!(path("lab"), Some("/run/netns/lab".into()));
        assert_eq!(path("1234"), Some("/proc/1234/ns/net".into()));
    }

    #[test]
    fn commands_are_run_in_the_namespace() {
        let at = Netns::At("/run/docker/netns/default".into());
        for (netns, command, wanted) in [
            (Netns::Own, "ip link", "ip link"),
            (Netns::Named("lab".into()), "ip link", "ip -n lab link"),
            (Netns::Named("lab".into()), "ethtool -i x", "ip netns exec lab ethtool -i x"),
            (Netns::Process(12), "ip link", "nsenter --target 12 --net ip link"),
            (at, "ip link", "nsenter --net=/run/docker/netns/default ip link"),
        ] {
            assert_eq!(netns.command(command), wanted);
        }
    }
}
