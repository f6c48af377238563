//! The name servers of a command behind the link.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

use longwire_netlink::interface_index;

/// The list of name servers for programs, resolv.conf(5).
pub const PATH: &str = "/etc/resolv.conf";

const PORT: u16 = 53;

/// How names are resolved behind the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// With the machine's own file: its servers can be reached through the link.
    Same,
    /// By a relay at the far end, for servers on this machine's loopback or reached by IPv6.
    Relay {
        /// The machine's servers.
        servers: Vec<SocketAddr>,
        /// The lines of the machine's file that don't name servers.
        other_lines: String,
    },
    /// Not at all, other than by `/etc/hosts`.
    None,
}

impl Resolver {
    /// What suits a machine with this `resolv.conf`.
    pub fn of(text: &str) -> Self {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let is_server = |line: &&str| words(line).first().is_some_and(|w| w == "nameserver");
        let mut servers: Vec<SocketAddr> =
            text.lines().filter(is_server).filter_map(|line| server(words(line).get(1)?)).collect();
        if servers.is_empty() {
            // What resolv.conf(5) says programs then use.
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

    /// The file to be shown behind the link, where relays listen on these addresses; `None` for the machine's
    /// own.
    pub fn file(&self, relays: &[IpAddr]) -> Option<String> {
        match self {
            Self::Same => None,
            Self::Relay { other_lines, .. } => {
                let each = relays.iter().map(|relay| format!("nameserver {relay}\n"));
                Some(other_lines.clone() + &each.collect::<String>())
            }
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
        assert!(Resolver::None.file(&relay).is_some_and(|f| f.starts_with('#')));
    }
}
