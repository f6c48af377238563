//! Memory latency.

use longwire_block::Dice;
use std::hint::black_box;
use std::time::Instant;

/// A cache line with the index of the next one.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(u32);

/// A walk through memory in random order, in which each line names the next.
pub struct Walk {
    lines: Vec<Line>,
    at: u32,
}

impl Walk {
    /// Through this many bytes, at least 128.
    pub fn new(bytes: usize) -> Self {
        let count = (bytes / size_of::<Line>()).clamp(2, u32::MAX as usize);
        let mut dice = Dice::named(1, "bench/latency");
        let mut order: Vec<u32> = (0..count as u32).collect();
        // A single cycle through all lines (Sattolo's algorithm).
        for at in (1..count).rev() {
            order.swap(at, dice.below(at as u64) as usize);
        }
        Self { lines: order.into_iter().map(Line).collect(), at: 0 }
    }

    /// Takes this many steps.
    #[inline]
    pub fn go(&mut self, steps: usize) {
        for _ in 0..steps {
            self.at = self.lines[self.at as usize].0;
        }
        black_box(self.at);
    }
}

/// Latency of dependent reads from this many bytes of memory, in nanoseconds.
pub fn latency(bytes: usize) -> f64 {
    const STEPS: usize = 2_000;
    let mut walk = Walk::new(bytes);
    walk.go(walk.lines.len().min(40 * STEPS));
    steps(STEPS, || walk.go(STEPS))
}

/// Nanoseconds of each of the `count` steps that `go` takes: the 10th percentile over rounds shorter than a
/// time slice, because most others may have been interrupted.
pub fn steps(count: usize, mut go: impl FnMut()) -> f64 {
    const ROUNDS: usize = 301;
    let rounds = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        go();
        begin.elapsed().as_nanos() as f64 / count as f64
    });
    rounds.collect::<crate::Sample>().quantile(0.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_meets_every_line_once() {
        let mut walk = Walk::new(64 * 100);
        let mut met = [false; 100];
        for _ in 0..100 {
            walk.go(1);
            assert!(!std::mem::replace(&mut met[walk.at as usize], true));
        }
        assert_eq!(walk.at, 0);
    }

    #[test]
    fn reads_take_time() {
        assert!(latency(1 << 12) > 0.0);
    }
}
