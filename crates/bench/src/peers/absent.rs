//! Peers that this bench can't run, each with the reason.

use super::program::find;
use super::testbed::Testbed;
use super::{Carrier, Job, Peer};
use crate::BenchError;

/// What `start` answers for those that are never present.
fn never(name: &str) -> BenchError {
    BenchError::NotHere(format!("{name} is not run by this bench"))
}

/// FreeBSD's emulator.
pub struct Dummynet;

impl Peer for Dummynet {
    fn name(&self) -> &'static str {
        "dummynet"
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        let modules = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        let loaded = modules.lines().any(|line| line.starts_with("ipfw_mod "));
        let why = if loaded && find("ipfw").is_some() {
            "ipfw_mod is loaded, but it sees the whole machine's packets: this bench can't set it up"
        } else {
            "it is part of FreeBSD; its module for Linux, ipfw_mod, is not loaded and no longer kept up"
        };
        Err(why.to_owned())
    }

    fn start(&self, _: &Testbed, _: Job) -> Result<Carrier, BenchError> {
        Err(never(self.name()))
    }
}

/// Rattan, a path emulator in Rust.
pub struct Rattan;

impl Peer for Rattan {
    fn name(&self) -> &'static str {
        "Rattan"
    }

    fn presence(&self, _: &Testbed) -> Result<String, String> {
        const OWN: &str = "it makes its own hosts and interfaces, between which this bench can't measure yet";
        Err(match find("rattan") {
            Some(_) => OWN.to_owned(),
            None => format!("rattan is not in PATH; besides, {OWN}"),
        })
    }

    fn start(&self, _: &Testbed, _: Job) -> Result<Carrier, BenchError> {
        Err(never(self.name()))
    }
}
