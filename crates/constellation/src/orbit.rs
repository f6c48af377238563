//! Circular orbits around an oblate Earth.

use crate::vector::Vector;
use std::f64::consts::TAU;

/// Equatorial radius of the Earth in km (WGS 84): altitudes of orbits count from it.
pub const EARTH_RADIUS_KM: f64 = 6378.137;
/// Gravitational parameter of the Earth in km³/s² (WGS 84, NIMA TR8350.2, table 3.1).
const MU: f64 = 398_600.441_8;
/// Second zonal harmonic, unnormalised (EGM96).
const J2: f64 = 1.082_626_68e-3;

/// A circular orbit: two bodies, and the secular drift that the Earth's oblateness (J₂) causes.
///
/// Periodic effects of J₂, which move a satellite by up to some ten kilometres along its orbit and a few
/// across it, drag, and the thrust that holds its place are left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CircularOrbit {
    radius: f64,
    sin_inclination: f64,
    cos_inclination: f64,
    /// Right ascension of the ascending node at time 0, and its rate.
    node: f64,
    node_rate: f64,
    /// Angle from the ascending node at time 0, and its rate.
    argument: f64,
    argument_rate: f64,
}

impl CircularOrbit {
    /// An orbit at this altitude, with angles in radians at time 0: inclination, right ascension of the
    /// ascending node, and the satellite's angle from there.
    pub fn new(altitude_km: f64, inclination: f64, node: f64, argument: f64) -> Self {
        let radius = EARTH_RADIUS_KM + altitude_km;
        let motion = TAU / period_s(altitude_km);
        // Vallado, Fundamentals of Astrodynamics and Applications, section 9.6.1, for an eccentricity of 0:
        // the rates of node, argument of perigee and mean anomaly.
        let factor = 1.5 * J2 * (EARTH_RADIUS_KM / radius).powi(2) * motion;
        let (sin_inclination, cos_inclination) = inclination.sin_cos();
        Self {
            radius,
            sin_inclination,
            cos_inclination,
            node,
            node_rate: -factor * cos_inclination,
            argument,
            argument_rate: motion + factor * (3.0 - 4.0 * sin_inclination * sin_inclination),
        }
    }

    /// Where the satellite is `seconds` after time 0, in km and inertial coordinates.
    pub(crate) fn position(&self, seconds: f64) -> Vector {
        let (sin_node, cos_node) = (self.node + self.node_rate * seconds).sin_cos();
        let (sin, cos) = (self.argument + self.argument_rate * seconds).sin_cos();
        let across = sin * self.cos_inclination;
        [
            self.radius * (cos_node * cos - sin_node * across),
            self.radius * (sin_node * cos + cos_node * across),
            self.radius * sin * self.sin_inclination,
        ]
    }
}

/// Time of a circular orbit at this altitude in seconds, by Kepler's third law.
pub fn period_s(altitude_km: f64) -> f64 {
    let radius = EARTH_RADIUS_KM + altitude_km;
    TAU * (radius.powi(3) / MU).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{distance, length};

    /// Published: 95.6 minutes at 550 km (Starlink's first shell), 100.4 at 780 km (Iridium), 109.4 at
    /// 1200 km (OneWeb), a sidereal day of 86 164 s at 35 786 km.
    #[test]
    fn periods_are_the_published_ones() {
        for (altitude, minutes) in [(550.0, 95.6), (780.0, 100.4), (1200.0, 109.4), (35_786.0, 1436.07)] {
            let period = period_s(altitude) / 60.0;
            assert!((period - minutes).abs() < 0.06, "{altitude} km: {period} min");
        }
    }

    #[test]
    fn a_satellite_comes_back_after_its_period_as_far_as_the_drift_lets_it() {
        let orbit = CircularOrbit::new(550.0, 53_f64.to_radians(), 0.4, 1.1);
        let (start, back) = (orbit.position(0.0), orbit.position(period_s(550.0)));
        assert!((length(start) - 6928.137).abs() < 1e-9);
        // In an orbit the node drifts by 0.3°, and the argument by 0.22°: 36 km and 27 km.
        let drift = distance(start, back);
        assert!((5.0..50.0).contains(&drift), "{drift} km");
    }

    /// Published: the nodes of a sun-synchronous orbit (567 km, 97.65°) drift by 0.9856° a day eastwards.
    #[test]
    fn nodes_of_a_sun_synchronous_orbit_follow_the_sun() {
        let orbit = CircularOrbit::new(567.0, 97.65_f64.to_radians(), 0.0, 0.0);
        let degrees = (orbit.node_rate * 86_400.0).to_degrees();
        assert!((degrees - 0.9856).abs() < 0.01, "{degrees}");
    }
}
