//! The table of bindings of inside to external endpoints: assignment and expiry.

use longwire_block::Dice;
use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// An address with a port, or with an ICMP query identifier, which is treated as a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub address: Ipv4Addr,
    pub port: u16,
    /// 1, 6 or 17.
    pub protocol: u8,
}

/// Limits of bindings.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// The external addresses.
    pub external: Vec<Ipv4Addr>,
    /// The ports of each.
    pub ports: RangeInclusive<u16>,
    /// Bindings altogether.
    pub bindings: usize,
    /// Bindings of an inside host.
    pub each: usize,
}

/// Reason why no binding is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Full {
    /// The host has reached its limit.
    Host,
    /// The table is full.
    Table,
    /// No port of the host's external address is free.
    Ports,
}

/// All bindings.
#[derive(Debug)]
pub(super) struct Table {
    limits: Limits,
    dice: Dice,
    /// By inside endpoint.
    inside: HashMap<Endpoint, InsideBinding>,
    external: HashMap<Endpoint, Endpoint>,
    /// By external address and protocol.
    used: HashMap<(Ipv4Addr, u8), UsedPorts>,
    hosts: HashMap<Ipv4Addr, Host>,
    /// Number of hosts per external address.
    shares: Vec<usize>,
    due: BTreeSet<(u64, Endpoint)>,
}

/// The binding of an inside endpoint.
#[derive(Debug)]
struct InsideBinding {
    external: Endpoint,
    /// The time of the next check for expiry.
    look: u64,
    own: OwnUsage,
}

/// Packets of a binding that were translated here, which the program does not note: out, and back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OwnUsage {
    /// How many.
    pub packets: [u64; 2],
    /// The time of the last, in nanoseconds.
    pub last: [u64; 2],
}

/// An inside host with bindings.
#[derive(Debug)]
struct Host {
    /// Index of its external address, the same for all its bindings (RFC 4787, REQ-2).
    place: usize,
    bindings: usize,
}

/// Ports below are a separate range: a source port is mapped within its range (RFC 4787, REQ-3).
const FIRST_REGISTERED: u16 = 1024;

impl Table {
    pub fn new(limits: Limits, seed: u64) -> Self {
        let shares = vec![0; limits.external.len()];
        Self {
            limits,
            dice: Dice::named(seed, "nat44"),
            inside: HashMap::new(),
            external: HashMap::new(),
            used: HashMap::new(),
            hosts: HashMap::new(),
            shares,
            due: BTreeSet::new(),
        }
    }

    /// The external endpoint of an inside one, whatever the peer (RFC 4787, REQ-1).
    pub fn external(&self, inside: Endpoint) -> Option<Endpoint> {
        self.inside.get(&inside).map(|binding| binding.external)
    }

    /// The inside endpoint of an external one.
    pub fn inside(&self, external: Endpoint) -> Option<Endpoint> {
        self.external.get(&external).copied()
    }

    /// Binds an inside endpoint that is not yet bound; `look` is the time of its first check for expiry.
    ///
    /// # Errors
    /// The exhausted resource.
    pub fn bind(&mut self, inside: Endpoint, look: u64) -> Result<Endpoint, Full> {
        let has = self.hosts.get(&inside.address).map_or(0, |host| host.bindings);
        if has >= self.limits.each {
            return Err(Full::Host);
        }
        if self.inside.len() >= self.limits.bindings {
            return Err(Full::Table);
        }
        let place = match self.hosts.get(&inside.address) {
            Some(host) => host.place,
            // The address with the fewest hosts.
            None => {
                let fewest = self.shares.iter().enumerate().min_by_key(|(_, hosts)| **hosts);
                fewest.map_or(0, |(place, _)| place)
            }
        };
        let address = self.limits.external[place];
        let port = self.free_port(address, inside).ok_or(Full::Ports)?;
        let external = Endpoint { address, port, ..inside };
        self.enter(place, inside, external, look);
        Ok(external)
    }

    /// Restores a previous binding. Returns false if it is not allowed.
    pub fn restore(&mut self, inside: Endpoint, external: Endpoint, look: u64) -> bool {
        let place = self.limits.external.iter().position(|&address| address == external.address);
        let Some(place) = place.filter(|_| self.limits.ports.contains(&external.port)) else { return false };
        let host = self.hosts.get(&inside.address);
        let fits = self.inside.len() < self.limits.bindings
            && host.is_none_or(|host| host.place == place && host.bindings < self.limits.each)
            && !self.inside.contains_key(&inside)
            && !self.external.contains_key(&external);
        if fits {
            self.enter(place, inside, external, look);
        }
        fits
    }

    /// Records a binding to the external address at this index.
    fn enter(&mut self, place: usize, inside: Endpoint, external: Endpoint, look: u64) {
        let host = self.hosts.entry(inside.address).or_insert_with(|| {
            self.shares[place] += 1;
            Host { place, bindings: 0 }
        });
        host.bindings += 1;
        self.inside.insert(inside, InsideBinding { external, look, own: OwnUsage::default() });
        self.external.insert(external, inside);
        self.used.entry((external.address, inside.protocol)).or_default().set(external.port, true);
        self.due.insert((look, inside));
    }

    /// Bindings to be checked by this time, the earliest first: inside and external.
    pub fn due(&self, now: u64) -> impl Iterator<Item = (Endpoint, Endpoint)> {
        let due = self.due.iter().take_while(move |(look, _)| *look <= now);
        due.filter_map(|&(_, inside)| Some((inside, self.external(inside)?)))
    }

    /// Reschedules the check of a binding.
    pub fn put_off(&mut self, inside: Endpoint, look: u64) {
        if let Some(binding) = self.inside.get_mut(&inside) {
            self.due.remove(&(binding.look, inside));
            binding.look = look;
            self.due.insert((look, inside));
        }
    }

    /// Notes a packet of a binding that is translated here: `way` is 0 for one from inside, 1 for one back.
    pub fn note(&mut self, inside: Endpoint, way: usize, time: u64) {
        if let Some(InsideBinding { own, .. }) = self.inside.get_mut(&inside) {
            own.packets[way] += 1;
            own.last[way] = own.last[way].max(time);
        }
    }

    /// The packets of a binding that were translated here.
    pub fn own(&self, inside: Endpoint) -> OwnUsage {
        self.inside.get(&inside).map(|binding| binding.own).unwrap_or_default()
    }

    /// Removes a binding, and returns its external endpoint.
    pub fn release(&mut self, inside: Endpoint) -> Option<Endpoint> {
        let InsideBinding { external, look, .. } = self.inside.remove(&inside)?;
        self.due.remove(&(look, inside));
        self.external.remove(&external);
        if let Some(used) = self.used.get_mut(&(external.address, external.protocol)) {
            used.set(external.port, false);
        }
        if let Some(host) = self.hosts.get_mut(&inside.address) {
            host.bindings -= 1;
            if host.bindings == 0 {
                self.shares[host.place] -= 1;
                self.hosts.remove(&inside.address);
            }
        }
        Some(external)
    }

    /// Number of bindings of a protocol.
    pub fn bindings(&self, protocol: u8) -> usize {
        self.inside.keys().filter(|inside| inside.protocol == protocol).count()
    }

    /// Number of inside hosts with bindings.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The inside endpoint's own port if it is free; else one of the same range and parity (RFC 4787, REQ-3
    /// and REQ-4); else any of the same range; else any.
    fn free_port(&mut self, address: Ipv4Addr, inside: Endpoint) -> Option<u16> {
        let all = (*self.limits.ports.start(), *self.limits.ports.end());
        let used = self.used.entry((address, inside.protocol)).or_default();
        // Checked before searching, so that repeated failures are cheap.
        if used.count >= self.limits.ports.len() {
            return None;
        }
        if self.limits.ports.contains(&inside.port) && used.is_free(inside.port) {
            return Some(inside.port);
        }
        let own = if inside.port < FIRST_REGISTERED {
            (all.0, all.1.min(FIRST_REGISTERED - 1))
        } else {
            (all.0.max(FIRST_REGISTERED), all.1)
        };
        let draw = self.dice.draw();
        let even_as_it = if inside.port.is_multiple_of(2) { EVEN } else { !EVEN };
        let find = |range, among| used.free(range, among, draw);
        find(own, even_as_it).or_else(|| find(own, u64::MAX)).or_else(|| find(all, u64::MAX))
    }
}

/// The even ones of 64 ports.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// Assigned ports of an external address, for one protocol.
#[derive(Debug)]
struct UsedPorts {
    words: Box<[u64; 1024]>,
    count: usize,
}

impl Default for UsedPorts {
    fn default() -> Self {
        Self { words: Box::new([0; 1024]), count: 0 }
    }
}

impl UsedPorts {
    fn is_free(&self, port: u16) -> bool {
        self.words[usize::from(port / 64)] >> (port % 64) & 1 == 0
    }

    /// Toggles the mark of a port.
    fn set(&mut self, port: u16, is_used: bool) {
        self.words[usize::from(port / 64)] ^= 1 << (port % 64);
        if is_used { self.count += 1 } else { self.count -= 1 }
    }

    /// A free port from first to last, among those of each 64 with these bits: the next after a random one.
    fn free(&self, (first, last): (u16, u16), among: u64, draw: u64) -> Option<u16> {
        let count = (u64::from(last) + 1).checked_sub(first.into()).filter(|&count| count > 0)?;
        let start = first + (draw % count) as u16;
        self.next(start, last, among).or_else(|| self.next(first, start, among))
    }

    /// The first free port of an inclusive range.
    fn next(&self, first: u16, last: u16, among: u64) -> Option<u16> {
        let (low, high) = (first / 64, last / 64);
        (low..=high).find_map(|word| {
            let mut free = !self.words[usize::from(word)] & among;
            if word == low {
                free &= u64::MAX << (first % 64);
            }
            if word == high {
                free &= u64::MAX >> (63 - last % 64);
            }
            (free != 0).then(|| word * 64 + free.trailing_zeros() as u16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: u8 = 17;

    fn table(external: usize, ports: RangeInclusive<u16>, bindings: usize, each: usize) -> Table {
        let external = (1..=external).map(|last| Ipv4Addr::new(192, 0, 2, last as u8)).collect();
        Table::new(Limits { external, ports, bindings, each }, 1)
    }

    fn inside(host: u8, port: u16) -> Endpoint {
        Endpoint { address: Ipv4Addr::new(10, 0, 0, host), port, protocol: UDP }
    }

    #[test]
    fn ports_are_kept_while_they_are_free() {
        let mut table = table(1, 1024..=65535, 100, 100);
        let first = table.bind(inside(1, 5000), 9).unwrap();
        assert_eq!((first.address, first.port), (Ipv4Addr::new(192, 0, 2, 1), 5000));
        // The same port of another host gets another one, of the same parity.
        let second = table.bind(inside(2, 5000), 9).unwrap();
        assert!(second.port != 5000 && second.port.is_multiple_of(2) && second.port >= 1024, "{second:?}");
        let odd = [1, 2].map(|host| table.bind(inside(host, 5001), 9).unwrap().port % 2);
        assert_eq!(odd, [1, 1]);
        // Another protocol's is its own.
        let tcp = table.bind(Endpoint { protocol: 6, ..inside(2, 5000) }, 9).unwrap();
        assert_eq!(tcp.port, 5000);
        assert_eq!(table.inside(second), Some(inside(2, 5000)));
        assert_eq!(table.external(inside(2, 5000)), Some(second));
        assert_eq!((table.bindings(UDP), table.bindings(6), table.hosts()), (4, 1, 2));
    }

    #[test]
    fn low_ports_stay_low_where_there_are_some() {
        let mut table = table(1, 1000..=1030, 100, 100);
        let port = table.bind(inside(1, 53), 9).unwrap().port;
        assert!((1000..1024).contains(&port) && port % 2 == 1, "{port}");
        let port = table.bind(inside(1, 5000), 9).unwrap().port;
        assert!((1024..=1030).contains(&port) && port.is_multiple_of(2), "{port}");
        // If they are empty, other ranges are used.
        let mut table = self::table(1, 2000..=2001, 100, 100);
        let ports = [table.bind(inside(1, 53), 9), table.bind(inside(1, 55), 9)].map(|it| it.unwrap().port);
        assert!(ports == [2000, 2001] || ports == [2001, 2000], "{ports:?}");
        assert_eq!(table.bind(inside(1, 57), 9), Err(Full::Ports));
    }

    #[test]
    fn every_port_is_given_before_there_are_none() {
        let mut table = table(1, 60_000..=65_535, 10_000, 10_000);
        for port in 0..5536 {
            table.bind(inside(1, port), 9).unwrap_or_else(|full| panic!("{port}: {full:?}"));
        }
        assert_eq!(table.bind(inside(1, 6000), 9), Err(Full::Ports));
        assert_eq!(table.external.len(), 5536, "none is given twice");
        let freed = table.release(inside(1, 7)).unwrap();
        assert_eq!(table.bind(inside(1, 6000), 9), Ok(Endpoint { port: freed.port, ..freed }));
    }

    #[test]
    fn free_ports_are_those_that_a_look_at_each_finds() {
        let mut dice = Dice::named(1, "used ports");
        for range in [(1u16, 1u16), (0, 63), (63, 64), (60, 200), (1000, 1023), (65_500, 65_535), (1, 65_535)]
        {
            let mut used = UsedPorts::default();
            let ports = || range.0..=range.1;
            // All but a few.
            let free: Vec<u16> = ports().filter(|_| dice.draw().is_multiple_of(50)).collect();
            ports().filter(|port| !free.contains(port)).for_each(|port| used.set(port, true));
            assert_eq!(used.count, ports().len() - free.len());
            for _ in 0..100 {
                let draw = dice.draw();
                let count = ports().len() as u64;
                let turned = (0..count).map(|step| range.0 + ((draw % count + step) % count) as u16);
                for (among, odd) in [(u64::MAX, None), (EVEN, Some(0)), (!EVEN, Some(1))] {
                    let mut wanted = turned.clone().filter(|port| odd.is_none_or(|odd| port % 2 == odd));
                    let wanted = wanted.find(|port| free.contains(port));
                    assert_eq!(used.free(range, among, draw), wanted, "{range:?} {draw}");
                }
            }
        }
        assert_eq!(UsedPorts::default().free((1024, 1023), u64::MAX, 9), None, "an empty range");
    }

    #[test]
    fn who_asks_in_vain_costs_nothing() {
        let mut table = table(2, 1024..=31_767, 32_768, 32_768);
        for port in 1024..=31_767 {
            table.bind(inside(1, port), 9).unwrap();
        }
        // That many searches over 30744 ports would take half an hour.
        for round in 0..1_000_000u32 {
            assert_eq!(table.bind(inside(1, 32_000 + (round % 1000) as u16), 9), Err(Full::Ports));
        }
        // Another host has the other address, and another protocol its own ports.
        assert!(table.bind(inside(2, 32_000), 9).is_ok());
        assert!(table.bind(Endpoint { protocol: 6, ..inside(1, 32_000) }, 9).is_ok());
        let freed = table.release(inside(1, 7000)).unwrap();
        assert_eq!(table.bind(inside(1, 32_000), 9).map(|it| it.port), Ok(freed.port));
    }

    #[test]
    fn hosts_are_limited_and_keep_their_address() {
        let mut table = table(2, 1024..=65535, 5, 2);
        let addresses: Vec<_> = [(1, 2000), (2, 2000), (1, 2001), (2, 2001)]
            .map(|(host, port)| table.bind(inside(host, port), 9).unwrap().address.octets()[3])
            .into();
        assert_eq!(addresses, [1, 2, 1, 2]);
        assert_eq!(table.bind(inside(1, 2002), 9), Err(Full::Host));
        table.bind(inside(3, 2000), 9).unwrap();
        assert_eq!(table.bind(inside(4, 2000), 9), Err(Full::Table));
        // A host without bindings is not counted.
        for port in [2000, 2001] {
            table.release(inside(1, port)).unwrap();
        }
        assert_eq!((table.hosts(), table.release(inside(1, 2000))), (2, None));
        assert_eq!(table.shares.iter().sum::<usize>(), 2);
    }

    #[test]
    fn bindings_are_restored_as_far_as_they_may_be() {
        let mut table = table(2, 2000..=2999, 5, 2);
        let outside = |last: u8, port| Endpoint { address: [192, 0, 2, last].into(), port, protocol: UDP };
        for (host, port, external, is_restored) in [
            (1, 7, outside(2, 2000), true),
            (1, 8, outside(2, 3000), false),
            (1, 8, outside(1, 2001), false),
            (1, 8, outside(3, 2001), false),
            (1, 7, outside(2, 2001), false),
            (1, 8, outside(2, 2000), false),
            (1, 8, outside(2, 2001), true),
            (1, 9, outside(2, 2002), false),
            (2, 7, outside(1, 2001), true),
            (3, 7, outside(1, 2002), true),
            (4, 7, outside(1, 2003), true),
            (5, 7, outside(1, 2004), false),
        ] {
            assert_eq!(table.restore(inside(host, port), external, 9), is_restored, "{host} {port}");
        }
        assert_eq!((table.bindings(UDP), table.hosts(), table.due(9).count()), (5, 4, 5));
        assert_eq!(table.external(inside(1, 8)), Some(outside(2, 2001)));
        // Their ports are in use, and free after they end.
        table.release(inside(2, 7));
        assert_eq!(table.bind(inside(2, 2002), 9).map(|it| it.address), Ok([192, 0, 2, 2].into()));
    }

    #[test]
    fn those_that_are_due_come_first() {
        let mut table = table(1, 1024..=65535, 100, 100);
        for (port, look) in [(2000, 50), (2001, 30), (2002, 40)] {
            table.bind(inside(1, port), look).unwrap();
        }
        let due = |table: &Table, now| table.due(now).map(|(inside, _)| inside.port).collect::<Vec<_>>();
        assert_eq!(
            (due(&table, 29), due(&table, 30), due(&table, 49)),
            (vec![], vec![2001], vec![2001, 2002])
        );
        table.put_off(inside(1, 2001), 60);
        assert_eq!(due(&table, 100), [2002, 2000, 2001]);
        table.release(inside(1, 2002));
        assert_eq!(due(&table, 100), [2000, 2001]);
    }
}
