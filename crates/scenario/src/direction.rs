//! Directions of profiles.

/// A direction of a link with a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the user: down.
    Forward,
    /// From the user: up.
    Backward,
}

impl Direction {
    /// The suffix of a profile's name that selects this direction.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Forward => ".forward",
            Self::Backward => ".backward",
        }
    }

    /// A profile's name without the suffix that selects a direction, and that direction.
    pub fn split(name: &str) -> (&str, Option<Self>) {
        let selected = |way: Self| Some((name.strip_suffix(way.suffix())?, Some(way)));
        selected(Self::Forward).or_else(|| selected(Self::Backward)).unwrap_or((name, None))
    }
}
