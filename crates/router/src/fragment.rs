//! Fragmentation of IPv4 packets (RFC 791, 2.3 and 3.2).

use crate::classify::ETHERNET;
use crate::options::write_checksum;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_wire::{Ipv4, Ipv4Options, ethertype, finish_checksum};

const FIXED: usize = 20;
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// The flag of options that every fragment carries.
const COPIED: u8 = 0x80;

/// The header of the first or of later fragments.
#[derive(Debug, Clone, Copy)]
struct Header {
    bytes: [u8; 60],
    len: usize,
}

impl Core {
    /// Fragments a packet to at most `mtu` bytes, and sends the fragments out of this port. Its Ethernet
    /// addresses are already set.
    pub fn fragment(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        place: u16,
        mtu: u32,
        out: &mut Outbox,
    ) -> Fate {
        // A checksum over all fragments can't be completed once they are apart.
        let (meta, frame) = pool.parts_mut(handle);
        if finish_checksum(meta, frame).is_err() {
            return Fate::Dropped(DropReason::BadFrame);
        }
        let (frame, in_port) = (pool.data(handle), pool.meta(handle).in_port);
        let is_v4 = frame.get(12..ETHERNET) == Some(&ethertype::IPV4.to_be_bytes());
        let Some(ip) = Ipv4::check(&frame[ETHERNET..]).ok().filter(|_| is_v4) else {
            return Fate::Dropped(DropReason::Mtu);
        };
        let (total, header_len) = (usize::from(ip.total_len()), ip.header_len());
        let mtu = mtu as usize;
        let (first, later) = headers(&frame[ETHERNET..ETHERNET + header_len]);
        let field = u16::from_be_bytes([frame[ETHERNET + 6], frame[ETHERNET + 7]]);
        let (begin, more) = (usize::from(field & OFFSET), field & MORE);
        // A fragment that would end beyond the longest packet has no place for its last bytes.
        if begin + (total - header_len) / 8 > usize::from(OFFSET) {
            return Fate::Dropped(DropReason::BadHeader);
        }
        let end = ETHERNET + total;
        let whole = *pool.meta(handle);
        let mut from = ETHERNET + header_len;
        let mut header = first;
        while from < end {
            let left = end - from;
            let most = mtu - header.len;
            let take = if left > most { most & !7 } else { left };
            let Some(piece) = self.make(pool, in_port, ETHERNET + header.len + take, out) else {
                let room = Self::may_make(out);
                return Fate::Dropped(if room { DropReason::PoolFull } else { DropReason::SlowPath });
            };
            pool.meta_mut(piece).take_choices(&whole);
            pool.copy(handle, 0..ETHERNET, piece, 0);
            pool.copy(handle, from..from + take, piece, ETHERNET + header.len);
            let offset = begin + (from - ETHERNET - header_len) / 8;
            let flags = if from + take < end { MORE } else { more };
            let field = flags | offset as u16 & OFFSET;
            write_header(&mut pool.data_mut(piece)[ETHERNET..], &mut header, field);
            self.settle(pool, piece, Fate::Out(place), out);
            (from, header) = (from + take, later);
        }
        Fate::Consumed
    }
}

/// The headers of the first and of later fragments: these carry only options with the copied flag.
fn headers(header: &[u8]) -> (Header, Header) {
    let mut first = Header { bytes: [0; 60], len: header.len() };
    first.bytes[..header.len()].copy_from_slice(header);
    let mut later = first;
    later.len = FIXED;
    let options = &header[FIXED..];
    for option in Ipv4Options::new(options).flatten().filter(|option| option.kind & COPIED != 0) {
        let bytes = &options[option.offset..option.offset + option.len];
        later.bytes[later.len..later.len + option.len].copy_from_slice(bytes);
        later.len += option.len;
    }
    let padded = later.len.next_multiple_of(4);
    later.bytes[later.len..padded].fill(0);
    later.len = padded;
    later.bytes[0] = 0x40 | (padded / 4) as u8;
    (first, later)
}

/// Writes a header before a fragment; `packet` contains both.
fn write_header(packet: &mut [u8], header: &mut Header, field: u16) {
    let total = packet.len() as u16;
    let bytes = &mut header.bytes[..header.len];
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[6..8].copy_from_slice(&field.to_be_bytes());
    write_checksum(bytes);
    packet[..bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::LEAST_MTU;
    use crate::router::{Router, RouterConfig};
    use crate::support::{frame_v4, host_mac, three_ports};
    use longwire_block::Node;
    use longwire_packet::Batch;
    use longwire_wire::checksum::pseudo_v4;
    use std::net::IpAddr;

    /// Of a host that leaves checksums to its interface.
    #[test]
    fn an_open_checksum_is_completed_before_the_packet_is_fragmented() {
        let mut config = RouterConfig { ports: three_ports(), ..RouterConfig::default() };
        config.ports[1].mtu = LEAST_MTU;
        let mut router = Router::new(config).unwrap();
        let (source, destination) = ([10, 0, 0, 9], [10, 0, 1, 9]);
        assert!(router.set_neighbour(20, IpAddr::from(destination), host_mac(1)));
        let ends = [source, destination].map(u32::from_be_bytes);
        let pseudo = pseudo_v4(ends[0], ends[1], 17, 1400);
        let mut udp = vec![7; 1400];
        udp[..6].copy_from_slice(&[3, 232, 0, 53, 5, 120]);
        udp[6..8].copy_from_slice(&pseudo.folded().to_be_bytes());
        let (mut pool, mut out, mut batch) = (Pool::new(1 << 20).unwrap(), Outbox::default(), Batch::new());
        let handle = pool.insert(&frame_v4(source, destination, 64, &udp)).unwrap();
        pool.meta_mut(handle).in_port = 10;
        pool.meta_mut(handle).set_open_checksum(34, 6);
        batch.push(handle);
        router.forward(&mut pool, &batch, &mut out);
        let pieces = out.packets().iter().map(|&(piece, _)| pool.data(piece)[34..].to_vec());
        let pieces: Vec<Vec<u8>> = pieces.collect();
        // 1256 is the largest multiple of 8 after a header of 20.
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [1256, 144]);
        assert_eq!(pseudo.bytes(&pieces.concat()).checksum(), 0);
    }

    #[test]
    fn only_some_options_are_copied() {
        let mut header = [0; 36];
        header[0] = 0x49;
        // Record route, router alert (copied), no-operation, end.
        header[20..32].copy_from_slice(&[7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0, 1]);
        let (first, later) = headers(&header);
        assert_eq!((first.len, later.len), (36, 24));
        assert_eq!((later.bytes[0], &later.bytes[20..24]), (0x46, &[148, 4, 0, 0][..]));
    }
}
