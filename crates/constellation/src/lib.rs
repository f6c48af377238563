//! Satellite constellations: from orbits and ground stations to a scenario whose links follow traces.
//!
//! [`Request`] is what a file or a command line asks for. [`generate`] computes, for each path between two
//! stations, its delay and its state over time, and writes a scenario and the traces that it names. The
//! models, their errors and the published figures that tests compare are in `docs/book/constellations.md`.
//!
//! Lengths are kilometres, angles are radians unless a name says degrees, and times are seconds in the
//! geometry and nanoseconds in the results.
#![forbid(unsafe_code)]

mod bounds;
mod earth;
mod elevations;
mod grid;
mod orbit;
mod passes;
mod request;
mod rows;
mod schedule;
mod sky;
mod text;
mod tle;
mod vector;
mod walker;

pub use bounds::{Shell, slant_range_km};
pub use earth::{Place, elevation_degrees};
pub use elevations::{Elevations, Sight};
pub use orbit::{CircularOrbit, EARTH_RADIUS_KM, period_s};
pub use request::{ConstellationError, Medium, Path, Request, Station};
pub use schedule::Schedule;
pub use sky::Sky;
pub use walker::{Pattern, Walker};

use longwire_report::Row;
use longwire_units::Nanos;
use passes::longest_passes;
use schedule::schedules;

/// Speed of light in vacuum, in km/s (exact, SI).
pub const LIGHT_KM_PER_S: f64 = 299_792.458;

/// A fault and its fix.
type Fault = (String, String);

/// An error with a fault and its fix, unless something is as it must be.
fn ensure(is_good: bool, what: impl Into<String>, fix: impl Into<String>) -> Result<(), Fault> {
    if is_good { Ok(()) } else { Err((what.into(), fix.into())) }
}

/// A file of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Its name in the folder.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// The result: files, and what to compare with published figures.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The scenario, which is called `constellation.toml`, and its traces.
    pub files: Vec<GeneratedFile>,
    /// What each path of the request does over time, in the request's order; none for a path on the ground.
    pub schedules: Vec<Option<Schedule>>,
    /// For each station, the longest time for which one satellite stays above its minimum elevation, within
    /// the first hour.
    pub longest_passes: Vec<Nanos>,
}

impl Generated {
    /// The period of the satellites, the longest pass above each station, and the delays, outages and
    /// handovers of each path, beside what geometry allows.
    pub fn rows(&self, request: &Request) -> Vec<Row> {
        rows::rows(request, self)
    }
}

/// Computes schedules, and writes the scenario.
pub fn generate(request: &Request) -> Generated {
    let schedules = schedules(request);
    let files = text::files(request, &schedules);
    Generated { files, schedules, longest_passes: longest_passes(request) }
}
