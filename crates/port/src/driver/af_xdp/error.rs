//! Errors of AF_XDP ports.

use crate::interface::OpenError;
use thiserror::Error;

/// Why an AF_XDP port can't be opened; the message says what to do.
#[derive(Debug, Error)]
pub enum AfXdpError {
    /// The interface can't be used by any driver.
    #[error(transparent)]
    Interface(#[from] OpenError),
    /// The ring's size is not a power of two in range.
    #[error("interface {name}: ring is {ring}; it must be a power of two from 64 to 32768")]
    Ring {
        /// The interface.
        name: String,
        /// The request.
        ring: u32,
    },
    /// The MTU is too large.
    #[error(
        "interface {name}: its MTU is {mtu}, but AF_XDP carries at most {max}: ip link set {name} mtu {max}"
    )]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// The largest possible MTU.
        max: u32,
    },
    /// The other end of a veth pair has a larger MTU than XDP allows.
    #[error(
        "interface {name}: the MTU of its other end is above {max}: set that to {max} or less (ip link set … \
         mtu)"
    )]
    FarMtu {
        /// The interface.
        name: String,
        /// The largest possible MTU.
        max: u32,
    },
    /// Another XDP program is attached.
    #[error(
        "interface {name}: another XDP program is attached; if it is not needed: ip link set {name} xdp off"
    )]
    Occupied {
        /// The interface.
        name: String,
    },
    /// The other end of a veth pair can't be reached.
    #[error(
        "interface {name}: the other end of this veth pair is in another network namespace, so its checksum \
         offload can't be turned off from here, and frames would come in with their checksums open; use \
         driver = \"af_packet\", which finishes them"
    )]
    FarEnd {
        /// The interface.
        name: String,
    },
    /// It has fewer queues than the requested ports.
    #[error(
        "interface {name}: queues = {ports}, but it has {receive} to receive and {transmit} to transmit; \
         give it more (ethtool -L {name} combined {ports}, or rx {ports} tx {ports}), or write fewer queues"
    )]
    Queues {
        /// The interface.
        name: String,
        /// Requested number of ports.
        ports: u32,
        /// Its receive queues.
        receive: u32,
        /// Its transmit queues.
        transmit: u32,
    },
}
