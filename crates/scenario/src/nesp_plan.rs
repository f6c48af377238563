//! Access to settings by frames.

use crate::words::NespAllow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Section `[nesp]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nesp {
    /// The file with the shared key; it was there and in order when the scenario was read.
    pub key_file: PathBuf,
    /// Places of the ports that allow it.
    pub ports: Vec<u16>,
    /// The address and port of the UDP form over IPv4, if it is on.
    pub udp: Option<(Ipv4Addr, u16)>,
    /// The address and port of the UDP form over IPv6, if it is on.
    pub udp6: Option<(Ipv6Addr, u16)>,
    /// The allowed operations.
    pub allow: NespAllow,
}
