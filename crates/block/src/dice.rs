//! Named streams of random numbers: each block draws from its own, so that editing one block does not change
//! the draws of others.

/// A stream of 64-bit draws: SplitMix64 with an increment of its own (Steele, Lea & Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014). Sixteen bytes, so that a million links can each have one.
/// The output for a given (seed, name) is frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dice {
    state: u64,
    increment: u64,
}

impl Default for Dice {
    /// A stream for blocks that never draw.
    fn default() -> Self {
        Self::seeded(0)
    }
}

impl Dice {
    /// The stream for `name` (the path of the block, such as `links/up/loss`) under the scenario's `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        Self::named_in_parts(seed, &[name])
    }

    /// The stream whose name consists of these parts, one behind the other.
    pub fn named_in_parts(seed: u64, name: &[&str]) -> Self {
        // FNV-1a over the name, begun from the mixed seed; two finalisers give independent state and
        // increment.
        let mut hash = mix(seed ^ 0xcbf2_9ce4_8422_2325);
        for byte in name.iter().flat_map(|part| part.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let state = mix(hash);
        Self { state, increment: odd_increment(mix(hash ^ 0x9e37_79b9_7f4a_7c15)) }
    }

    /// A stream seeded with a draw from another one.
    pub fn seeded(seed: u64) -> Self {
        Self { state: mix(seed), increment: odd_increment(mix(seed ^ 0x9e37_79b9_7f4a_7c15)) }
    }

    /// The next draw, uniform over all 64-bit values.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(self.increment);
        mix(self.state)
    }

    /// Leaves out the next draw.
    #[inline]
    pub fn skip(&mut self) {
        self.state = self.state.wrapping_add(self.increment);
    }

    /// Takes back the last draws of [`Dice::draw`]: they come again.
    pub fn take_back(&mut self, draws: u32) {
        self.state = self.state.wrapping_sub(self.increment.wrapping_mul(u64::from(draws)));
    }

    /// A draw uniform in `0..bound` (Lemire's multiply-shift with rejection: no bias). Zero if `bound` is
    /// zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.draw()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound.max(1) {
                return (product >> 64) as u64;
            }
        }
    }
}

/// The SplitMix64 finaliser (variant 13 of Stafford's mixers).
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Makes an increment odd, and irregular enough in its bits (at least 24 changes), as the paper prescribes.
const fn odd_increment(z: u64) -> u64 {
    let z = z | 1;
    if (z ^ (z >> 1)).count_ones() < 24 { z ^ 0xaaaa_aaaa_aaaa_aaaa } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_frozen() {
        let mut dice = Dice::named(1, "links/up/loss");
        let draws: Vec<_> = (0..3).map(|_| dice.draw()).collect();
        assert_eq!(draws, FROZEN, "changing the generator changes every recorded run");
    }

    const FROZEN: [u64; 3] = [11208308066298833956, 1478408076278188252, 4035010628321864129];

    #[test]
    fn draws_are_taken_back_and_skipped() {
        let mut dice = Dice::named(1, "a");
        let mut draws = || -> Vec<_> { (0..5).map(|_| dice.draw()).collect() };
        let first = draws();
        dice.take_back(3);
        dice.skip();
        assert_eq!([dice.draw(), dice.draw()], first[3..]);
    }

    #[test]
    fn names_and_seeds_give_unrelated_streams() {
        let mut one = Dice::named(1, "a");
        let mut two = Dice::named(1, "b");
        let mut three = Dice::named(2, "a");
        let same = (0..1000).filter(|_| {
            let (x, y, z) = (one.draw() >> 60, two.draw() >> 60, three.draw() >> 60);
            x == y || y == z
        });
        // Expected 1000 · (1 − (15/16)²) = 121; five standard deviations are 52.
        let same = same.count();
        assert!((70..173).contains(&same), "{same}");
    }

    #[test]
    fn below_is_uniform() {
        let mut dice = Dice::named(7, "below");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[dice.below(10) as usize] += 1;
        }
        // Chi-square with 9 degrees of freedom: 99.99 % below 33.7.
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 33.7, "{chi} {counts:?}");
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.below(1), 0);
    }
}
