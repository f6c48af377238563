//! Fairness measures for reports and tests, not for decisions.

/// Service of a flow from each resource, in ns of the whole resource: processor time over the number of
/// processors, and the port's time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Service {
    /// Of the processors.
    pub processor: f64,
    /// Of the port.
    pub port: f64,
}

impl Service {
    /// The larger of the two (Ghodsi et al.: the dominant share, times the duration).
    pub fn dominant(&self) -> f64 {
        self.processor.max(self.port)
    }
}

/// Jain's index of shares: 1 if all are equal, 1/n if one has all; 1 for none.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// The largest share minus the smallest, as a fraction of their mean; 0 for none.
pub fn widest_gap(shares: &[f64]) -> f64 {
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let (least, most) =
        shares.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), s| (l.min(*s), m.max(*s)));
    if mean > 0.0 { (most - least) / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!((jain(&[]), jain(&[2.0, 2.0]), jain(&[1.0, 0.0, 0.0, 0.0])), (1.0, 1.0, 0.25));
        assert_eq!((widest_gap(&[1.0, 3.0]), widest_gap(&[])), (1.0, 0.0));
        assert_eq!(Service { processor: 3.0, port: 2.0 }.dominant(), 3.0);
    }
}
