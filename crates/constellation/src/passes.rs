//! How long satellites stay above a station.

use crate::earth::elevation_degrees;
use crate::request::{Request, Station};
use longwire_units::Nanos;

/// The first hour is looked at: passes of low satellites take minutes.
const LONGEST_LOOK_S: u32 = 3600;
/// Time between two looks.
const LOOK_S: u32 = 5;

/// The longest time for which one satellite stays above the station's minimum elevation, rounded down to five
/// seconds, within the first hour of the request's duration.
pub(crate) fn longest_pass(request: &Request, station: &Station) -> Nanos {
    let until = (request.duration.0 / 1_000_000_000).min(u64::from(LONGEST_LOOK_S)) as u32;
    let of_satellite = |satellite: usize| {
        let (mut longest, mut current) = (0, 0);
        for second in (0..=until).step_by(LOOK_S as usize) {
            let position = request.sky.position(satellite, f64::from(second));
            let is_above = position.is_some_and(|position| {
                elevation_degrees(&station.place, position) >= station.minimum_elevation
            });
            current = if is_above { current + 1 } else { 0 };
            longest = longest.max(current);
        }
        longest
    };
    let most: u32 = (0..request.sky.satellites()).map(of_satellite).max().unwrap_or(0);
    Nanos::from_secs(u64::from(LOOK_S) * u64::from(most.saturating_sub(1)))
}
