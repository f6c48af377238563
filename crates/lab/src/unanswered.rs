//! Flows of datagrams that nobody has answered (linux/netfilter/nfnetlink_conntrack.h). The kernel translates
//! what a flow begins with, so one that began before there was a redirection does not follow it.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use longwire_netlink::{Message, Socket, attribute, u32_at};

/// `NFNL_SUBSYS_CTNETLINK`.
const SUBSYSTEM: u16 = 1;
const GET: u16 = 1;
const DELETE: u16 = 2;

/// Attributes of a flow, of its tuple, of the tuple's addresses and of its ports.
const TUPLE: u16 = 1;
const STATUS: u16 = 3;
const ADDRESSES: u16 = 1;
const PORTS: u16 = 2;
const V4_DESTINATION: u16 = 2;
const V6_DESTINATION: u16 = 4;
const PROTOCOL: u16 = 1;
const DESTINATION_PORT: u16 = 3;

/// `IPS_SEEN_REPLY` and `IPS_DST_NAT`.
const ANSWERED_OR_TRANSLATED: u32 = 1 << 1 | 1 << 5;

/// Makes the kernel forget flows to these ports of the loopback that have neither been answered nor are
/// translated, in the calling thread's namespace: their next datagram begins a flow.
pub fn forget_unanswered(ports: &BTreeSet<u16>) -> io::Result<()> {
    let socket = Socket::netfilter()?;
    let mut requests = Vec::new();
    socket.dump(message(GET, libc::AF_UNSPEC as u8), |_, body| requests.extend(forgetting(body, ports)))?;
    // One may have ended.
    socket.requests(requests).map(drop)
}

/// The request that removes a flow, if it is such a one.
fn forgetting(body: &[u8], ports: &BTreeSet<u16>) -> Option<Message> {
    // `struct nfgenmsg` is first, with the family.
    let (&family, flow) = (body.first()?, body.get(4..)?);
    let tuple = attribute(flow, TUPLE)?;
    let (addresses, own) = (attribute(tuple, ADDRESSES)?, attribute(tuple, PORTS)?);
    let to_loopback = attribute(addresses, V4_DESTINATION) == Some(&Ipv4Addr::LOCALHOST.octets())
        || attribute(addresses, V6_DESTINATION) == Some(&Ipv6Addr::LOCALHOST.octets());
    let is_udp = attribute(own, PROTOCOL) == Some(&[libc::IPPROTO_UDP as u8]);
    let port = u16::from_be_bytes(attribute(own, DESTINATION_PORT)?.try_into().ok()?);
    let status = u32::from_be(u32_at(attribute(flow, STATUS)?, 0)?);
    let is_stale = to_loopback && is_udp && ports.contains(&port) && status & ANSWERED_OR_TRANSLATED == 0;
    is_stale.then(|| {
        let mut m = message(DELETE, family);
        m.attribute(TUPLE, tuple);
        m
    })
}

fn message(kind: u16, family: u8) -> Message {
    let mut m = Message::new(SUBSYSTEM << 8 | kind, 0);
    m.bytes(&[family, 0, 0, 0]);
    m
}
