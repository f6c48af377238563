//! Offset and drift of two clocks, from the delays alone.
//!
//! The assumption is that the least delay of the path does not change: then the delays of the packets that
//! waited least lie on a line, whose slope is the drift (Moon, Skelly, Towsley, "Estimation and removal of
//! clock skew from network delay measurements", INFOCOM 1999).

use crate::pairing::Packet;

/// Removes a line below all delays, above which their sum is least, so that the least delay becomes 0.
///
/// Returns its slope: by how much the receiver's clock runs faster than the sender's, in parts per million.
pub fn remove_drift(packets: &mut [Packet]) -> f64 {
    let points: Vec<(f64, f64)> =
        packets.iter().filter_map(|packet| Some((packet.sent_ns, packet.delay_ns?))).collect();
    let (from, slope) = line_below(&points);
    for packet in packets.iter_mut() {
        let line = from.1 + slope * (packet.sent_ns - from.0);
        // What is left, and the difference of two arrivals, are by the receiver's clock.
        packet.copy_ns = packet.copy_ns.map(|copy| copy / (1.0 + slope));
        packet.delay_ns = packet.delay_ns.map(|delay| ((delay - line) / (1.0 + slope)).max(0.0));
    }
    slope * 1e6
}

/// A point and the slope of the line below all points, in ascending order of time, for which the sum of
/// distances is least: the edge of the lower convex hull above the mean time.
fn line_below(points: &[(f64, f64)]) -> ((f64, f64), f64) {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &point in points {
        while let [.., before, last] = hull[..] {
            let turn =
                (last.0 - before.0) * (point.1 - before.1) - (last.1 - before.1) * (point.0 - before.0);
            // Also drops points at the time of their successor.
            if turn > 0.0 && last.0 < point.0 {
                break;
            }
            hull.pop();
        }
        if let [only] = hull[..]
            && only.0 == point.0
        {
            hull[0].1 = only.1.min(point.1);
        } else {
            hull.push(point);
        }
    }
    let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len().max(1) as f64;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= mean);
    match (edge, hull.first()) {
        (Some(&[from, to]), _) => (from, (to.1 - from.1) / (to.0 - from.0)),
        (_, Some(&only)) => (only, 0.0),
        _ => ((0.0, 0.0), 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(delay: impl Fn(u32) -> f64) -> Vec<Packet> {
        let packet = |n: u32| Packet {
            sent_ns: f64::from(n) * 1e6,
            bits: 512.0,
            delay_ns: (n % 7 != 3).then(|| delay(n)),
            copy_ns: (n == 5).then_some(1000.0),
        };
        (0..1000).map(packet).collect()
    }

    #[test]
    fn offset_and_drift_are_removed() {
        // 50 ppm, and 3 s; every eleventh packet does not wait.
        let wait = |n: u32| f64::from(n % 11) * 1e5;
        let mut all = packets(|n| 3e9 + f64::from(n) * 50.0 + wait(n) * (1.0 + 50e-6));
        let drift = remove_drift(&mut all);
        assert!((drift - 50.0).abs() < 1e-6, "{drift}");
        for (n, packet) in all.iter().enumerate() {
            let left = packet.delay_ns.map(|delay| (delay - wait(n as u32)).abs());
            assert!(left.is_none_or(|left| left < 1e-3), "{n}: {left:?}");
        }
        assert!((all[5].copy_ns.unwrap() - 999.95).abs() < 1e-3);
    }

    #[test]
    fn few_points_have_a_line_too() {
        for count in 0..4 {
            let mut few = packets(|n| 7.0 + f64::from(n));
            few.truncate(count);
            remove_drift(&mut few);
            assert!(few.iter().all(|packet| packet.delay_ns.is_none_or(|delay| delay.abs() < 1e-6)));
        }
        let mut same = packets(|n| f64::from(n % 5) + 2.0);
        same.iter_mut().for_each(|packet| packet.sent_ns = 4.0);
        assert_eq!(remove_drift(&mut same), 0.0);
        assert!(same.iter().all(|packet| packet.delay_ns.is_none_or(|delay| delay >= 0.0)));
    }
}
