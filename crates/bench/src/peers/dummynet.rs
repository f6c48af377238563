//! A peer that can't run here, with the reason.

use super::program::find;
use super::testbed::Testbed;
use super::{Carrier, Job, Peer, PeerAbilities};
use crate::BenchError;

/// FreeBSD's emulator.
pub struct Dummynet;

impl Peer for Dummynet {
    fn abilities(&self) -> PeerAbilities {
        PeerAbilities { name: "dummynet", ..PeerAbilities::default() }
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
        Err(BenchError::NotHere(format!("{} is not run by this bench", self.abilities().name)))
    }
}
