//! Demonstrations on test hosts, or in virtual time where those are impossible: a link with what ping, UDP
//! and TCP measure of it, and flows that share a router's processor.
#![forbid(unsafe_code)]

mod criteria;
pub mod fairness;
mod fairness_traffic;
pub mod link;
mod measured;
mod simulated;

use longwire_drivers::HostDriver;
use longwire_lab::{LabError, abilities, enter_user_namespace};
use longwire_report::output::note;
use longwire_run::test_hosts::usual_driver;

/// How a demo can run on this system.
#[derive(Debug, Clone)]
pub enum Mode {
    /// On test hosts with this wiring.
    Real(HostDriver),
    /// In virtual time, for this reason.
    Virtual(String),
}

impl Mode {
    /// Enters a user namespace if test hosts are only possible there. Must be called before a second thread
    /// starts.
    ///
    /// # Errors
    /// If the system refuses to enter it.
    pub fn find() -> Result<Self, LabError> {
        let can = abilities();
        if !can.namespaces.available {
            if !can.user_namespaces.available {
                let reasons = format!("{}; {}", can.namespaces.reason, can.user_namespaces.reason);
                return Ok(Self::Virtual(reasons));
            }
            enter_user_namespace()?;
        }
        Ok(Self::Real(usual_driver()))
    }
}

/// Modes in reports.
const REAL: &str = "real";
const VIRTUAL: &str = "virtual";

/// A line of progress.
fn say(what: &str) {
    note(&format!("· {what}"));
}

/// Says why there are no hosts.
fn say_virtual(reason: &str) {
    say(&format!("in virtual time, with traffic sources instead of programs: {reason}"));
}
