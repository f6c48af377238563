//! The satellites of a request, wherever their orbits come from.

use crate::Fault;
use crate::bounds::Shell;
use crate::earth::{ROTATION, earth_fixed};
use crate::orbit::CircularOrbit;
use crate::tle::ElementSets;
use crate::vector::Vector;
use crate::walker::Walker;

/// Satellites that move.
#[derive(Debug, Clone)]
pub struct Sky(Orbits);

#[derive(Debug, Clone)]
enum Orbits {
    Walker(Walker, Vec<CircularOrbit>),
    Elements(ElementSets),
}

impl Sky {
    /// The satellites of a Walker constellation.
    pub fn of_walker(walker: Walker) -> Self {
        Self(Orbits::Walker(walker, walker.orbits()))
    }

    /// The satellites of a file of two-line elements, from `start` on; see the request's keys.
    ///
    /// # Errors
    /// The fault, with its line, and its fix.
    pub fn of_elements(text: &str, start: Option<&str>) -> Result<Self, Fault> {
        ElementSets::read(text, start).map(Orbits::Elements).map(Self)
    }

    /// How many satellites there are.
    pub fn satellites(&self) -> usize {
        match &self.0 {
            Orbits::Walker(_, orbits) => orbits.len(),
            Orbits::Elements(sets) => sets.len(),
        }
    }

    /// The constellation, if it is Walker's.
    pub const fn walker(&self) -> Option<&Walker> {
        match &self.0 {
            Orbits::Walker(walker, _) => Some(walker),
            Orbits::Elements(_) => None,
        }
    }

    /// Where Walker's satellites are.
    pub fn shell(&self) -> Option<Shell> {
        let Walker { altitude_km, inclination_degrees, .. } = *self.walker()?;
        Some(Shell { altitude_km, inclination_degrees })
    }

    /// Name of a satellite: of Walker's, its plane and its slot.
    pub fn name(&self, satellite: usize) -> String {
        match &self.0 {
            Orbits::Walker(walker, _) => {
                let size = walker.in_a_plane() as usize;
                format!("{}-{}", satellite / size, satellite % size)
            }
            Orbits::Elements(sets) => sets.name(satellite).to_owned(),
        }
    }

    /// Where a satellite is `seconds` after the start, in km and coordinates that turn with the Earth; none
    /// if it has fallen down.
    pub fn position(&self, satellite: usize, seconds: f64) -> Option<[f64; 3]> {
        match &self.0 {
            Orbits::Walker(_, orbits) => {
                Some(earth_fixed(orbits[satellite].position(seconds), ROTATION * seconds))
            }
            Orbits::Elements(sets) => sets.position(satellite, seconds),
        }
    }

    /// Where all satellites are.
    pub(crate) fn positions(&self, seconds: f64) -> Vec<Option<Vector>> {
        (0..self.satellites()).map(|satellite| self.position(satellite, seconds)).collect()
    }

    /// A description in a few words.
    pub fn description(&self) -> String {
        match &self.0 {
            Orbits::Walker(walker, _) => walker.to_string(),
            Orbits::Elements(sets) => format!("{} satellites by their two-line elements", sets.len()),
        }
    }
}
