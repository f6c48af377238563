//! Logarithms, exponentials and powers with the same result on every machine: in integers, or in operations
//! that IEEE 754 defines to the last bit (+ − · /). Platform functions differ from one C library to the next.

/// Fractional bits of [`neg_ln`]'s result and [`exp_bits`]'s argument.
pub const NEG_LN_SHIFT: u32 = 58;

/// ln 2 with 64 fractional bits.
const LN_2: u128 = 0xb172_17f7_d1cf_79ac;

/// 1/(2k + 1) with 62 fractional bits.
const ODD: [i128; 12] = {
    let mut odd = [0; 12];
    let mut k = 0;
    while k < 12 {
        odd[k as usize] = (1 << 62) / (2 * k + 1);
        k += 1;
    }
    odd
};

/// 1/k! with 62 fractional bits.
const FACTORIALS: [u128; 20] = {
    let mut table = [1 << 62; 20];
    let mut k = 1;
    while k < 20 {
        table[k] = table[k - 1] / k as u128;
        k += 1;
    }
    table
};

/// The upper 33 bits of ln 2, so that its product with a whole number below 2²⁰ is exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// ln 2 less [`LN_2_HIGH`].
const LN_2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// −ln((`draw` + 1) / 2⁶⁴), in units of 2⁻⁵⁸: an exponential variate of mean 1 when `draw` is uniform. From 0
/// to 64·ln 2.
///
/// The argument is f·2ᵉ with f in [√½, √2); then ln f = 2·artanh z, z = (f − 1)/(f + 1), |z| < 0.172, of
/// which twelve terms leave less than 2⁻⁶⁰. The total error is below 2⁻⁵⁶.
pub fn neg_ln(draw: u64) -> u64 {
    let Some(value) = draw.checked_add(1) else { return 0 };
    let zeros = value.leading_zeros();
    // With 64 fractional bits: from one half up to one. Below √½ it is doubled.
    let mut fraction = u128::from(value << zeros);
    let mut halvings = u128::from(zeros);
    if fraction < 0xb504_f333_f9de_6484 {
        fraction <<= 1;
        halvings += 1;
    }
    const ONE: i128 = 1 << 64;
    let fraction = fraction as i128;
    let z = ((fraction - ONE) << 62) / (fraction + ONE);
    let square = (z * z) >> 62;
    let series = ODD.iter().rev().fold(0, |sum, odd| odd + ((sum * square) >> 62));
    // 62 + 62 fractional bits, and twice the series: 60 less are 64.
    let ln = (z * series) >> 59;
    let result = (halvings * LN_2) as i128 - ln;
    (result.max(0) >> (64 - NEG_LN_SHIFT)) as u64
}

/// e to the power of `exponent`·2⁻⁵⁸, as (m, s): m·2ˢ⁻⁶², with m from 2⁶² to 2⁶³. With [`neg_ln`] this makes
/// powers of a uniform draw in integers. The relative error is below 2⁻⁵¹.
pub fn exp_bits(exponent: u64) -> (u64, u32) {
    // 64 fractional bits; below 2⁷⁰.
    let exponent = u128::from(exponent) << (64 - NEG_LN_SHIFT);
    let (doublings, rest) = (exponent / LN_2, (exponent % LN_2) >> 2);
    let series = FACTORIALS.iter().rev().fold(0, |sum, term| term + ((sum * rest) >> 62));
    (series.min((1 << 63) - 1) as u64, doublings as u32)
}

/// The natural logarithm, within 2 units in the last place. NaN below 0, −∞ at 0.
pub fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return x;
    }
    ln_parts(x).0
}

/// e to the power of `x`, within a unit in the last place.
pub fn exp(x: f64) -> f64 {
    exp_parts(x, 0.0)
}

/// `base` to the power of `exponent`, within 1 unit in the last place near 1 and 32 (7·10⁻¹⁵) near the ends
/// of the range: the logarithm has a relative error of 4·10⁻¹⁸, and is at most 745. NaN for a negative base.
pub fn pow(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 || base == 1.0 {
        return 1.0;
    }
    if base.is_nan() || exponent.is_nan() || base < 0.0 {
        return f64::NAN;
    }
    if base == 0.0 || base == f64::INFINITY {
        return if (base == 0.0) == (exponent > 0.0) { 0.0 } else { f64::INFINITY };
    }
    let (high, low) = ln_parts(base);
    if exponent.abs() > 1e20 {
        return exp_parts(exponent * high, 0.0);
    }
    let (product, error) = product(exponent, high);
    exp_parts(product, error + exponent * low)
}

/// ln x for a finite x above 0, as a sum of two parts of which the second is the first one's rounding error.
///
/// x is m·2ᵏ with m in [√½, √2), and ln m = 2·artanh s, s = (m − 1)/(m + 1), |s| < 0.172.
fn ln_parts(x: f64) -> (f64, f64) {
    // A subnormal number is scaled to a normal one; 2⁵⁴ is arbitrary.
    let (x, bias) = if x < f64::MIN_POSITIVE { (x * 18_014_398_509_481_984.0, -1077) } else { (x, -1023) };
    let bits = x.to_bits();
    let mut k = (bits >> 52) as i32 + bias;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        k += 1;
    }
    let (over, under) = (m - 1.0, m + 1.0);
    let under_error = m - (under - 1.0);
    let s = over / under;
    let (back, back_error) = product(s, under);
    let s_error = (((over - back) - back_error) - s * under_error) / under;
    let square = s * s;
    // The terms from s³ on; the next one is below 2⁻⁶⁴ of the sum.
    let series = (1..=11).rev().fold(0.0, |sum, n| (sum + 1.0 / f64::from(2 * n + 1)) * square);
    let k = f64::from(k);
    let (high, high_error) = sum(k * LN_2_HIGH, 2.0 * s);
    let low = k * LN_2_LOW + 2.0 * (s_error + s * series) + high_error;
    sum(high, low)
}

/// e to the power of `high` + `low`, with `low` small compared with `high`.
fn exp_parts(high: f64, low: f64) -> f64 {
    if high.is_nan() {
        return high;
    }
    if high > 710.0 {
        return f64::INFINITY;
    }
    if high < -746.0 {
        return 0.0;
    }
    let half = if high < 0.0 { -0.5 } else { 0.5 };
    let k = (high * std::f64::consts::LOG2_E + half) as i32;
    let (whole, part) = (high - f64::from(k) * LN_2_HIGH, f64::from(k) * LN_2_LOW - low);
    let rest = whole - part;
    let rest_error = (whole - rest) - part;
    // |rest| is at most ½·ln 2; the next term is below 2⁻⁶⁰.
    let tail = (3..=14).rev().fold(1.0, |sum, n| 1.0 + sum * rest / f64::from(n)) * rest * rest * 0.5;
    let series = 1.0 + (rest + (rest_error + tail));
    // In two steps, because 2ᵏ itself may not be a normal number.
    let power = |k: i32| f64::from_bits(((k + 1023) as u64) << 52);
    series * power(k / 2) * power(k - k / 2)
}

/// a + b, and its rounding error (Knuth's two-sum).
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_share = sum - a;
    (sum, (a - (sum - b_share)) + (b - b_share))
}

/// a·b, and its rounding error (Dekker's product, with Veltkamp's splitting), for numbers far from overflow.
fn product(a: f64, b: f64) -> (f64, f64) {
    let split = |x: f64| {
        let scaled = 134_217_729.0 * x;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    (product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;

    fn close(draw: u64) {
        let wanted = -((draw as f64 + 1.0) / 18_446_744_073_709_551_616.0).ln();
        let got = neg_ln(draw) as f64 / (1u64 << NEG_LN_SHIFT) as f64;
        assert!((got - wanted).abs() < 1e-9, "{draw}: {got} {wanted}");
    }

    #[test]
    fn neg_ln_agrees_with_the_platform() {
        for shift in 0..64 {
            for near in [-2i64, -1, 0, 1, 2] {
                close((1u64 << shift).wrapping_add_signed(near));
            }
        }
        let mut dice = Dice::named(1, "logarithm");
        for _ in 0..100_000 {
            let draw = dice.draw();
            close(draw);
            close(draw >> (draw % 64));
        }
        // Around √½, where the range is folded.
        for near in 0..1000 {
            close(0xb504_f333_f9de_6484 - 500 + near);
        }
        close(0);
        close(u64::MAX);
    }

    #[test]
    fn neg_ln_known_values() {
        assert_eq!(neg_ln(u64::MAX), 0);
        // ln 2 = 0.693 147 180 559 945 309: the argument is one half.
        assert_eq!(neg_ln((1 << 63) - 1), (LN_2 >> 6) as u64);
        // 64·ln 2, the greatest.
        assert_eq!(neg_ln(0), LN_2 as u64);
    }

    #[test]
    fn neg_ln_never_rises_with_its_argument() {
        for draw in (0..u64::MAX - (1 << 44)).step_by(1 << 44) {
            assert!(neg_ln(draw) >= neg_ln(draw + (1 << 44)));
        }
    }

    /// Distance of two numbers of the same sign in units in the last place.
    fn apart(one: f64, other: f64) -> u64 {
        one.to_bits().abs_diff(other.to_bits())
    }

    /// Numbers of all sizes, the first argument's exponent within 2^±`span`.
    fn numbers(span: u64) -> impl Iterator<Item = f64> {
        let mut dice = Dice::named(3, "numbers");
        (0..200_000).map(move |_| {
            let exponent = 1023 - span + dice.below(2 * span);
            f64::from_bits((exponent << 52) | (dice.draw() >> 12))
        })
    }

    #[test]
    fn exp_bits_undoes_neg_ln() {
        assert_eq!(exp_bits(0), (1 << 62, 0));
        let mut dice = Dice::named(1, "exp_bits");
        for n in 0..100_000 {
            let draw = if n < 1000 { n } else { dice.draw() >> dice.below(64) };
            let (mantissa, shift) = exp_bits(neg_ln(draw));
            assert!((1 << 62..1 << 63).contains(&mantissa), "{draw}: {mantissa}");
            // ((draw + 1) / 2⁶⁴) · e^−ln of it = 1.
            let one = (draw as f64 + 1.0) / 2f64.powi(64) * (mantissa as f64 / 2f64.powi(62 - shift as i32));
            assert!((one - 1.0).abs() < 1e-15, "{draw}: {one}");
        }
    }

    #[test]
    fn ln_exp_and_pow_agree_with_the_platform() {
        for x in numbers(1023).chain(numbers(1)).chain([5e-324, 1e-310, f64::MAX]) {
            let (got, wanted) = (ln(x), x.ln());
            assert!(apart(got, wanted) <= 2, "ln {x}: {got} {wanted}");
        }
        for x in numbers(10).chain(numbers(10).map(|x| -x)) {
            let (got, wanted) = (exp(x), x.exp());
            assert!(apart(got, wanted) <= 1, "exp {x}: {got} {wanted}");
        }
        for (x, y) in numbers(20).zip(numbers(20).skip(1)).take(100_000) {
            for y in [y, -y] {
                let (got, wanted) = (pow(x, y), x.powf(y));
                assert!(apart(got, wanted) <= 32, "{x} to the {y}: {got} {wanted}");
            }
        }
    }

    #[test]
    fn ln_exp_and_pow_known_values() {
        assert_eq!((ln(1.0), exp(0.0), pow(7.0, 0.0), pow(1.0, 1e300)), (0.0, 1.0, 1.0, 1.0));
        assert_eq!(ln(2.0), std::f64::consts::LN_2);
        assert!(apart(exp(1.0), std::f64::consts::E) <= 1);
        assert_eq!((pow(2.0, 10.0), pow(10.0, 3.0), pow(2.0, -1074.0)), (1024.0, 1000.0, 5e-324));
        assert!(apart(pow(2.0, 0.5), std::f64::consts::SQRT_2) <= 1);
        assert_eq!(pow(0.0, 2.0), 0.0);
        assert_eq!((pow(0.0, -1.0), pow(f64::INFINITY, -1.0)), (f64::INFINITY, 0.0));
        assert_eq!((pow(2.0, 1e30), pow(2.0, -1e30), pow(0.5, 1e30)), (f64::INFINITY, 0.0, 0.0));
        assert_eq!((ln(0.0), exp(1e9), exp(-1e9)), (f64::NEG_INFINITY, f64::INFINITY, 0.0));
        assert_eq!((exp(f64::INFINITY), exp(f64::NEG_INFINITY)), (f64::INFINITY, 0.0));
        assert!(ln(-1.0).is_nan() && exp(f64::NAN).is_nan() && pow(-2.0, 2.0).is_nan());
    }

    #[test]
    fn bits_are_frozen() {
        let hash = |f: fn(f64) -> f64| {
            numbers(9).fold(0u64, |hash, x| (hash ^ f(x).to_bits()).wrapping_mul(0x0000_0100_0000_01b3))
        };
        assert_eq!([hash(ln), hash(exp), hash(|x| pow(x, 1.0 / 1.4))], FROZEN);
    }

    const FROZEN: [u64; 3] = [2755057305447211694, 4685320316973865879, 7061832879178052199];
}
