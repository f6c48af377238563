//! The name servers of a command behind the link.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::path::Path;

use longwire_netlink::interface_index;

/// The list of name servers for programs, resolv.conf(5).
const PATH: &str = "/etc/resolv.conf";

const PORT: u16 = 53;

/// Name resolution behind the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// With the machine's file: its servers are reachable through the link.
    Same,
    /// By a relay at the far end, for servers on this machine's loopback or reached by IPv6.
    Relay {
        /// The machine's servers.
        servers: Vec<SocketAddr>,
        /// The lines of the machine's file that don't name servers.
        other_lines: String,
    },
    /// By another server, which is reachable through the link.
    Other {
        /// The server.
        server: IpAddr,
        /// The lines of the machine's file that don't name servers.
        other_lines: String,
    },
    /// Only by `/etc/hosts`.
    None,
}

impl Resolver {
    /// The choice for this machine.
    pub fn here() -> Self {
        Self::read(Path::new(PATH))
    }

    /// The choice for a machine with this file. Its comments may have any bytes.
    fn read(file: &Path) -> Self {
        Self::of(&String::from_utf8_lossy(&fs::read(file).unwrap_or_default()))
    }

    /// The choice for a machine with this `resolv.conf`.
    pub fn of(text: &str) -> Self {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let is_server = |line: &&str| words(line).first().is_some_and(|w| w == "nameserver");
        let mut servers: Vec<SocketAddr> =
            text.lines().filter(is_server).filter_map(|line| server(words(line).get(1)?)).collect();
        if servers.is_empty() {
            // The default of resolv.conf(5).
            servers.push(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
        }
        let reachable =
            |s: &SocketAddr| matches!(s.ip(), IpAddr::V4(a) if !a.is_loopback() && !a.is_unspecified());
        if servers.iter().all(reachable) {
            return Self::Same;
        }
        let other_lines =
            text.lines().filter(|line| !is_server(line)).map(|line| format!("{line}\n")).collect();
        Self::Relay { servers, other_lines }
    }

    /// With another server instead of those unreachable through the link.
    pub fn by_way_of(self, server: IpAddr) -> Self {
        match self {
            Self::Relay { other_lines, .. } => Self::Other { server, other_lines },
            other => other,
        }
    }

    /// The file shown behind the link, if relays listen on these addresses; `None` for the machine's own.
    pub fn file(&self, relays: &[IpAddr]) -> Option<String> {
        match self {
            Self::Same => None,
            Self::Relay { other_lines, .. } => {
                let each = relays.iter().map(|relay| format!("nameserver {relay}\n"));
                Some(other_lines.clone() + &each.collect::<String>())
            }
            Self::Other { server, other_lines } => Some(format!("{other_lines}nameserver {server}\n")),
            Self::None => Some("# No name server can be reached from here.\n".to_owned()),
        }
    }
}

/// An address as resolv.conf writes it; link-local ones name their interface after a `%`.
fn server(text: &str) -> Option<SocketAddr> {
    let Some((address, interface)) = text.split_once('%') else {
        return Some(SocketAddr::new(text.parse().ok()?, PORT));
    };
    let scope = interface.parse().ok().or_else(|| interface_index(interface).ok())?;
    Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, scope).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_cannot_be_reached_through_the_link_are_relayed() {
        let relay: [IpAddr; 1] = [[100, 64, 0, 1].into()];
        for same in ["nameserver 10.0.0.53\n", "search x\nnameserver 1.1.1.1\nnameserver 8.8.8.8"] {
            assert_eq!(Resolver::of(same), Resolver::Same);
        }
        for (text, servers, file) in [
            ("", "127.0.0.1:53", "nameserver 100.64.0.1\n"),
            (
                "# by systemd\nnameserver 127.0.0.53\noptions edns0\nsearch lan",
                "127.0.0.53:53",
                "# by systemd\noptions edns0\nsearch lan\nnameserver 100.64.0.1\n",
            ),
            (
                "nameserver fe80::1%1\n nameserver 10.0.0.1",
                "[fe80::1%1]:53 10.0.0.1:53",
                "nameserver 100.64.0.1\n",
            ),
            ("nameserver nonsense", "127.0.0.1:53", "nameserver 100.64.0.1\n"),
        ] {
            let resolver = Resolver::of(text);
            assert_eq!(resolver.file(&relay).as_deref(), Some(file));
            let Resolver::Relay { servers: found, .. } = resolver else { panic!("{text} is not relayed") };
            let found: Vec<_> = found.iter().map(SocketAddr::to_string).collect();
            assert_eq!(found.join(" "), servers);
        }
        let both = [relay[0], "fd00::1".parse().unwrap()];
        let file = Resolver::of("").file(&both);
        assert_eq!(file.as_deref(), Some("nameserver 100.64.0.1\nnameserver fd00::1\n"));
        let other = Resolver::of("search lan\nnameserver 127.0.0.53").by_way_of([169, 254, 1, 1].into());
        assert_eq!(other.file(&both).as_deref(), Some("search lan\nnameserver 169.254.1.1\n"));
        let same = Resolver::of("nameserver 1.1.1.1").by_way_of([169, 254, 1, 1].into());
        assert_eq!(same, Resolver::Same);
        assert!(Resolver::None.file(&relay).is_some_and(|f| f.starts_with('#')));
    }

    #[test]
    fn servers_are_found_beside_any_comment() {
        let file = std::env::temp_dir().join(format!("longwire-resolv-{}.conf", std::process::id()));
        fs::write(&file, b"# B\xfcro\nnameserver 10.0.0.53\n").unwrap();
        assert_eq!(Resolver::read(&file), Resolver::Same);
        fs::remove_file(file).unwrap();
    }
}
