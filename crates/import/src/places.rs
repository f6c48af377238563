//! Places by their coordinates: a list of names, latitudes and longitudes, from which delays are computed as
//! those of a fibre along the great circle.

use super::{ImportError, Result};
use longwire_units::Nanos;

/// Mean radius of the Earth in km (IUGG): a great circle of that sphere is within 0.6 % of the ellipsoid's.
const RADIUS_KM: f64 = 6_371.008_8;
/// Speed of light in a fibre in km/s: in vacuum, by the group index 1.468 of ITU-T G.652 fibres at 1550 nm.
const FIBRE_KM_PER_S: f64 = 299_792.458 / 1.468;

/// A place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) name: String,
    latitude: f64,
    longitude: f64,
}

/// The columns of a list of places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Columns {
    name: usize,
    latitude: usize,
    longitude: usize,
    /// How much longer routes are than great circles.
    detour: f64,
}

impl Columns {
    /// The columns that the first line names; none if it names no coordinates.
    ///
    /// # Errors
    /// The detour is no number from 1 to 10.
    pub(super) fn of(line: usize, head: &[String]) -> Result<Option<Self>> {
        let find = |names: &[&str]| head.iter().position(|cell| names.contains(&&*cell.to_lowercase()));
        let latitude = find(&["latitude", "lat", "lat."]);
        let longitude = find(&["longitude", "lon", "lon.", "lng", "long", "long."]);
        let (Some(latitude), Some(longitude)) = (latitude, longitude) else { return Ok(None) };
        let is_other = |at: &usize| *at != latitude && *at != longitude;
        let Some(name) = (0..head.len()).find(is_other) else {
            return Err(ImportError::new(line, "the places have no column with names", "add one in front"));
        };
        let detour =
            head.iter().find_map(|cell| Some(cell.to_lowercase().strip_prefix("detour")?.trim().to_owned()));
        let Some(detour) = detour else { return Ok(Some(Self { name, latitude, longitude, detour: 1.0 })) };
        match detour.parse::<f64>() {
            Ok(detour) if (1.0..=10.0).contains(&detour) => {
                Ok(Some(Self { name, latitude, longitude, detour }))
            }
            _ => {
                let what = format!("\"detour {detour}\" is no factor from 1 to 10");
                Err(ImportError::new(line, what, "write detour 1.5"))
            }
        }
    }

    /// Whether no detour was given.
    pub(super) fn is_straight(&self) -> bool {
        self.detour == 1.0
    }

    /// The place of a line.
    ///
    /// # Errors
    /// A cell is missing, or is no coordinate in degrees.
    pub(super) fn place(&self, line: usize, cells: &[String]) -> Result<Place> {
        let coordinate = |at: usize, most: f64| {
            let cell = cells.get(at).map_or("", |cell| cell.as_str());
            let value = cell.trim_end_matches('\u{b0}').trim().parse::<f64>().ok();
            value.filter(|value| value.abs() <= most).ok_or_else(|| {
                let what = format!("\"{cell}\" is no coordinate from -{most} to {most}");
                ImportError::new(line, what, "write degrees, such as 59.91, with - for south and west")
            })
        };
        let name = cells.get(self.name).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| ImportError::new(line, "the place has no name", "write one"))?;
        let latitude = coordinate(self.latitude, 90.0)?;
        Ok(Place { line, name: name.clone(), latitude, longitude: coordinate(self.longitude, 180.0)? })
    }

    /// The delay of one direction between two places, rounded to a microsecond.
    pub(super) fn delay(&self, one: &Place, other: &Place) -> Nanos {
        let seconds = great_circle_km(one, other) * self.detour / FIBRE_KM_PER_S;
        Nanos((seconds * 1e6).round() as u64 * 1000)
    }
}

/// By the haversine formula, which is exact for near places, too.
fn great_circle_km(one: &Place, other: &Place) -> f64 {
    let half_sine = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin().powi(2);
    let cosines = one.latitude.to_radians().cos() * other.latitude.to_radians().cos();
    let squared =
        half_sine(one.latitude, other.latitude) + cosines * half_sine(one.longitude, other.longitude);
    2.0 * RADIUS_KM * squared.clamp(0.0, 1.0).sqrt().asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    fn place(latitude: f64, longitude: f64) -> Place {
        Place { line: 1, name: "x".into(), latitude, longitude }
    }

    /// A quarter of the sphere's circumference is 10 007.6 km; London to New York is 5570 km.
    #[test]
    fn distances_are_great_circles() {
        for (one, other, kilometres) in [
            (place(0.0, 0.0), place(0.0, 90.0), 10_007.6),
            (place(90.0, 0.0), place(-90.0, 50.0), 20_015.1),
            (place(0.0, 179.5), place(0.0, -179.5), 111.2),
            (place(51.5074, -0.1278), place(40.7128, -74.006), 5570.0),
            (place(10.0, 20.0), place(10.0, 20.0), 0.0),
        ] {
            let found = great_circle_km(&one, &other);
            assert!((found - kilometres).abs() < 0.5, "{found} km instead of {kilometres} km");
        }
    }

    #[test]
    fn delays_are_those_of_a_fibre() {
        let columns = Columns::of(1, &words("city,lat,lon,detour 1.5")).unwrap().unwrap();
        // 5570 km · 1.5 · 1.468 / 299 792 km/s.
        let delay = columns.delay(&place(51.5074, -0.1278), &place(40.7128, -74.006));
        assert!((delay.0 as f64 / 1e6 - 40.91).abs() < 0.02, "{delay}");
        assert!(!columns.is_straight());
        assert_eq!(Columns::of(1, &words("x,a,b")).unwrap(), None);
        for (head, wanted) in [("lat,lon", "no column with names"), ("a,lat,lon,detour 0.5", "no factor")] {
            let error = Columns::of(1, &words(head)).unwrap_err().to_string();
            assert!(error.contains(wanted), "{head}: {error}");
        }
        for (cells, wanted) in [
            ("a,91,0", "no coordinate from -90"),
            ("a,1", "no coordinate"),
            (",1,2", "no name"),
            ("a,1,NaN", "no coor"),
        ] {
            let error = columns.place(7, &words(cells)).unwrap_err().to_string();
            assert!(error.starts_with("line 7: ") && error.contains(wanted), "{cells}: {error}");
        }
    }
}
