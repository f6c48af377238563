//! Bit errors on the wire.

use super::{HEADERS_PARAM, Headers};
use crate::judge::Judge;
use crate::transmit::framing::Framing;
use longwire_block::{Block, Dice, DropReason, Flips, Offer, Verdict};
use longwire_random::math::{NEG_LN_SHIFT, ln, neg_ln};
use longwire_settings::{Choice, Settings};
use longwire_units::Probability;

/// Flips each bit with the same probability, the bit error rate. An affected frame has used its bandwidth; it
/// is then dropped, as by a card that finds a bad frame check sequence, or delivered with the bits flipped.
///
/// The number of good bits up to the next bad one is drawn: geometric, ⌊ln u / ln(1 − rate)⌋, once for each
/// bad bit however many frames pass in between. A frame of n bits is therefore hit with probability 1 − (1 −
/// rate)ⁿ.
#[derive(Debug, Default)]
pub struct BitError {
    /// Remaining good bits before the next bad one; none if there is no bad one.
    good: Option<u64>,
    /// −1/ln(1 − rate) · 2²⁰: mean number of good bits between two bad ones.
    mean: u64,
    rate: Probability,
    deliver: bool,
    spare_headers: bool,
    dice: Dice,
}

/// Fractional bits of [`BitError::mean`].
const MEAN_SHIFT: u32 = 20;

/// Words of `action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Action {
    Drop,
    Deliver,
}

/// Flips each bit with the same probability; such frames are dropped, or delivered with the errors.
#[derive(Debug, Settings)]
#[settings(
    key = "bit-error",
    kind = "rate",
    source = "Realizing a network emulator system with Intel IXP1200 network processor, section II-B; IEEE \
        802.3, 3.2.9",
    live
)]
pub struct BitErrorSettings {
    /// bit error rate, such as 1e-6; 0 to 0.5 (higher rates are treated as 0.5)
    rate: Probability,
    /// drop: drop the frame if a bit of it or of its FCS is wrong, as a NIC would; deliver: flip bits of the
    /// frame without its FCS, and keep the checksums
    #[setting(default = "drop")]
    action: Action,
    #[setting(like = HEADERS_PARAM)]
    headers: Headers,
}

impl Block for BitError {
    type Settings = BitErrorSettings;

    fn build(settings: BitErrorSettings, dice: Dice) -> Self {
        Self { dice, ..Self::default() }.with(settings)
    }

    /// Applies a new rate; the position of the next bad bit is drawn again if the rate has changed, which has
    /// no other effect on a memoryless process.
    fn change(&mut self, settings: BitErrorSettings) {
        let rate = settings.rate;
        (self.deliver, self.spare_headers) =
            (settings.action == Action::Deliver, settings.headers == Headers::Spare);
        if rate == self.rate {
            return;
        }
        self.rate = rate;
        self.mean = mean(rate);
        self.good = (rate != Probability::ZERO).then(|| self.gap());
    }
}

impl Judge for BitError {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let Some(good) = self.good else { return Verdict::Pass };
        let bytes = if self.deliver {
            u64::from(offer.bytes)
        } else {
            Framing::ETHERNET.counted_on_wire(offer.bytes)
        };
        let bits = 8 * bytes;
        if good >= bits {
            self.good = Some(good - bits);
            return Verdict::Pass;
        }
        match self.hit(bits, good) {
            None => Verdict::Drop(DropReason::Corrupted),
            flips => {
                offer.effects().flips = flips;
                Verdict::Pass
            }
        }
    }

    fn on_wire(&self) -> bool {
        true
    }
}

impl BitError {
    /// Bad bits of a frame of `bits` bits, the first of them after `good` good ones; none if it is dropped.
    #[cold]
    #[inline(never)]
    fn hit(&mut self, bits: u64, good: u64) -> Option<Flips> {
        let (mut at, mut bad) = (good, 0u16);
        while at < bits {
            bad = bad.saturating_add(1);
            at = at.saturating_add(1).saturating_add(self.gap());
        }
        self.good = Some(at - bits);
        if !self.deliver {
            return None;
        }
        let (count, spare_headers, seed) = (bad, self.spare_headers, self.dice.draw());
        Some(Flips { count, spare_headers, seed })
    }

    /// Good bits between two bad ones.
    fn gap(&mut self) -> u64 {
        let product = u128::from(neg_ln(self.dice.draw())) * u128::from(self.mean);
        u64::try_from(product >> (NEG_LN_SHIFT + MEAN_SHIFT)).unwrap_or(u64::MAX)
    }
}

/// See [`BitError::mean`]. Computed when a rate is set, with operations that are exact or have the same
/// result on every machine.
fn mean(rate: Probability) -> u64 {
    let rate = rate.as_f64().min(0.5);
    // ln(1 − rate) is inaccurate for small rates, unlike its series −rate − rate²/2 − rate³/3.
    let exponent = if rate < 1e-4 { rate * (1.0 + rate * (0.5 + rate / 3.0)) } else { -ln(1.0 - rate) };
    if exponent <= 0.0 { u64::MAX } else { ((1u64 << MEAN_SHIFT) as f64 / exponent) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    fn block(given: &[(&str, &str)]) -> BitError {
        BitError::build(Settings::read(given).unwrap(), Dice::named(5, "test/bit-error"))
    }

    /// FER = 1 − (1 − BER)^bits, for frames of 1518 and 64 bytes with FCS, inside the 99.7 % interval.
    #[test]
    fn frame_errors_follow_the_closed_form() {
        let table = [
            ("1e-6", 1514, 0.01207),
            ("1e-5", 1514, 0.11436),
            ("1e-4", 1514, 0.70313),
            ("1e-6", 60, 0.00051),
            ("1e-5", 60, 0.00511),
            ("1e-4", 60, 0.04991),
            // Padded to the shortest frame.
            ("1e-4", 42, 0.04991),
            ("0.1", 60, 1.0 - 0.9f64.powi(512)),
        ];
        for (rate, bytes, fer) in table {
            let (mut block, n) = (block(&[("rate", rate)]), 300_000);
            let hit =
                (0..n).filter(|_| block.judge(&mut Offer::new(Nanos::ZERO, bytes, &[])) != Verdict::Pass);
            let share = hit.count() as f64 / f64::from(n);
            // The table's figures are rounded to 5 · 10⁻⁶.
            let width = 3.0 * (fer * (1.0 - fer) / f64::from(n)).sqrt() + 5e-6;
            assert!((share - fer).abs() < width, "{rate} {bytes}: {share}");
        }
    }

    /// The number of bad bits in delivered frames matches the rate: binomial, mean n·rate.
    #[test]
    fn delivered_frames_have_their_share_of_bad_bits() {
        let mut block = block(&[("rate", "0.001"), ("action", "deliver")]);
        let (n, bytes) = (20_000u32, 1000);
        let mut bad = 0u64;
        for _ in 0..n {
            let mut offer = Offer::new(Nanos::ZERO, bytes, &[]);
            assert_eq!(block.judge(&mut offer), Verdict::Pass);
            bad += offer.effects().flips.map_or(0, |flips| u64::from(flips.count));
        }
        let bits = f64::from(n) * 8000.0;
        let deviation = (bits * 0.001 * 0.999).sqrt();
        assert!((bad as f64 - bits * 0.001).abs() < 3.0 * deviation, "{bad}");
    }

    #[test]
    fn rates_that_hardly_ever_strike() {
        assert!((mean("1e-12".parse().unwrap()) as f64 / 1_048_576.0 / 1e12 - 1.0).abs() < 1e-6);
        let mut none = block(&[("rate", "0")]);
        assert!((0..1000).all(|_| none.judge(&mut Offer::new(Nanos::ZERO, 1500, &[])) == Verdict::Pass));
        let mut rare = block(&[("rate", "1e-19")]);
        assert!((0..1000).all(|_| rare.judge(&mut Offer::new(Nanos::ZERO, 1500, &[])) == Verdict::Pass));
    }
}
