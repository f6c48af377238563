//! Rings in the process.

use crate::driver::prices;
use crate::{Backend, Driver};
use longwire_settings::Settings;

/// Rings in the process, for benchmarks and tests.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "memory", source = "Longwire's own")]
pub struct Memory {}

/// Its row.
pub const DRIVER: Driver = Driver {
    spec: Memory::SPEC,
    backend: Backend::Process,
    host: None,
    prices: prices!("memory", receive: 10_000 + 20 a byte, transmit: 10_000 + 20 a byte),
    lighter: None,
};
