//! Errors of interfaces.

use std::io;
use std::net::IpAddr;
use thiserror::Error;

/// Why a port can't be opened on an interface; the message says what to do.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The name is not valid for an interface.
    #[error("interface \"{name}\": a name has 1 to 15 bytes, without blanks, \"/\" and \":\"")]
    BadName {
        /// The name as given.
        name: String,
    },
    /// An option is out of its range.
    #[error("interface {name}: {option} is {value}, but must be {range}")]
    BadOption {
        /// Name of the interface.
        name: String,
        /// Name of the option.
        option: &'static str,
        /// Its value as given.
        value: u64,
        /// The allowed values.
        range: &'static str,
    },
    /// The caller's network namespace has no interface of this name.
    #[error("interface {name}: there is none of that name in this network namespace; \"ip link\" lists them")]
    Missing {
        /// Name of the interface.
        name: String,
    },
    /// An interface of this name already exists.
    #[error("interface {name}: it exists already; choose another name, or remove it: ip link del {name}")]
    Exists {
        /// Name of the interface.
        name: String,
    },
    /// Another instance uses it.
    #[error("interface {name}: {} uses it already; stop that first, or choose another interface",
        holder(*pid))]
    Claimed {
        /// Name of the interface.
        name: String,
        /// The process that uses it, if the kernel reports it.
        pid: Option<u32>,
    },
    /// The machine's own stack would also answer the frames.
    #[error(
        "interface {name}: it has the address {address}, so this machine would answer its frames too; move \
         it into a namespace without addresses (ip netns add longwire; ip link set {name} netns longwire), \
         or remove the address (ip addr flush dev {name})"
    )]
    HasAddress {
        /// Name of the interface.
        name: String,
        /// The first address found.
        address: IpAddr,
    },
    /// The network namespace can't be entered.
    #[error("network namespace \"{namespace}\": can't enter it: {source}{}", namespace_fix(source))]
    Namespace {
        /// As written in the scenario.
        namespace: String,
        /// The system's error.
        source: io::Error,
    },
    /// It is not an Ethernet interface.
    #[error(
        "interface {name}: it does not carry Ethernet frames (hardware type {kind}); choose another interface"
    )]
    NotEthernet {
        /// Name of the interface.
        name: String,
        /// Its ARPHRD number.
        kind: u16,
    },
    /// An offload that must be off can't be turned off.
    #[error(
        "interface {name}: {feature} can't be turned off here; turn it off with: ethtool -K {name} {feature} \
         off"
    )]
    Offload {
        /// Name of the interface.
        name: String,
        /// The offload, by its name in ethtool.
        feature: &'static str,
    },
    /// The system refuses.
    #[error("interface {name}: can't {action}: {source}{}", fix(source))]
    System {
        /// Name of the interface.
        name: String,
        /// The attempt.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// Doing `action` to interface `name` failed with `source`.
    pub fn from_io(name: &str, action: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => Self::Missing { name: name.into() },
            _ => Self::System { name: name.into(), action, source },
        }
    }
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

fn namespace_fix(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "; run as root, or with CAP_SYS_ADMIN",
        Some(libc::ENOENT) => "; \"ip netns list\" lists those that have a name, a number is a process",
        Some(libc::EINVAL) => "; it is no network namespace",
        _ => "",
    }
}

fn fix(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "; run as root, or with CAP_NET_RAW and CAP_NET_ADMIN in this namespace"
        }
        Some(libc::ENOMEM | libc::ENOBUFS) => "; the kernel has no memory for it: choose fewer ring slots",
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => "; load the kernel module: modprobe tun",
        Some(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files: ulimit -n",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_interface_and_the_fix() {
        let name = || "eth7".to_string();
        let cases = [
            (OpenError::from_io("eth7", "bind", io::Error::from_raw_os_error(libc::ENODEV)), "ip link"),
            (OpenError::from_io("eth7", "bind", io::Error::from_raw_os_error(libc::EPERM)), "CAP_NET_RAW"),
            (OpenError::Claimed { name: name(), pid: Some(77) }, "process 77"),
            (OpenError::Claimed { name: name(), pid: None }, "another process"),
            (OpenError::HasAddress { name: name(), address: [10, 0, 0, 1].into() }, "netns longwire"),
            (OpenError::Offload { name: name(), feature: "lro" }, "ethtool -K eth7 lro off"),
            (OpenError::Exists { name: name() }, "ip link del eth7"),
        ];
        for (error, fix) in cases {
            let text = error.to_string();
            assert!(text.contains("eth7") && text.contains(fix), "{text}");
        }
    }
}
