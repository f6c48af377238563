//! Idle flows as a hierarchical bitmap: a bit of a level says whether a word of the level below is non-zero,
//! so that the next idle flow is found in at most four steps.

use longwire_packet::huge_vec;

/// Flows that are idle.
#[derive(Debug)]
pub(crate) struct Idle {
    levels: Vec<Vec<u64>>,
}

impl Idle {
    /// No idle flows among this many.
    pub(crate) fn new(flows: u32) -> Self {
        let (mut levels, mut bits) = (Vec::new(), flows as usize);
        while levels.is_empty() || bits > 1 {
            bits = bits.div_ceil(64);
            let mut words = huge_vec(bits);
            words.resize(bits, 0);
            levels.push(words);
        }
        Self { levels }
    }

    /// Marks a flow as idle.
    #[inline]
    pub(crate) fn add(&mut self, flow: u32) {
        let mut at = flow as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let before = *word;
            *word |= 1 << (at % 64);
            if before != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// A flow is not idle.
    #[inline]
    pub(crate) fn remove(&mut self, flow: u32) {
        let mut at = flow as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The first idle flow from this index on, with wrap-around.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        self.at_or_after(from as usize).or_else(|| self.at_or_after(0))
    }

    fn at_or_after(&self, from: usize) -> Option<u32> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let rest = level.get(at / 64).map_or(0, |word| word & (u64::MAX << (at % 64)));
            if rest != 0 {
                let found = at / 64 * 64 + rest.trailing_zeros() as usize;
                let lower = self.levels[..height].iter().rev();
                return Some(
                    lower.fold(found, |at, level| at * 64 + level[at].trailing_zeros() as usize) as u32
                );
            }
            at = at / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            flows in prop::sample::select(vec![1u32, 5, 64, 65, 4096, 4097, 300_000]),
            steps in prop::collection::vec((any::<u32>(), any::<bool>()), 1..200),
            near in any::<bool>(),
        ) {
            let (mut idle, mut set) = (Idle::new(flows), BTreeSet::new());
            for (flow, add) in steps {
                // Close together, so that words fill and empty, or anywhere.
                let flow = flow % if near { flows.min(130) } else { flows };
                if add {
                    idle.add(flow);
                    set.insert(flow);
                } else {
                    idle.remove(flow);
                    set.remove(&flow);
                }
                for from in [0, flow, (flow + 1) % flows, flows - 1] {
                    let expected = set.range(from..).next().or_else(|| set.first());
                    prop_assert_eq!(idle.next(from), expected.copied());
                }
            }
        }
    }
}
