//! An agent: a service that runs the scenarios which clients send over its API.

use crate::event_log::{EventLog, Format};
use crate::notify::{Manager, ServiceSignals};
use crate::part_files::PartFolder;
use crate::parts::{Order, Parts};
use crate::served::{PreparedScenario, ServedScenario, status};
use anyhow::Context;
use longwire_control::{Web, WebServer};
use longwire_report::output::chain;
use longwire_run::records::RecordOptions;
use longwire_run::test_hosts::sweep;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// How an agent runs.
#[derive(Debug)]
pub struct AgentOptions {
    /// Where it keeps the files of its parts.
    pub folder: PathBuf,
    /// The group whose members may use the API of its parts on this machine.
    pub group: Option<u32>,
    /// Where it serves its API, and whom.
    pub web: Web,
    /// Format of the log.
    pub log_format: Format,
}

/// Runs what clients send until a signal comes. Parts that fail do not end it.
///
/// # Errors
/// If it can't serve its API, or use its folder.
pub fn serve_agent(options: AgentOptions) -> anyhow::Result<()> {
    let AgentOptions { folder, group, web, log_format } = options;
    let log = Arc::new(EventLog::new(log_format));
    let mut manager = Manager::from_environment().context("the service manager's NOTIFY_SOCKET")?;
    let folder = PartFolder::open(&folder)?;
    let signals = ServiceSignals::catch(group)?;
    sweep()?;
    let (orders, ordered) = channel();
    let parts = Arc::new(Parts::new(folder, orders, Arc::clone(&log)));
    let server = WebServer::start_agent(web.clone(), Arc::clone(&parts) as _)?;
    let address = server.address().to_string();
    log.info("ready", &[("address", address.into()), ("pid", std::process::id().into())]);
    manager.ready("waiting for parts");
    let mut runs = Runs { parts, running: Vec::new(), group, log };
    while !signals.ask_to_stop() {
        if signals.ask_to_reload() {
            manager.reloading();
            if let Err(error) = web.read_again() {
                runs.log.error("access-not-reloaded", &[("error", error.to_string().into())]);
            }
            manager.ready(&runs.status());
        }
        if runs.follow(&ordered) {
            manager.ready(&runs.status());
        }
        if manager.is_due() && runs.running.iter().all(ServedScenario::answers) {
            manager.alive();
        }
    }
    runs.log.info("stopping", &[]);
    manager.stopping();
    // First, so that no requests reach what is ending.
    drop(server);
    runs.running.iter_mut().for_each(|served| drop(served.stop(&runs.log)));
    Ok(())
}

/// What runs, on the thread that starts and ends it.
struct Runs {
    parts: Arc<Parts>,
    running: Vec<ServedScenario>,
    group: Option<u32>,
    log: Arc<EventLog>,
}

impl Runs {
    /// Starts and ends what was ordered, and ends what has failed. Returns whether anything has changed.
    fn follow(&mut self, ordered: &Receiver<Order>) -> bool {
        let mut has_changed = false;
        while let Ok(order) = ordered.try_recv() {
            match order {
                Order::Start(name, prepared) => self.start(&name, *prepared),
                Order::End(name) => self.end(&name, None),
            }
            has_changed = true;
        }
        let broken = |served: &&ServedScenario| served.is_broken();
        if let Some(name) = self.running.iter().find(broken).map(|served| served.name().to_owned()) {
            self.end(&name, Some("a worker has failed; the agent's log says why".into()));
            has_changed = true;
        }
        // Its own API can end a part, too.
        let asked = |served: &&ServedScenario| served.is_asked_to_stop();
        if let Some(name) = self.running.iter().find(asked).map(|served| served.name().to_owned()) {
            self.end(&name, None);
            has_changed = true;
        }
        has_changed
    }

    fn start(&mut self, name: &str, prepared: PreparedScenario) {
        match prepared.start((self.group, None), &RecordOptions::default(), &self.log) {
            Ok(served) => {
                self.parts.runs(name, served.instance().cloned());
                self.running.push(served);
            }
            Err(error) => {
                let error = chain(error.as_ref());
                self.log.error("not-started", &[("scenario", name.into()), ("error", error.clone().into())]);
                self.parts.ended(name, Some(error), None);
            }
        }
    }

    /// Ends a part, if it runs, with the reason if that is a failure.
    fn end(&mut self, name: &str, failure: Option<String>) {
        let Some(place) = self.running.iter().position(|served| served.name() == name) else { return };
        let outcome = self.running.swap_remove(place).stop(&self.log);
        let report = outcome.and_then(|outcome| serde_json::to_value(outcome.ran().report()).ok());
        self.parts.ended(name, failure, report);
    }

    /// A line about them, for the service manager.
    fn status(&self) -> String {
        if self.running.is_empty() { "waiting for parts".into() } else { status(&self.running, "parts") }
    }
}
