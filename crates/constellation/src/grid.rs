//! Shortest paths over inter-satellite links.

use crate::orbit::EARTH_RADIUS_KM;
use crate::vector::{Vector, distance, length};
use crate::walker::Walker;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Lowest height in km at which a laser may pass over the ground: above the atmosphere that absorbs it.
const LOWEST_KM: f64 = 80.0;

/// The satellites that a station sees, with their distances in km.
pub(crate) type Seen = Vec<(usize, f64)>;

/// Satellites of the shortest path from one station to another, over the links between `neighbours`; none if
/// there is no path.
pub(crate) fn shortest_path(
    walker: &Walker,
    positions: &[Option<Vector>],
    from: &Seen,
    to: &Seen,
) -> Option<Vec<usize>> {
    let last: BTreeMap<usize, f64> = to.iter().copied().collect();
    let mut best = vec![u64::MAX; positions.len()];
    let mut before = vec![usize::MAX; positions.len()];
    let mut queue = BinaryHeap::new();
    for &(satellite, far) in from {
        best[satellite] = millimetres(far);
        queue.push(Reverse((best[satellite], satellite)));
    }
    // The best end so far: length in all, and its last satellite.
    let mut end: Option<(u64, usize)> = None;
    while let Some(Reverse((far, satellite))) = queue.pop() {
        if end.is_some_and(|(all, _)| all <= far) {
            break;
        }
        if far > best[satellite] {
            continue;
        }
        if let Some(down) = last.get(&satellite) {
            let all = far + millimetres(*down);
            end = end.filter(|(least, _)| *least <= all).or(Some((all, satellite)));
        }
        for next in walker.neighbours(satellite as u32).map(|next| next as usize) {
            let Some(hop) = laser(positions[satellite], positions[next]) else { continue };
            let all = far + millimetres(hop);
            if all < best[next] {
                (best[next], before[next]) = (all, satellite);
                queue.push(Reverse((all, next)));
            }
        }
    }
    let (_, mut satellite) = end?;
    let mut path = vec![satellite];
    while before[satellite] != usize::MAX {
        satellite = before[satellite];
        path.push(satellite);
    }
    path.reverse();
    Some(path)
}

/// Whole numbers, which have an order and add up alike everywhere.
fn millimetres(kilometres: f64) -> u64 {
    (kilometres * 1e6) as u64
}

/// Length of the link between two satellites of one altitude, if the Earth is not in its way.
fn laser(from: Option<Vector>, to: Option<Vector>) -> Option<f64> {
    let (from, to) = (from?, to?);
    let middle = [0, 1, 2].map(|axis| (from[axis] + to[axis]) / 2.0);
    (length(middle) >= EARTH_RADIUS_KM + LOWEST_KM).then(|| distance(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sky;
    use crate::walker::Pattern;

    /// Against every path of the few satellites between the two: the ring of one plane has two ways around.
    #[test]
    fn paths_are_the_shortest() {
        let walker = Walker {
            pattern: Pattern::Delta,
            inclination_degrees: 0.0,
            satellites: 20,
            planes: 1,
            phasing: 0,
            altitude_km: 1000.0,
        };
        let positions = Sky::of_walker(walker).positions(0.0);
        let seen = |satellite: usize| vec![(satellite, 1000.0)];
        let path = |from: &Seen, to: &Seen| shortest_path(&walker, &positions, from, to);
        assert_eq!(path(&seen(0), &seen(3)), Some(vec![0, 1, 2, 3]));
        assert_eq!(path(&seen(0), &seen(17)), Some(vec![0, 19, 18, 17]));
        assert_eq!(path(&seen(5), &seen(5)), Some(vec![5]));
        assert_eq!(path(&vec![(0, 9000.0), (2, 1000.0)], &seen(3)), Some(vec![2, 3]));
        assert_eq!(path(&Vec::new(), &seen(3)), None);
    }

    #[test]
    fn the_earth_is_in_the_way_of_far_satellites() {
        let walker = Walker {
            pattern: Pattern::Delta,
            inclination_degrees: 0.0,
            satellites: 4,
            planes: 1,
            phasing: 0,
            altitude_km: 1000.0,
        };
        let positions = Sky::of_walker(walker).positions(0.0);
        assert_eq!(shortest_path(&walker, &positions, &vec![(0, 1.0)], &vec![(1, 1.0)]), None);
    }
}
