//! The natural logarithm in integers, so that exponential gaps are the same on every machine.

/// Bits behind the point of what [`neg_ln`] returns.
pub const NEG_LN_SHIFT: u32 = 58;

/// ln 2 with 64 bits behind the point.
const LN_2: u128 = 0xb172_17f7_d1cf_79ac;

/// 1/(2k + 1) with 62 bits behind the point.
const ODD: [i128; 12] = {
    let mut odd = [0; 12];
    let mut k = 0;
    while k < 12 {
        odd[k as usize] = (1 << 62) / (2 * k + 1);
        k += 1;
    }
    odd
};

/// −ln((`draw` + 1) / 2⁶⁴), in units of 2⁻⁵⁸: an exponential variate of mean 1 when `draw` is uniform. From 0 to 64·ln 2.
///
/// The argument is f·2ᵉ with f in [√½, √2); then ln f = 2·artanh z, z = (f − 1)/(f + 1), |z| < 0.172, of which twelve terms
/// leave less than 2⁻⁶⁰. The error in all is below 2⁻⁵⁶.
pub fn neg_ln(draw: u64) -> u64 {
    let Some(value) = draw.checked_add(1) else { return 0 };
    let zeros = value.leading_zeros();
    // With 64 bits behind the point: from one half up to one. Below √½ it is doubled.
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
    // 62 + 62 bits behind the point, and twice the series: 60 less are 64.
    let ln = (z * series) >> 59;
    let result = (halvings * LN_2) as i128 - ln;
    (result.max(0) >> (64 - NEG_LN_SHIFT)) as u64
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
    fn agrees_with_the_platform() {
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
    fn known_values() {
        assert_eq!(neg_ln(u64::MAX), 0);
        // ln 2 = 0.693 147 180 559 945 309: the argument is one half.
        assert_eq!(neg_ln((1 << 63) - 1), (LN_2 >> 6) as u64);
        // 64·ln 2, the greatest.
        assert_eq!(neg_ln(0), LN_2 as u64);
    }

    #[test]
    fn never_rises_with_its_argument() {
        for draw in (0..u64::MAX - (1 << 44)).step_by(1 << 44) {
            assert!(neg_ln(draw) >= neg_ln(draw + (1 << 44)));
        }
    }
}
