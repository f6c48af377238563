//! The built-in shapes.

use super::table::doubled_sum;
use super::{SHAPE_BITS, Shape};
use crate::math::{exp, ln, pow};
use std::sync::{Arc, OnceLock};

pub(super) const NAMES: [&str; 7] =
    ["uniform", "normal", "pareto", "pareto-normal", "exponential", "log-normal", "gamma"];

const CELLS: usize = 4096;
const HALF: usize = CELLS / 2;

/// 1/√(2π).
const NORMAL_PEAK: f64 = 0.398_942_280_401_432_7;

pub(super) fn shape(name: &str) -> Option<Arc<Shape>> {
    NAMES.iter().position(|known| *known == name).map(made)
}

/// The shape at that index in [`NAMES`].
fn made(index: usize) -> Arc<Shape> {
    static MADE: [OnceLock<Arc<Shape>>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    Arc::clone(MADE[index].get_or_init(|| Arc::new(Shape::of_knots(knots(NAMES[index])))))
}

/// Shifts the knots (in integers) so that the table's mean is exactly 0. The remainder of a common shift,
/// less than one unit each, is compensated by lowering the lowest knots by one unit, and the very lowest by
/// at most two.
pub(super) fn center(knots: &mut [i64]) {
    let cells = knots.len() as i128 - 1;
    let shift = doubled_sum(knots.iter().copied()).div_euclid(2 * cells) as i64;
    knots.iter_mut().for_each(|knot| *knot -= shift);
    // From 0 to 2·cells − 1: a knot at an end has weight one, the others two. Lowering a prefix keeps the
    // order.
    let over = doubled_sum(knots.iter().copied()) as usize;
    if over > 0 {
        let first = 2 - over % 2;
        knots[0] -= first as i64;
        knots[1..][..(over - first) / 2].iter_mut().for_each(|knot| *knot -= 1);
    }
}

/// The knots of a shape, in 2⁻²²nds of a deviation, with mean 0.
fn knots(name: &str) -> Vec<i64> {
    match name {
        "uniform" => vec![-(1 << SHAPE_BITS), 1 << SHAPE_BITS],
        "normal" => fixed(&normal()),
        "pareto" => centered(&pareto()),
        "pareto-normal" => {
            let both = normal().into_iter().zip(pareto());
            centered(&both.map(|(z, x)| 0.25 * z + 0.75 * x).collect::<Vec<_>>())
        }
        "exponential" => with_tail(exponential(|t| t - 1.0)),
        "log-normal" => with_tail(log_normal()),
        _ => with_tail(exponential(gamma)),
    }
}

/// Rounded to the knots' unit.
fn fixed(knots: &[f64]) -> Vec<i64> {
    knots.iter().map(|x| (x * f64::from(1 << SHAPE_BITS)).round() as i64).collect()
}

fn centered(knots: &[f64]) -> Vec<i64> {
    let mut knots = fixed(knots);
    center(&mut knots);
    knots
}

/// Adds the last knot, so that the mean is 0. The lines lie slightly above a convex quantile function, which
/// this knot compensates.
fn with_tail(knots: Vec<f64>) -> Vec<i64> {
    let mut knots = fixed(&knots);
    // The last one has full weight, because it gets a successor.
    let sum = doubled_sum(knots.iter().copied()) + i128::from(knots[CELLS - 1]);
    knots.push(-sum as i64);
    knots
}

/// Q(i/4096) of the standard normal distribution, i from 0 to 4096; the ends give the tails their correct
/// means: beyond q that is φ(q)/(1 − Φ(q)).
fn normal() -> Vec<f64> {
    let mut upper = vec![0.0];
    let mut z = 0.0;
    for i in 1..HALF {
        let share = i as f64 / CELLS as f64;
        // Newton's method from the previous knot; the function is concave, so iterations approach from below
        // and never overshoot.
        for _ in 0..8 {
            let density = NORMAL_PEAK * exp(-0.5 * z * z);
            z += (share - density * normal_series(z)) / density;
        }
        upper.push(z);
    }
    let tail_mean = NORMAL_PEAK * exp(-0.5 * z * z) * CELLS as f64;
    upper.push(2.0 * tail_mean - z);
    let lower = upper[1..].iter().rev().map(|z| -z);
    lower.chain(upper.iter().copied()).collect()
}

/// (Φ(z) − ½)/φ(z) = z + z³/3 + z⁵/(3·5) + …, for z from 0 to 4.
fn normal_series(z: f64) -> f64 {
    let (mut term, mut sum) = (z, z);
    for n in 1..80 {
        term *= z * z / f64::from(2 * n + 1);
        sum += term;
    }
    sum
}

/// `from` applied to Q(i/4096) of the exponential distribution of mean 1, i from 0 to 4095.
fn exponential(from: fn(f64) -> f64) -> Vec<f64> {
    (0..CELLS).map(|i| from(-ln((CELLS - i) as f64 / CELLS as f64))).collect()
}

/// Maps −ln(1 − u) to the same quantile u of the gamma distribution of shape 2, minus its mean 2, divided by
/// its deviation √2. Its 1 − u = (1 + x)·e⁻ˣ gives x − ln(1 + x) = −ln(1 − u).
fn gamma(t: f64) -> f64 {
    // Newton's method from above on a convex function: x − ln(1 + x) ≥ x²/(2 + 2x) makes this an upper bound.
    let mut x = t + (t * t + 2.0 * t).sqrt();
    for _ in 0..12 {
        if x > 0.0 {
            x -= (x - ln(1.0 + x) - t) * (1.0 + x) / x;
        }
    }
    (x - 2.0) / 2f64.sqrt()
}

/// Q(i/4096) of eᶻ, z standard normal, minus its mean √e, divided by its deviation √(e² − e), i from 0 to
/// 4095.
fn log_normal() -> Vec<f64> {
    let e = std::f64::consts::E;
    let (mean, deviation) = (e.sqrt(), (e * e - e).sqrt());
    let mut inner = normal();
    inner.pop();
    // At the probability 0 the value is 0.
    let values = inner.iter().enumerate().map(|(i, z)| if i == 0 { 0.0 } else { exp(*z) });
    values.map(|value| (value - mean) / deviation).collect()
}

/// netem's Pareto: at the probability 1 − v, v = 1 … 0 in steps of 1/4096, ⁴⁄₃·(v^(−1/3) − 1.5), and at most
/// 32767/8192, the limit of its 16-bit table. (⁴⁄₃ is one over the variance, where one over the deviation may
/// have been meant.)
fn pareto() -> Vec<f64> {
    let most = 32_767.0 / 8192.0;
    let value = |i| {
        let v = (CELLS - i) as f64 / CELLS as f64;
        if v == 0.0 { most } else { (4.0 / 3.0 * (pow(v, -1.0 / 3.0) - 1.5)).min(most) }
    };
    (0..=CELLS).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;
    use longwire_units::Nanos;

    const N: usize = 100_000;

    /// Abramowitz & Stegun 26.2.17: Φ within 7.5·10⁻⁸.
    fn phi(z: f64) -> f64 {
        let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
        let factors = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
        let series = factors.iter().fold(0.0, |sum, factor| (sum + factor) * t);
        let above = series * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        if z < 0.0 { above } else { 1.0 - above }
    }

    const MOST: f64 = 32_767.0 / 8192.0;

    /// Effect of the limit on the mean of netem's Pareto: ∫ ⁴⁄₃·(v^(−1/3) − 1.5) − MOST dv over the v above
    /// the limit.
    fn cut() -> f64 {
        let v = (0.75 * MOST + 1.5).powi(-3);
        4.0 / 3.0 * (1.5 * v.powf(2.0 / 3.0) - 1.5 * v) - MOST * v
    }

    fn pareto_at(z: f64) -> f64 {
        (4.0 / 3.0 * ((1.0 - phi(z)).powf(-1.0 / 3.0) - 1.5)).min(MOST)
    }

    /// The stated distribution's C(x).
    fn stated(name: &str, x: f64) -> f64 {
        let e = std::f64::consts::E;
        match name {
            "uniform" => (x + 1.0) / 2.0,
            "normal" => phi(x),
            "pareto" if x > MOST + cut() - 1e-6 => 1.0,
            "pareto" => 1.0 - (0.75 * (x - cut()) + 1.5).powi(-3).min(1.0),
            "pareto-normal" => {
                let (mut low, mut high) = (-6.0, 6.0);
                for _ in 0..50 {
                    let z = (low + high) / 2.0;
                    let below = 0.25 * z + 0.75 * (pareto_at(z) + cut()) < x;
                    (low, high) = if below { (z, high) } else { (low, z) };
                }
                phi(low)
            }
            "exponential" => 1.0 - (-(x + 1.0)).exp().min(1.0),
            "log-normal" => phi((x * (e * e - e).sqrt() + e.sqrt()).max(1e-300).ln()),
            _ => {
                let t = (2f64.sqrt() * x + 2.0).max(0.0);
                1.0 - (1.0 + t) * (-t).exp()
            }
        }
    }

    /// The largest distance between the sorted samples' distribution and `stated`, on either side of each
    /// sample.
    fn kolmogorov(samples: &[f64], stated: impl Fn(f64) -> f64) -> f64 {
        let share = |count: usize| count as f64 / samples.len() as f64;
        let gap = |&x: &f64| {
            let upto = share(samples.partition_point(|&other| other <= x));
            let below = share(samples.partition_point(|&other| other < x));
            // The part below x, where the stated distribution may have a step too.
            (upto - stated(x)).abs().max((below - stated(x - 2e-6)).abs())
        };
        samples.iter().map(gap).fold(0.0, f64::max)
    }

    fn samples(shape: &Shape) -> Vec<f64> {
        let mut dice = Dice::named(1, "shape");
        let second = Nanos::from_secs(1);
        (0..N).map(|_| shape.offset(dice.draw(), second) as f64 / 1e9).collect()
    }

    #[test]
    fn samples_follow_the_stated_distribution() {
        for name in NAMES {
            let mut samples = samples(&shape(name).unwrap());
            samples.sort_by(f64::total_cmp);
            let worst = kolmogorov(&samples, |x| stated(name, x));
            // The 1 % critical value of the Kolmogorov–Smirnov test.
            let bound = 1.628 / (N as f64).sqrt();
            assert!(worst < bound, "{name}: {worst}, at most {bound}");
        }
    }

    #[test]
    fn quantiles_are_the_stated_ones() {
        for name in NAMES {
            let shape = shape(name).unwrap();
            for percent in 1..99 {
                let p = f64::from(percent) / 100.0;
                let x = shape.offset((p * 2f64.powi(64)) as u64, Nanos::from_secs(1)) as f64 / 1e9;
                let got = stated(name, x);
                // Error of linear interpolation in the mean, times the highest density (2.25, a Pareto's).
                assert!((got - p).abs() < 1e-5, "{name} at {percent} %: {x} is at {got}");
            }
        }
    }

    #[test]
    fn mean_is_zero_and_deviation_and_ends_are_as_the_documentation_says() {
        for (name, deviation, from, to) in [
            ("uniform", 0.5774, -1.0, 1.0),
            ("normal", 1.0000, -3.9914, 3.9914),
            ("pareto", 0.8209, -0.6337, 4.0328),
            ("pareto-normal", 0.8350, -1.4731, 4.0224),
            ("exponential", 0.9999, -1.0, 9.1557),
            ("log-normal", 0.9955, -0.7629, 23.712),
            ("gamma", 0.9999, -2f64.sqrt(), 7.6271),
        ] {
            let shape = shape(name).unwrap();
            assert_eq!(shape.0.doubled_sum(), 0, "{name}");
            let (low, high) = shape.ends();
            let close = |got: f64, wanted: f64| (got - wanted).abs() < 0.00006 * wanted.abs().max(1.0);
            assert!(close(shape.deviation(), deviation), "{name}: {}", shape.deviation());
            assert!(close(low, from) && close(high, to), "{name}: {low} to {high}");
            // Four standard errors of the mean.
            let mean = samples(&shape).iter().sum::<f64>() / N as f64;
            assert!(mean.abs() < 4.0 * shape.deviation() / (N as f64).sqrt(), "{name}: {mean}");
        }
    }

    #[test]
    fn centering_is_exact_and_keeps_the_order() {
        for knots in [vec![0, 1], vec![5, 5, 5, 6], vec![-7, 0, 0, 0, 3, 100], vec![0, 0, 0, 1, 1, 1, 2]] {
            let mut moved = knots.clone();
            center(&mut moved);
            assert_eq!(doubled_sum(moved.iter().copied()), 0, "{knots:?} {moved:?}");
        }
    }

    #[test]
    fn tables_are_frozen() {
        let hash = |name| {
            let shape = shape(name).unwrap();
            let knots = shape.0.knots();
            knots.fold(0u64, |hash, knot| (hash ^ knot as u64).wrapping_mul(0x0000_0100_0000_01b3))
        };
        assert_eq!(NAMES.map(hash), FROZEN, "changing a table changes every recorded run");
    }

    const FROZEN: [u64; 7] = [
        4611685222935691264,
        3132003350116189504,
        16801479071269477385,
        17142057779699593575,
        4462951136763285899,
        13090967641260531587,
        11690154176309729840,
    ];
}
