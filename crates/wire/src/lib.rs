//! Frame contents: header views, checksums, and trains of segments.
//!
//! A view is checked once, when it is made, and never panics afterwards, whatever the bytes. Nothing here
//! allocates, except that [`segment`] takes packets from the pool.
#![forbid(unsafe_code)]

mod addresses;
mod arp;
pub mod checksum;
mod discovery;
mod ds_field;
mod ethernet;
mod header;
mod icmp;
mod ipv4;
mod ipv6;
mod malformed;
mod options;
mod payload;
mod too_big;
mod train;
mod transport;
pub mod virtio;

pub use addresses::{Addresses, addresses};
pub use arp::{Arp, arp_message};
pub use checksum::finish_checksum;
pub use discovery::{DISCOVERY_LEN, Discovery, multicast_mac, solicited_node};
pub use ds_field::{Ecn, ds_field, ecn, mark_ce, set_dscp};
pub use ethernet::{Ethernet, ethertype, l3_offset};
pub use header::{Ipv4Header, Ipv6Header, ethernet_header};
pub use icmp::{icmp_kind, icmpv6_kind, is_icmp_error, is_icmpv6_error, unreachable, unreachable_v6};
pub use ipv4::Ipv4;
pub use ipv6::{Ipv6, Ipv6Payload, MAX_EXTENSIONS, Transport};
pub use malformed::Malformed;
pub use options::{HeaderOption, Ipv4Options, Ipv6Options, option_kind};
pub use payload::payload_offset;
pub use too_big::too_big;
pub use train::{TrainError, segment, validate_train};
pub use transport::{Icmp, Tcp, Udp, is_neighbour_discovery, protocol};
