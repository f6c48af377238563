//! Two-line elements, propagated by SGP4.

use chrono::{DateTime, NaiveDateTime};
use sgp4::{Constants, Elements, MinutesSinceEpoch, iau_epoch_to_sidereal_time, julian_years_since_j2000};

use crate::earth::{ROTATION, earth_fixed};
use crate::vector::Vector;
use crate::{Fault, ensure};

/// Most satellites.
pub(crate) const MOST_SATELLITES: usize = 20_000;

/// Longest distance of the start from a satellite's epoch, in days: beyond it SGP4 is off by far more than
/// a satellite's pass.
const MOST_DAYS: i64 = 30;

/// Satellites by their elements.
#[derive(Debug, Clone)]
pub(crate) struct ElementSets {
    satellites: Vec<Satellite>,
    /// Rotation of the Earth at the start (mean sidereal time, IAU 1982), in radians.
    sidereal: f64,
}

#[derive(Debug, Clone)]
struct Satellite {
    name: String,
    constants: Constants,
    /// Minutes from its epoch to the start.
    minutes: f64,
}

impl ElementSets {
    /// Reads a file of elements: two lines each, with or without a line with the name before them. Time 0 is
    /// `start`, in UTC; without it the newest epoch in the file.
    ///
    /// # Errors
    /// The fault and its fix; lines count from 1.
    pub(crate) fn read(text: &str, start: Option<&str>) -> Result<Self, Fault> {
        let all = elements(text)?;
        let start = match start {
            Some(text) => moment(text)?,
            None => all.iter().map(|(_, one)| one.datetime).max().unwrap_or_default(),
        };
        let mut satellites = Vec::new();
        for (line, one) in all {
            let away = (start - one.datetime).num_days().abs();
            let what = format!("line {line}: the elements are {away} days from the start, {start}");
            ensure(away <= MOST_DAYS, what, format!("take elements of at most {MOST_DAYS} days from it"))?;
            let failed = |why: String| {
                let what = format!("line {line}: the orbit can't be computed: {why}");
                (what, "leave that satellite out".to_owned())
            };
            let constants = Constants::from_elements(&one).map_err(|error| failed(error.to_string()))?;
            let minutes =
                one.datetime_to_minutes_since_epoch(&start).map_err(|error| failed(error.to_string()))?.0;
            let name = one.object_name.unwrap_or_else(|| one.norad_id.to_string());
            satellites.push(Satellite { name, constants, minutes });
        }
        let sidereal = iau_epoch_to_sidereal_time(julian_years_since_j2000(&start));
        Ok(Self { satellites, sidereal })
    }

    pub(crate) const fn len(&self) -> usize {
        self.satellites.len()
    }

    /// The satellite's name.
    pub(crate) fn name(&self, satellite: usize) -> &str {
        &self.satellites[satellite].name
    }

    /// Where a satellite is, in coordinates that turn with the Earth; none if its orbit has decayed.
    pub(crate) fn position(&self, satellite: usize, seconds: f64) -> Option<Vector> {
        let Satellite { constants, minutes, .. } = &self.satellites[satellite];
        let found = constants.propagate(MinutesSinceEpoch(minutes + seconds / 60.0)).ok()?;
        let is_real = found.position.iter().all(|coordinate| coordinate.is_finite());
        is_real.then(|| earth_fixed(found.position, self.sidereal + ROTATION * seconds))
    }
}

/// A time in UTC.
fn moment(text: &str) -> Result<NaiveDateTime, Fault> {
    DateTime::parse_from_rfc3339(text).map(|time| time.naive_utc()).map_err(|error| {
        (format!("start: {text:?} is no time: {error}"), "write it as 2026-11-26T12:00:00Z".into())
    })
}

/// The elements of a file, each with the number of its first line.
fn elements(text: &str) -> Result<Vec<(usize, Elements)>, Fault> {
    const COPY: &str = "copy both lines whole, with their checksums";
    let mut lines = text.lines().map(str::trim_end).enumerate().filter(|(_, line)| !line.is_empty());
    let (mut found, mut name) = (Vec::new(), None);
    while let Some((at, line)) = lines.next() {
        if !line.starts_with("1 ") {
            let what = format!("line {}: this is no first line of a satellite's elements", at + 1);
            let fix = "write a name, and two lines that begin with 1 and 2";
            ensure(name.is_none() && !line.starts_with("2 "), what, fix)?;
            name = Some(line.trim().trim_start_matches("0 ").to_owned());
            continue;
        }
        let second = lines.next().map_or("", |(_, line)| line);
        // The reader of elements takes it for a digit.
        let [first, second] = [line, second].map(str::as_bytes);
        let are_digits = [first, second].iter().all(|line| line.get(68).is_none_or(u8::is_ascii_digit));
        let what = format!("line {}: a checksum, the 69th character, is no digit", at + 1);
        ensure(are_digits, what, COPY)?;
        let read = Elements::from_tle(name.take(), first, second);
        let read = read.map_err(|error| (format!("line {}: {error}", at + 1), COPY.to_owned()))?;
        let what = format!("line {}: there are more than {MOST_SATELLITES} satellites", at + 1);
        ensure(found.len() < MOST_SATELLITES, what, "leave some out")?;
        found.push((at + 1, read));
    }
    let fix = "copy a list of two-line elements into the file";
    ensure(!found.is_empty(), "there are no elements in it", fix)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::length;
    use proptest::prelude::*;

    /// The example of NASA's and Wikipedia's pages on the format.
    const ISS: &str = "ISS (ZARYA)\n\
        1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
        2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";

    #[test]
    fn a_satellite_moves_as_its_elements_say() {
        let sets = ElementSets::read(ISS, None).unwrap();
        assert_eq!((sets.len(), sets.name(0)), (1, "ISS (ZARYA)"));
        // 15.72 revolutions a day are some 350 km of altitude; the inclination is the highest latitude.
        let heights = (0..92).map(|minute| {
            let position = sets.position(0, f64::from(minute) * 60.0).unwrap();
            let latitude = (position[2] / length(position)).asin().to_degrees();
            assert!(latitude.abs() < 51.7, "{latitude}");
            length(position) - 6371.0
        });
        heights.for_each(|height| assert!((330.0..380.0).contains(&height), "{height} km"));
    }

    #[test]
    fn the_start_is_a_moment_near_the_epoch() {
        let later = ElementSets::read(ISS, Some("2008-09-21T12:25:40Z")).unwrap();
        let start = ElementSets::read(ISS, None).unwrap();
        // The epoch is day 264.51782528 of 2008: 20 September, 12:25:40.1 UTC. A day later it is elsewhere.
        assert!((later.satellites[0].minutes - 1440.0).abs() < 0.01, "{}", later.satellites[0].minutes);
        let forth = start.position(0, 86_399.9).unwrap();
        let back = later.position(0, 0.0).unwrap();
        assert!(crate::vector::distance(forth, back) < 3.0, "{forth:?} {back:?}");
        for (start, wanted) in [("2009-09-21T12:25:40Z", "365 days"), ("yesterday", "is no time")] {
            let (what, _) = ElementSets::read(ISS, Some(start)).unwrap_err();
            assert!(what.contains(wanted), "{what}");
        }
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, wanted) in [
            (String::new(), "no elements"),
            (ISS.replace("2927", "2926"), "line 2: TLE parse error: Bad line checksum"),
            (ISS.lines().take(2).collect::<Vec<_>>().join("\n"), "line 2: TLE parse error: Bad line length"),
            (ISS.replace("563537", "56353-"), "line 2: a checksum, the 69th character, is no digit"),
            (format!("name\n{ISS}"), "line 2: this is no first line"),
            (ISS.lines().skip(2).collect(), "line 1: this is no first line"),
        ] {
            let (what, fix) = ElementSets::read(&text, None).unwrap_err();
            assert!(what.contains(wanted) && !fix.is_empty(), "{text}: {what}");
        }
    }

    proptest! {
        #[test]
        fn hostile_elements_never_panic(
            at in 0..150usize,
            with in "\\PC{0,3}|[0-9 .-]{1,9}",
            cut in 0..9usize,
        ) {
            let mut text = ISS.to_owned();
            let at = text.floor_char_boundary(at);
            let end = text.floor_char_boundary(at + cut).max(at);
            text.replace_range(at..end, &with);
            if let Ok(sets) = ElementSets::read(&text, None) {
                let _ = sets.position(0, 12.0);
            }
        }
    }
}
