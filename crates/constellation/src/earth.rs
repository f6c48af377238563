//! The Earth: WGS 84's ellipsoid, turning at a constant rate.

use crate::orbit::EARTH_RADIUS_KM;
use crate::vector::{Vector, difference, dot, length};

/// Flattening of the ellipsoid (NIMA TR8350.2, table 3.1).
const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// Rotation of the Earth in radians a second (NIMA TR8350.2, table 3.1).
pub(crate) const ROTATION: f64 = 7.292_115e-5;

/// A place on the ground, in coordinates that turn with the Earth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    position: Vector,
    /// Away from the ground, perpendicular to the ellipsoid; of length 1.
    up: Vector,
    /// Height above the ellipsoid in km.
    pub altitude_km: f64,
}

impl Place {
    /// The place with this geodetic latitude and longitude in degrees, and this height above the ellipsoid.
    pub fn new(latitude_degrees: f64, longitude_degrees: f64, altitude_km: f64) -> Self {
        let (latitude, longitude) = (latitude_degrees.to_radians(), longitude_degrees.to_radians());
        let up = [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()];
        let eccentricity = FLATTENING * (2.0 - FLATTENING);
        // Radius of curvature in the prime vertical.
        let curvature = EARTH_RADIUS_KM / (1.0 - eccentricity * up[2] * up[2]).sqrt();
        let across = curvature + altitude_km;
        let along = curvature * (1.0 - eccentricity) + altitude_km;
        Self { position: [across * up[0], across * up[1], along * up[2]], up, altitude_km }
    }

    /// Its coordinates in km.
    pub(crate) const fn position(&self) -> Vector {
        self.position
    }
}

/// Elevation of `satellite` above the horizon of `place`, in degrees: -90 to 90, without refraction.
pub fn elevation_degrees(place: &Place, satellite: [f64; 3]) -> f64 {
    let towards = difference(place.position, satellite);
    (dot(towards, place.up) / length(towards)).clamp(-1.0, 1.0).asin().to_degrees()
}

/// `inertial` in coordinates that turn with the Earth, which has turned by `angle` since they coincided.
pub(crate) fn earth_fixed(inertial: Vector, angle: f64) -> Vector {
    let (sin, cos) = angle.sin_cos();
    let [x, y, z] = inertial;
    [x * cos + y * sin, y * cos - x * sin, z]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WGS 84's semi-axes are 6378.137 km and 6356.7523 km.
    #[test]
    fn places_are_on_the_ellipsoid() {
        for (latitude, longitude, wanted) in [
            (0.0, 0.0, [6378.137, 0.0, 0.0]),
            (0.0, 90.0, [0.0, 6378.137, 0.0]),
            (90.0, 0.0, [0.0, 0.0, 6_356.752_3]),
            (-90.0, 17.0, [0.0, 0.0, -6_356.752_3]),
            // Half-way: the tangent of the geocentric latitude is (1 − f)² times that of the geodetic one.
            (45.0, 0.0, [4_517.590_9, 0.0, 4_487.348_4]),
        ] {
            let position = Place::new(latitude, longitude, 0.0).position();
            let far = difference(position, wanted);
            assert!(length(far) < 1e-3, "{latitude} {longitude}: {position:?}");
        }
        let high = Place::new(0.0, 0.0, 2.0).position();
        assert_eq!(high, [6380.137, 0.0, 0.0]);
    }

    #[test]
    fn elevations_are_those_above_the_local_horizon() {
        let place = Place::new(0.0, 0.0, 0.0);
        for (satellite, degrees) in [
            ([7000.0, 0.0, 0.0], 90.0),
            ([6378.137, 500.0, 0.0], 0.0),
            ([6878.137, 0.0, 500.0], 45.0),
            ([-7000.0, 0.0, 0.0], -90.0),
        ] {
            assert!((elevation_degrees(&place, satellite) - degrees).abs() < 1e-9);
        }
    }

    #[test]
    fn the_earth_turns_eastwards() {
        // A satellite that stands still drifts west over the ground: a quarter turn in six sidereal hours.
        let after = earth_fixed([7000.0, 0.0, 1.0], ROTATION * 86_164.1 / 4.0);
        assert!((after[0]).abs() < 0.1 && (after[1] + 7000.0).abs() < 0.1 && after[2] == 1.0, "{after:?}");
    }
}
