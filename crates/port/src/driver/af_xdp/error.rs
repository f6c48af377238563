//! Why AF_XDP can't be had.

use crate::interface::OpenError;
use thiserror::Error;

/// Why an AF_XDP port can't be opened, and what to do about it.
#[derive(Debug, Error)]
pub enum AfXdpError {
    /// The interface can't be used, by this driver or any.
    #[error(transparent)]
    Interface(#[from] OpenError),
    /// The ring is no power of two in range.
    #[error("interface {name}: ring is {ring}; it must be a power of two from 64 to 32768")]
    Ring {
        /// The interface.
        name: String,
        /// The request.
        ring: u32,
    },
    /// Its frames would not fit.
    #[error(
        "interface {name}: its MTU is {mtu}, but AF_XDP carries at most {max}: ip link set {name} mtu {max}"
    )]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// The highest that fits.
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
        /// The highest that fits.
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
    /// It has not as many queues as there are to be ports.
    #[error(
        "interface {name}: queues = {ports}, but it has {receive} to receive and {transmit} to transmit; \
         give it more (ethtool -L {name} combined {ports}, or rx {ports} tx {ports}), or write fewer queues"
    )]
    Queues {
        /// The interface.
        name: String,
        /// How many ports it is to have.
        ports: u32,
        /// Its receive queues.
        receive: u32,
        /// Its transmit queues.
        transmit: u32,
    },
}
