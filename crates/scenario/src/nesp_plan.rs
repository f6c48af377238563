//! Access to settings by frames (NESP).

use crate::words::NespAllow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Section `[nesp]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesp {
    /// The file with the shared key; it was valid when the scenario was read.
    pub key_file: PathBuf,
    /// Places of the ports that allow it.
    pub ports: Vec<u16>,
    /// Address and port of NESP over UDP and IPv4, if enabled.
    pub udp: Option<(Ipv4Addr, u16)>,
    /// Address and port of NESP over UDP and IPv6, if enabled.
    pub udp6: Option<(Ipv6Addr, u16)>,
    /// The allowed operations.
    pub allow: NespAllow,
}
