//! Walker constellations: equal circular orbits, evenly spread.

use crate::orbit::CircularOrbit;
use std::f64::consts::{PI, TAU};
use std::fmt;

/// How the planes are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Ascending nodes over the whole equator, as Starlink's.
    Delta,
    /// Over half of it, in nearly polar orbits, as Iridium's and OneWeb's.
    Star,
}

/// A Walker constellation (J. G. Walker, Satellite constellations, 1984).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Walker {
    /// How the planes are spread.
    pub pattern: Pattern,
    /// Inclination of all orbits in degrees, 0 to 180.
    pub inclination_degrees: f64,
    /// Satellites in all, 1 to 20000; a multiple of the planes.
    pub satellites: u32,
    /// Orbital planes.
    pub planes: u32,
    /// Phasing F: satellites of a plane are ahead of those of the plane to the west by F · 360° / satellites.
    pub phasing: u32,
    /// Altitude above the equatorial radius in km, 160 to 36000.
    pub altitude_km: f64,
}

impl fmt::Display for Walker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inclination_degrees, satellites, planes, phasing, altitude_km, .. } = self;
        let pattern = match self.pattern {
            Pattern::Delta => "delta",
            Pattern::Star => "star",
        };
        write!(
            f,
            "Walker {pattern} {inclination_degrees}°: {satellites}/{planes}/{phasing} at {altitude_km} km"
        )
    }
}

impl Walker {
    /// Satellites in each plane.
    pub const fn in_a_plane(&self) -> u32 {
        self.satellites / self.planes
    }

    /// The orbits, plane by plane. At time 0 the first plane's node is at longitude 0, with a satellite.
    pub(crate) fn orbits(&self) -> Vec<CircularOrbit> {
        let spread = if self.pattern == Pattern::Delta { TAU } else { PI };
        let (planes, all) = (f64::from(self.planes), f64::from(self.satellites));
        let of = |plane: u32, slot: u32| {
            let node = spread * f64::from(plane) / planes;
            let phase = f64::from(self.phasing) * f64::from(plane) / all;
            let argument = TAU * (f64::from(slot) / f64::from(self.in_a_plane()) + phase);
            CircularOrbit::new(self.altitude_km, self.inclination_degrees.to_radians(), node, argument)
        };
        (0..self.planes).flat_map(|plane| (0..self.in_a_plane()).map(move |slot| of(plane, slot))).collect()
    }

    /// The four neighbours of inter-satellite links (+grid) of the satellite with this number: before and
    /// behind it in its plane, and the satellites of its slot in the planes beside it. A star has no links
    /// between its first and its last plane, whose satellites move in opposite directions.
    pub(crate) fn neighbours(&self, satellite: u32) -> impl Iterator<Item = u32> + use<> {
        let (size, planes) = (self.in_a_plane(), self.planes);
        let (plane, slot) = (satellite / size, satellite % size);
        let wraps = self.pattern == Pattern::Delta && planes > 2;
        // All around, the phasing adds up to this many slots.
        let shift = self.phasing % size;
        let east = match plane + 1 {
            next if next < planes => Some((next, slot)),
            _ => wraps.then_some((0, (slot + shift) % size)),
        };
        let west = match plane.checked_sub(1) {
            Some(next) => Some((next, slot)),
            None => wraps.then_some((planes - 1, (slot + size - shift) % size)),
        };
        let (ahead, behind) = ((plane, (slot + 1) % size), (plane, (slot + size - 1) % size));
        [Some(ahead), Some(behind), east, west]
            .into_iter()
            .flatten()
            .map(move |(plane, slot)| plane * size + slot)
            .filter(move |other| *other != satellite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::distance;

    const STARLINK: Walker = Walker {
        pattern: Pattern::Delta,
        inclination_degrees: 53.0,
        satellites: 1584,
        planes: 72,
        phasing: 39,
        altitude_km: 550.0,
    };

    #[test]
    fn satellites_are_evenly_spread() {
        let orbits = STARLINK.orbits();
        assert_eq!((orbits.len(), STARLINK.in_a_plane()), (1584, 22));
        // In a plane: 2 · 6928.137 km · sin(360° / 44).
        for slot in 0..22 {
            let apart = distance(orbits[slot].position(7.0), orbits[(slot + 1) % 22].position(7.0));
            assert!((apart - 1971.9).abs() < 0.1, "{apart} km");
        }
    }

    #[test]
    fn the_grid_is_symmetric_and_joins_near_satellites() {
        let star = Walker { pattern: Pattern::Star, satellites: 66, planes: 6, phasing: 2, ..STARLINK };
        for walker in [STARLINK, star, Walker { satellites: 12, planes: 3, phasing: 1, ..STARLINK }] {
            for satellite in 0..walker.satellites {
                for other in walker.neighbours(satellite) {
                    assert!(walker.neighbours(other).any(|back| back == satellite), "{satellite} {other}");
                }
            }
        }
        // Across the seam satellites are as far apart as between any two planes.
        let orbits = STARLINK.orbits();
        let apart = |one: u32, other: u32| {
            distance(orbits[one as usize].position(0.0), orbits[other as usize].position(0.0))
        };
        let seam: Vec<u32> = STARLINK.neighbours(71 * 22).filter(|other| *other < 22).collect();
        assert_eq!(seam.len(), 1);
        assert!((apart(71 * 22, seam[0]) - apart(70 * 22, 71 * 22)).abs() < 1500.0);
        assert_eq!(star.neighbours(0).count(), 3);
        assert_eq!(Walker { satellites: 1, planes: 1, phasing: 0, ..STARLINK }.neighbours(0).count(), 0);
    }
}
