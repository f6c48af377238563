//! Settings of links, traffic sources, changes, and access by frames.

use crate::words::{NespAllow, Only};
use longwire_settings::Settings;
use longwire_units::Nanos;

/// Settings of a link besides its blocks.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "link", kind = "link", source = "Longwire's own")]
pub(crate) struct LinkSettings {
    /// Its exclusive senders: with "programs", only packets that programs of the router at its start send
    /// into it take it.
    #[setting(default_is = "all packets take it")]
    pub only: Option<Only>,
    /// Keeps a histogram of lateness.
    #[setting(default = "no")]
    pub histogram: bool,
}

/// Settings of one direction of a duplex link besides its blocks.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "link", kind = "forward and backward", source = "Longwire's own")]
pub(crate) struct DirectionSettings {
    /// Keeps a histogram of lateness.
    #[setting(default_is = "as the link says")]
    pub histogram: Option<bool>,
}

/// Settings of a traffic source besides its model.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "source", kind = "source", source = "Longwire's own")]
pub(crate) struct SourceSettings {
    /// Time of the first frame.
    #[setting(default = "0 ms", max = Nanos::NEVER)]
    pub start: Nanos,
    /// Draws exponential gaps with the mean that rate or interval give: another way to write model =
    /// "poisson".
    #[setting(default_is = "as model says")]
    pub poisson: Option<bool>,
}

/// The time of a change, its duration, and its repetitions.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "at", kind = "at", source = "Longwire's own")]
pub(crate) struct AtSettings {
    /// When, from the start of the run.
    #[setting(max = Nanos::NEVER)]
    pub time: Nanos,
    /// Duration of the change: values move in steps from the current to the given ones.
    #[setting(default_is = "at once", min = Nanos(1), max = Nanos::NEVER)]
    pub ramp: Option<Nanos>,
    /// Time between the steps of a ramp.
    #[setting(
        default_is = "100 ms, or a fiftieth of the ramp if that is less",
        min = Nanos(1),
        max = Nanos::NEVER
    )]
    pub step: Option<Nanos>,
    /// Time between repetitions.
    #[setting(default_is = "none", min = Nanos(1), max = Nanos::NEVER)]
    pub every: Option<Nanos>,
    /// Number of times.
    #[setting(default_is = "with every, until the run ends", min = 1, max = u64::MAX)]
    pub times: Option<u64>,
    /// Lets removed links send what they hold, instead of dropping it.
    #[setting(default = "no")]
    pub drain: bool,
    /// Weight of the flow from then on.
    #[setting(default_is = "as before", min = 1, max = 65_535)]
    pub weight: Option<u16>,
}

/// Access to settings by frames.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "nesp", kind = "nesp", source = "Longwire's own")]
pub(crate) struct NespSettings {
    /// Operations allowed by frames: reading settings ("get"), or changing them as well ("set").
    #[setting(default = "set")]
    pub allow: NespAllow,
}
