//! Limits that geometry sets to delays and passes: closed forms, to compare schedules with.

use crate::earth::ROTATION;
use crate::orbit::{EARTH_RADIUS_KM, period_s};
use std::f64::consts::TAU;

/// Distance to a satellite at an elevation, on a spherical Earth of the equatorial radius: from its altitude
/// in km and the elevation in degrees. On the ellipsoid it is up to 10 km longer, see [`Shell::most_km`].
pub fn slant_range_km(altitude_km: f64, elevation_degrees: f64) -> f64 {
    slant(EARTH_RADIUS_KM, EARTH_RADIUS_KM + altitude_km, elevation_degrees)
}

/// By the law of cosines.
fn slant(ground: f64, radius: f64, elevation_degrees: f64) -> f64 {
    let (sin, cos) = elevation_degrees.to_radians().sin_cos();
    (radius * radius - (ground * cos).powi(2)).sqrt() - ground * sin
}

/// Polar radius of WGS 84 in km: no ground at sea level is nearer to the centre.
const POLAR_RADIUS_KM: f64 = 6356.752;
/// Largest angle between the plumb lines of the ellipsoid and of a sphere, in degrees.
const DEFLECTION_DEGREES: f64 = 0.193;

/// A shell of satellites at one altitude.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shell {
    /// Altitude above the equatorial radius in km.
    pub altitude_km: f64,
    /// Inclination in degrees.
    pub inclination_degrees: f64,
}

impl Shell {
    /// Shortest distance from a station at this height to a satellite, in km.
    pub fn least_km(&self, station_altitude_km: f64) -> f64 {
        self.altitude_km - station_altitude_km
    }

    /// Longest distance to a satellite above the elevation, anywhere on the ellipsoid, in km.
    pub fn most_km(&self, elevation_degrees: f64) -> f64 {
        let lowest = (elevation_degrees - DEFLECTION_DEGREES).max(-90.0);
        slant(POLAR_RADIUS_KM, EARTH_RADIUS_KM + self.altitude_km, lowest)
    }

    /// Longest time for which a satellite can stay above the elevation, in seconds: it passes through the
    /// zenith, and moves as the ground does.
    pub fn longest_pass_s(&self, elevation_degrees: f64) -> f64 {
        let radius = EARTH_RADIUS_KM + self.altitude_km;
        let elevation = (elevation_degrees - DEFLECTION_DEGREES).max(0.0).to_radians();
        let half = (POLAR_RADIUS_KM * elevation.cos() / radius).acos() - elevation;
        let motion = TAU / period_s(self.altitude_km);
        let along = ROTATION * self.inclination_degrees.to_radians().cos().max(0.0);
        2.0 * half / (motion - along).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published for Starlink's first shell (SpaceX's modification to the FCC, 2019: 550 km, 25°): a slant
    /// range of 1123 km, and a satellite over the head at 550 km.
    #[test]
    fn slant_ranges_are_the_published_ones() {
        assert!((slant_range_km(550.0, 25.0) - 1123.0).abs() < 1.5, "{}", slant_range_km(550.0, 25.0));
        assert!((slant_range_km(550.0, 90.0) - 550.0).abs() < 1e-9);
        let shell = Shell { altitude_km: 550.0, inclination_degrees: 53.0 };
        assert!(shell.most_km(25.0) > slant_range_km(550.0, 25.0));
        assert!(shell.most_km(25.0) < 1180.0, "{}", shell.most_km(25.0));
        // Half of the pass is an arc of 8.5° of 360° in 95.6 minutes; the Earth's rotation adds 4 %.
        let pass = shell.longest_pass_s(25.0);
        assert!((270.0..300.0).contains(&pass), "{pass} s");
    }
}
