//! Selection of a packet's path: by its addresses, else by its input and output ports.

mod table;

use longwire_block::path::DIRECT;
use longwire_packet::{AHEAD, Batch, FirstLine, Handle, Meta, Pool};
use longwire_wire::Addresses;
use table::{Key, Table};

/// Summary of a batch of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSummary {
    /// All their flags, or-ed together.
    pub flags: u8,
    /// The largest `Meta::out_port`: it reveals whether their node has decided anything other than a port for
    /// one of them.
    pub last_port: u16,
}

/// Chooses packets' paths. Built once from the plan; every worker that receives packets has one.
///
/// Lookups are exact matches: (source, destination) over IPv4 or IPv6, then (in port, out port). ARP,
/// neighbour discovery, non-IP and VLAN-tagged frames take the port pair's path; packets without a match
/// cross unimpaired.
#[derive(Debug)]
pub struct Classifier {
    v4: Table<u64>,
    v6: Table<(u128, u128)>,
    ports: Table<u64>,
}

impl Classifier {
    /// A classifier of these rules: addresses or ports to paths (see `block::path`). Of rules with the same
    /// key the first wins.
    pub fn new(v4: &[((u32, u32), u32)], v6: &[((u128, u128), u32)], ports: &[((u16, u16), u32)]) -> Self {
        Self {
            v4: Table::new(v4, |&((source, destination), path)| (v4_key(source, destination), path)),
            v6: Table::new(v6, |pair| *pair),
            ports: Table::new(ports, |&((from, to), path)| (port_key(from, to), path)),
        }
    }

    /// Sets `Meta::path` of every packet of `batch` from its bytes, `in_port` and `out_port`, and returns a
    /// summary. The path of a packet for no single port has no meaning then.
    pub fn classify(&self, pool: &mut Pool, batch: &Batch) -> BatchSummary {
        let (handles, large) = (batch.as_slice(), self.v4.is_large());
        if large {
            handles.iter().take(AHEAD).for_each(|&handle| self.fetch(pool, handle));
        }
        let mut among = BatchSummary { flags: 0, last_port: 0 };
        for (at, &handle) in handles.iter().enumerate() {
            if large && let Some(&soon) = handles.get(at + AHEAD) {
                self.fetch(pool, soon);
            }
            let (meta, line) = pool.head_mut(handle);
            among.flags |= meta.flags;
            among.last_port = among.last_port.max(meta.out_port);
            match plain_v4(meta, line) {
                None if self.has_addresses() => self.classify_other(pool, handle),
                key => self.take_path(meta, key),
            }
        }
        among
    }

    /// Prefetches the bucket of a packet to be looked up.
    #[inline]
    fn fetch(&self, pool: &mut Pool, handle: Handle) {
        let (meta, line) = pool.head_mut(handle);
        if let Some(key) = plain_v4(meta, line) {
            self.v4.prefetch(self.v4.home(key));
        }
    }

    /// Whether address lookups may have to wait for memory.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.v4.is_large()
    }

    /// The home and key of a plain IPv4 packet that begins with this line ([`Classifier::find_plain`]).
    #[inline(always)]
    pub fn home_of_plain(&self, line: &FirstLine) -> (usize, u64) {
        let key = v4_key_of(line);
        (self.v4.home(key), key)
    }

    /// Prefetches the bucket of such a home.
    #[inline(always)]
    pub fn prefetch_plain(&self, (home, _): (usize, u64)) {
        self.v4.prefetch(home);
    }

    /// The path of a plain IPv4 packet, if selected by its addresses.
    #[inline(always)]
    pub fn find_plain(&self, (home, key): (usize, u64)) -> Option<u32> {
        self.v4.find_from(home, key)
    }

    /// Classifies one packet, such as a copy of a flooded one with another `out_port`.
    #[inline]
    pub fn classify_one(&self, pool: &mut Pool, handle: Handle) {
        let (meta, line) = pool.head_mut(handle);
        match plain_v4(meta, line) {
            None if self.has_addresses() => self.classify_other(pool, handle),
            key => self.take_path(meta, key),
        }
    }

    /// Sets the path of a plain IPv4 packet, which has a key, or where no addresses select a path.
    #[inline]
    fn take_path(&self, meta: &mut Meta, key: Option<u64>) {
        let known = key.and_then(|key| self.v4.find(key));
        meta.path = known.unwrap_or_else(|| self.path_by_ports(meta.in_port, meta.out_port));
    }

    /// Classifies a packet other than plain IPv4.
    #[inline(never)]
    fn classify_other(&self, pool: &mut Pool, handle: Handle) {
        let known = self.by_addresses(&longwire_wire::addresses(pool.data(handle)));
        let meta = pool.meta_mut(handle);
        meta.path = known.unwrap_or_else(|| self.path_by_ports(meta.in_port, meta.out_port));
    }

    /// Whether the packet's addresses select its path, wherever it goes.
    pub fn is_by_addresses(&self, pool: &Pool, handle: Handle) -> bool {
        self.has_addresses() && self.by_addresses(&longwire_wire::addresses(pool.data(handle))).is_some()
    }

    /// Whether any addresses select a path.
    #[inline]
    pub fn has_addresses(&self) -> bool {
        !self.v4.is_empty() || !self.v6.is_empty()
    }

    /// The path from a port to another, or back to itself, regardless of addresses.
    #[inline]
    pub fn path_by_ports(&self, from: u16, to: u16) -> u32 {
        self.ports.find(port_key(from, to)).unwrap_or(DIRECT)
    }

    /// Bytes of memory that the tables take.
    pub fn memory_bytes(&self) -> usize {
        self.v4.memory_bytes() + self.v6.memory_bytes() + self.ports.memory_bytes()
    }

    #[inline]
    fn by_addresses(&self, addresses: &Addresses) -> Option<u32> {
        match *addresses {
            Addresses::V4 { source, destination } => self.v4.find(v4_key(source, destination)),
            Addresses::V6 { source, destination } => self.v6.find((source, destination)),
            Addresses::Other => None,
        }
    }
}

/// The hash of a pair of IPv4 addresses, source above destination: for measurements.
#[inline]
pub fn hash_v4_key(key: u64) -> u64 {
    key.hash()
}

/// The key of an IPv4 packet without VLAN tags and options, the usual case: equivalent to
/// [`longwire_wire::addresses`].
#[inline]
pub fn plain_v4(meta: &Meta, line: &FirstLine) -> Option<u64> {
    let [_, _, _, _, _, _, _, _, _, _, _, _, 8, 0, 0x45, ..] = line else { return None };
    (meta.len >= PLAIN_LEN).then(|| v4_key_of(line))
}

/// Minimum length for [`plain_v4`]: the end of the addresses.
pub const PLAIN_LEN: u32 = 34;

/// The addresses of a plain IPv4 packet as its key.
#[inline(always)]
fn v4_key_of(line: &FirstLine) -> u64 {
    line[26..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[inline]
const fn v4_key(source: u32, destination: u32) -> u64 {
    (source as u64) << 32 | destination as u64
}

#[inline]
const fn port_key(from: u16, to: u16) -> u64 {
    (from as u64) << 16 | to as u64
}
