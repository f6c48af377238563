//! How long satellites stay above stations.

use crate::request::Request;
use longwire_units::Nanos;

/// The first hour is looked at: passes of low satellites take minutes.
const LONGEST_LOOK_S: u32 = 3600;
/// Time between two looks.
const LOOK_S: u32 = 5;

/// For each station, the longest time for which one satellite stays above its minimum elevation, rounded down
/// to five seconds, within the first hour of the request's duration.
pub(crate) fn longest_passes(request: &Request) -> Vec<Nanos> {
    let until = (request.duration.0 / 1_000_000_000).min(u64::from(LONGEST_LOOK_S)) as u32;
    let mut longest = vec![0_u32; request.stations.len()];
    for satellite in 0..request.sky.satellites() {
        let mut current = vec![0_u32; request.stations.len()];
        for second in (0..=until).step_by(LOOK_S as usize) {
            // Its position is computed once for all stations: that takes longest.
            let position = request.sky.position(satellite, f64::from(second));
            for ((station, current), longest) in request.stations.iter().zip(&mut current).zip(&mut longest) {
                let is_above = position.is_some_and(|position| station.sees(position));
                *current = if is_above { *current + 1 } else { 0 };
                *longest = (*longest).max(*current);
            }
        }
    }
    let time = |looks: u32| Nanos::from_secs(u64::from(LOOK_S) * u64::from(looks.saturating_sub(1)));
    longest.into_iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn each_station_has_passes_of_its_own() {
        let mut text = "duration = \"15 min\"\n[walker]\npattern = \"delta\"\ninclination = 53\n\
            satellites = 220\nplanes = 20\nphasing = 3\naltitude-km = 550\n"
            .to_owned();
        for (name, latitude) in [("north", 85), ("near", 52), ("far", 42)] {
            write!(text, "[[station]]\nname = \"{name}\"\nlatitude = {latitude}\nlongitude = 11\n").unwrap();
        }
        text += "[[path]]\nbetween = [\"near\", \"far\"]\nvia = \"bent-pipe\"\n";
        let request = Request::read("c.toml", &text).unwrap();
        let passes = longest_passes(&request);
        assert!(passes[0] == Nanos::ZERO && passes[1] > Nanos::ZERO && passes[2] > Nanos::ZERO, "{passes:?}");
        for (station, pass) in request.stations.iter().zip(&passes) {
            let alone = Request { stations: vec![station.clone()], ..request.clone() };
            assert_eq!(longest_passes(&alone), [*pass], "{}", station.name);
        }
    }
}
