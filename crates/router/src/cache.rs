//! The route cache: recent destinations with their next hops, four-way set-associative.

use crate::prefix::{Address, HopId};
use longwire_packet::prefetch;

const WAYS: usize = 4;

/// Addresses whose next hops can be cached.
pub trait CachedAddress: Address + Into<u128> {
    /// A set of four entries.
    type Set: Set<Self>;
}

/// A set of four destinations with their next hops, each with its generation; 0 for never.
pub trait Set<A>: Copy + Default {
    /// The next hop of a destination learned in this generation; 0 if there is none.
    fn find(&self, destination: A, generation: u16) -> u16;

    /// An entry of another generation, if any.
    fn old(&self, generation: u16) -> Option<usize>;

    /// Writes an entry.
    fn put(&mut self, way: usize, destination: A, generation: u16, hop: u16);
}

/// For IPv4, half a cache line: destination, generation and next hop of each entry, from the highest bits
/// down.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
pub struct SetV4([u64; WAYS]);

impl CachedAddress for u32 {
    type Set = SetV4;
}

impl Set<u32> for SetV4 {
    #[inline]
    fn find(&self, destination: u32, generation: u16) -> u16 {
        // XOR leaves only the next hop of a matching entry, which is less than any other entry.
        let wanted = u64::from(destination) << 32 | u64::from(generation) << 16;
        let [a, b, c, d] = self.0;
        let least = (a ^ wanted).min(b ^ wanted).min((c ^ wanted).min(d ^ wanted));
        u16::try_from(least).unwrap_or(0)
    }

    fn old(&self, generation: u16) -> Option<usize> {
        self.0.iter().position(|entry| (entry >> 16) as u16 != generation)
    }

    #[inline]
    fn put(&mut self, way: usize, destination: u32, generation: u16, hop: u16) {
        self.0[way] = u64::from(destination) << 32 | u64::from(generation) << 16 | u64::from(hop);
    }
}

/// For IPv6.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(32))]
pub struct SetV6 {
    destinations: [u128; WAYS],
    generations: [u16; WAYS],
    hops: [u16; WAYS],
}

impl CachedAddress for u128 {
    type Set = SetV6;
}

impl Set<u128> for SetV6 {
    #[inline]
    fn find(&self, destination: u128, generation: u16) -> u16 {
        let mut hop = 0;
        for way in 0..WAYS {
            let same = self.destinations[way] == destination && self.generations[way] == generation;
            hop = if same { self.hops[way] } else { hop };
        }
        hop
    }

    fn old(&self, generation: u16) -> Option<usize> {
        self.generations.iter().position(|&other| other != generation)
    }

    #[inline]
    fn put(&mut self, way: usize, destination: u128, generation: u16, hop: u16) {
        self.destinations[way] = destination;
        self.generations[way] = generation;
        self.hops[way] = hop;
    }
}

/// Destinations with their next hops. All valid entries are of one generation; a route change begins a new
/// one.
#[derive(Debug)]
pub struct Cache<A: CachedAddress> {
    sets: Box<[A::Set]>,
    shift: u32,
    generation: u16,
    /// The way of a full set to evict next.
    turn: usize,
    hits: u64,
    misses: u64,
}

impl<A: CachedAddress> Cache<A> {
    /// A cache for about `destinations` entries, rounded up to a power of two, at least 8.
    pub fn new(destinations: usize) -> Self {
        let sets = destinations.div_ceil(WAYS).max(2).next_power_of_two();
        Self {
            sets: vec![A::Set::default(); sets].into(),
            shift: u64::BITS - sets.trailing_zeros(),
            generation: 1,
            turn: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// The next hop of `destination`, if cached. Counted as a hit or a miss.
    #[inline]
    pub fn find(&mut self, destination: A) -> Option<HopId> {
        let hop = self.peek(destination);
        match hop {
            Some(_) => self.count_hit(),
            None => self.misses += 1,
        }
        hop
    }

    /// The next hop of `destination`, if cached; not counted.
    #[inline]
    pub fn peek(&self, destination: A) -> Option<HopId> {
        HopId::from_raw(self.sets[self.home(destination)].find(destination, self.generation))
    }

    /// Adds a destination that is not cached.
    #[inline]
    pub fn insert(&mut self, destination: A, hop: HopId) {
        let home = self.home(destination);
        let set = &mut self.sets[home];
        let way = set.old(self.generation).unwrap_or_else(|| {
            self.turn = (self.turn + 1) % WAYS;
            self.turn
        });
        set.put(way, destination, self.generation, hop.0.get());
    }

    /// Clears the cache after a route change. Takes constant time, except once in 65535 times.
    pub fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.sets.fill(A::Set::default());
            self.generation = 1;
        }
    }

    /// Prefetches the set of `destination`.
    #[inline]
    pub fn prefetch(&self, destination: A) {
        prefetch(&self.sets[self.home(destination)]);
    }

    /// Counts a hit found by [`Cache::peek`].
    #[inline]
    pub fn count_hit(&mut self) {
        self.hits += 1;
    }

    /// Number of misses. While it does not change, nothing was added or evicted.
    #[inline]
    pub const fn misses(&self) -> u64 {
        self.misses
    }

    /// Numbers of hits and misses.
    pub const fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Fibonacci hashing (Knuth, vol. 3, 6.4).
    #[inline]
    fn home(&self, destination: A) -> usize {
        let wide: u128 = destination.into();
        let folded = (wide as u64) ^ ((wide >> 64) as u64).rotate_left(29);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u16) -> HopId {
        HopId::from_raw(number).unwrap()
    }

    #[test]
    fn knows_what_it_learnt_until_a_route_changes() {
        let mut cache = Cache::<u32>::new(64);
        assert_eq!(cache.find(0), None);
        for destination in 0..16u32 {
            cache.insert(destination, id(destination as u16 + 1));
        }
        assert_eq!((cache.find(7), cache.find(16)), (Some(id(8)), None));
        assert_eq!(cache.hits_and_misses(), (1, 2));
        cache.forget();
        assert!((0..16).all(|destination| cache.find(destination).is_none()));
        assert_eq!(cache.hits_and_misses(), (1, 18));
    }

    #[test]
    fn a_full_set_gives_up_one_of_four() {
        let mut cache = Cache::<u128>::new(8);
        let crowded: Vec<_> = (0..100u128).filter(|&address| cache.home(address) == 1).take(5).collect();
        for &address in &crowded {
            cache.insert(address, id(9));
        }
        assert_eq!(crowded.iter().filter(|&&address| cache.peek(address).is_some()).count(), 4);
        assert_eq!(cache.peek(crowded[4]), Some(id(9)));
    }

    #[test]
    fn generations_come_round_without_a_ghost() {
        let mut cache = Cache::<u32>::new(8);
        cache.insert(5, id(1));
        for round in 0..1 << 17 {
            cache.forget();
            assert_eq!(cache.peek(5), None, "{round}");
        }
    }
}
