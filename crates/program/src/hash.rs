//! The hash of maps and `lw_hash`: the same on every machine, and different for every seed.

/// A 64-bit hash of `bytes`: each eight are multiplied into the state, 64 × 64 to 128 bits, and the halves
/// combined.
///
/// Not for secrets. With a seed unknown to senders, they can't produce collisions.
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut state = seed ^ FIRST;
    for chunk in chunks {
        state = fold(state ^ u64::from_le_bytes(*chunk), MULTIPLIER);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = fold(state ^ u64::from_le_bytes(last), MULTIPLIER);
    fold(state ^ bytes.len() as u64, SECOND)
}

// Digits of π, odd: nothing up the sleeve.
const FIRST: u64 = 0x243f_6a88_85a3_08d3;
const SECOND: u64 = 0x1319_8a2e_0370_7345;
const MULTIPLIER: u64 = 0xa409_3822_299f_31d1;

/// The two halves of a 128-bit product, combined.
#[inline]
pub fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn near_inputs_are_far_apart() {
        // 2 × 64 bits of 16-byte inputs flipped one at a time: each changes 32 ± 4σ of 64 bits, σ = 4.
        let base = hash(1, &[0; 16]);
        for bit in 0..128 {
            let mut bytes = [0; 16];
            bytes[bit / 8] = 1 << (bit % 8);
            let changed = (hash(1, &bytes) ^ base).count_ones();
            assert!((16..=48).contains(&changed), "bit {bit}: {changed}");
        }
    }

    #[test]
    fn lengths_and_seeds_count() {
        let mut seen = HashSet::new();
        for seed in 0..4 {
            for length in 0..20 {
                assert!(seen.insert(hash(seed, &vec![0; length])), "{seed} {length}");
            }
        }
    }
}
