//! The scenario's traffic sources.

use crate::{Backend, Driver, Prices};
use longwire_settings::Settings;

/// Traffic sources of the scenario. What goes out is counted and forgotten.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "source", source = "Longwire's own")]
pub struct Source {}

/// Its row.
pub const DRIVER: Driver = Driver {
    spec: Source::SPEC,
    backend: Backend::Sources,
    host: None,
    prices: Prices::Of("memory"),
    lighter: None,
};
