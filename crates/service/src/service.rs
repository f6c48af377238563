//! The service: all its scenarios, from start to end.

use crate::event_log::{EventLog, Format};
use crate::notify::{Manager, ServiceSignals};
use crate::scenarios::{ScenarioArg, named};
use crate::served::{PreparedScenario, ServedScenario, status};
use crate::state;
use anyhow::Context;
use longwire_control::{Web, WebError};
use longwire_run::records::RecordOptions;
use longwire_run::test_hosts::sweep;
use std::path::PathBuf;
use std::sync::Arc;

/// What the service runs, if that is much.
const PLURAL: &str = "scenarios";

/// What a service runs, and how.
#[derive(Debug)]
pub struct ServiceOptions {
    /// Its scenarios.
    pub scenarios: Vec<ScenarioArg>,
    /// The group whose members may use the API.
    pub group: Option<u32>,
    /// Where it serves on TCP, and whom; each scenario has the port behind that of the one before.
    pub web: Option<Web>,
    /// The directory in which what runs is kept. Default: that of the environment, if any.
    pub state: Option<PathBuf>,
    /// The files that each scenario writes, after whose name they are called.
    pub records: RecordOptions,
    /// Format of the log.
    pub log_format: Format,
}

/// Runs the scenarios until a signal comes, all have been stopped, or one fails. Returns whether none has
/// failed.
///
/// # Errors
/// If a scenario has errors or can't be started; then none runs.
pub fn serve(options: ServiceOptions) -> anyhow::Result<bool> {
    let ServiceOptions { scenarios, group, web, state, records, log_format } = options;
    let log = Arc::new(EventLog::new(log_format));
    let mut manager = Manager::from_environment().context("the service manager's NOTIFY_SOCKET")?;
    let folder = state::folder(state.as_deref());
    let mut prepared = Vec::new();
    for named in named(&scenarios)? {
        // Before the first thread, since it may enter a user namespace.
        prepared.push(PreparedScenario::new(named, folder.as_deref(), &log)?);
    }
    let signals = ServiceSignals::catch(group)?;
    sweep()?;
    let mut all = Vec::new();
    for (place, one) in (0u16..).zip(prepared) {
        let of_one = |web: &Web| -> Result<Web, WebError> {
            Ok(Web { address: web.address.behind(place)?, ..web.clone() })
        };
        let web = web.as_ref().map(of_one).transpose()?;
        all.push(one.start((group, web), &records, &log)?);
    }
    log.info("ready", &[("scenarios", all.len().into()), ("pid", std::process::id().into())]);
    manager.ready(&status(&all, PLURAL));
    let is_well = watch(&mut all, (&signals, web.as_ref()), &mut manager, &log);
    manager.stopping();
    all.iter_mut().for_each(|served| drop(served.stop(&log)));
    Ok(is_well)
}

/// Waits for a signal, the failure of a scenario, or the end of all. Returns whether none has failed.
fn watch(
    all: &mut [ServedScenario],
    (signals, web): (&ServiceSignals, Option<&Web>),
    manager: &mut Manager,
    log: &EventLog,
) -> bool {
    while !signals.ask_to_stop() {
        if signals.ask_to_reload() {
            manager.reloading();
            if let Some(error) = web.and_then(|web| web.read_again().err()) {
                log.error("access-not-reloaded", &[("error", error.to_string().into())]);
            }
            all.iter().for_each(|served| served.read_again(log));
            manager.ready(&status(all, PLURAL));
        }
        all.iter().for_each(|served| served.log_record_faults(log));
        if all.iter().any(ServedScenario::is_broken) {
            // The service manager restarts it.
            return false;
        }
        if let Some(stopped) = all.iter_mut().find(|served| served.is_asked_to_stop()) {
            drop(stopped.stop(log));
            manager.ready(&status(all, PLURAL));
        }
        if !all.iter().any(ServedScenario::runs) {
            return true;
        }
        if manager.is_due() && all.iter().all(ServedScenario::answers) {
            manager.alive();
        }
    }
    log.info("stopping", &[]);
    true
}
