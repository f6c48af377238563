//! A link's place at a medium.

/// A link's place at a medium.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StationRef {
    pub medium: u32,
    pub station: u32,
}
