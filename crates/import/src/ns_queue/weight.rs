//! RED's weight in ns-2, if it is automatic.

use crate::quantity::in_units;
use longwire_units::Nanos;

/// How ns-2 derives RED's weight from the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WeightRule {
    /// From the packets of ten round trips: a `q_weight_` of −1.
    #[default]
    Rtt,
    /// From the packets of a second: 0.
    Pace,
    /// From the packets of a tenth of a second: −2.
    TenPaces,
}

impl WeightRule {
    /// The rule that a `q_weight_` means; none if it is a weight itself.
    pub(super) fn of(text: &str) -> Option<Self> {
        let number: f64 = text.parse().ok()?;
        if number == 0.0 {
            Some(Self::Pace)
        } else if number == -2.0 {
            Some(Self::TenPaces)
        } else {
            (number < 0.0).then_some(Self::Rtt)
        }
    }

    /// Its number in ns-2.
    pub(super) const fn number(self) -> &'static str {
        match self {
            Self::Rtt => "-1",
            Self::Pace => "0",
            Self::TenPaces => "-2",
        }
    }
}

/// The automatic weight of ns-2 (red.cc, `initialize_params`): 1 − e^(−1/(10·rtt·pace)), where rtt is three
/// times the link's delay and one packet's time, and at least 100 ms; or 1 − e^(−1/pace); or
/// 1 − e^(−10/pace).
pub(super) fn weight(pace: f64, delay: Nanos, rule: WeightRule) -> String {
    // A link without a rate sends nothing.
    if pace == 0.0 {
        return "0.002".into();
    }
    let rtt = (3.0 * (delay.0 as f64 / 1e9 + 1.0 / pace)).max(0.1);
    let x = match rule {
        WeightRule::Rtt => 1.0 / (10.0 * rtt * pace),
        WeightRule::Pace => 1.0 / pace,
        WeightRule::TenPaces => 10.0 / pace,
    };
    // e^x by its series, which is short: from 20 on all weights are 1. Then 1 − e^(−x) = 1 − 1/e^x.
    let x = x.min(20.0);
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..60 {
        term *= x / f64::from(n);
        sum += term;
    }
    let millionths = ((1.0 - 1.0 / sum) * 1e6).round().clamp(1.0, 1e6) as u64;
    in_units(millionths, 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns_queue::{Dialect, Queue};

    #[test]
    fn weights_of_ns2() {
        use WeightRule::{Pace, Rtt, TenPaces};
        // 1.5 Mbit/s in packets of 500 bytes are 375 a second; 100 ms: x = 1/375. With 100 ms of delay rtt is
        // 308 ms.
        let table = [
            (375.0, 0, Rtt, "0.002663"),
            (375.0, 100_000_000, Rtt, "0.000865"),
            (25_000.0, 0, Rtt, "0.00004"),
            (1e9, 0, Rtt, "0.000001"),
            (0.0, 0, Rtt, "0.002"),
            (2500.0, 200_000_000, Pace, "0.0004"),
            (2500.0, 200_000_000, TenPaces, "0.003992"),
            (1.0, 0, Pace, "0.632121"),
            (0.01, 0, TenPaces, "1"),
        ];
        for (pace, delay, rule, text) in table {
            assert_eq!(weight(pace, Nanos(delay), rule), text, "{pace} {delay} {rule:?}");
        }
        let mut queue = Queue::named("RED").unwrap();
        for (set, read) in [("0", "0"), ("-2", "-2"), ("-1.0", "-1"), ("0.01", "0.01"), ("0.0", "0")] {
            assert!(queue.set(1, "q_weight_", Some(&set.to_owned())).unwrap());
            assert_eq!(queue.value("q_weight_", Dialect::Ns2).as_deref(), Some(read), "{set}");
        }
        assert!(queue.set(1, "q_weight_", Some(&"-".to_owned())).is_err());
    }
}
