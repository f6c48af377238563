//! A scenario of a service: started, changed by its file, saved, stopped.

use crate::event_log::{EventLog, Field};
use crate::keeper::{Keeper, log_unsaved};
use crate::scenarios::NamedScenario;
use crate::state::{SavedState, Survives};
use anyhow::Context;
use longwire_control::{Instance, Made, ScenarioRequest, Web};
use longwire_report::output::chain;
use longwire_run::fitted::fit_pool;
use longwire_run::instance::RunningInstance;
use longwire_run::real_run::{RealOptions, RealRun, RealRunOutcome};
use longwire_run::records::RecordOptions;
use longwire_run::test_hosts::{TestHosts, gain_privileges};
use longwire_scenario::Plan;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// A scenario ready to start.
pub struct PreparedScenario {
    named: NamedScenario,
    plan: Plan,
    state: Option<Arc<SavedState>>,
}

/// A scenario that runs or has run.
pub struct ServedScenario {
    named: NamedScenario,
    state: Option<Arc<SavedState>>,
    run: Option<RealRun>,
}

impl PreparedScenario {
    /// Reads a scenario, or its saved state, and acquires the privileges it needs.
    ///
    /// # Errors
    /// If it has errors, or can't run here.
    pub fn new(named: NamedScenario, states: Option<&Path>, log: &EventLog) -> anyhow::Result<Self> {
        let file = named.file.display().to_string();
        let field: Field<'_> = ("scenario", named.name.clone().into());
        let read = longwire_scenario::read_text(&named.file).map_err(anyhow::Error::from);
        let parsed = read.and_then(|text| Ok((longwire_scenario::parse(&file, &text)?, text)));
        let state = states.map(|folder| SavedState::open(folder, &named.name)).transpose()?;
        let last = match (&state, &parsed) {
            (Some(state), Ok((_, text))) => state.last_of(text)?,
            // A file that can't be read, or has mistakes, is no reason to stop what ran.
            (Some(state), Err(_)) => state.last()?,
            (None, _) => None,
        };
        let restored = last.map(|last| longwire_scenario::parse(&file, &last));
        let mut plan = match (restored, parsed) {
            (Some(Ok(of_state)), parsed) => {
                if let Err(error) = parsed {
                    log.error("not-read", &[field.clone(), ("error", chain(error.as_ref()).into())]);
                }
                log.info("restored", std::slice::from_ref(&field));
                of_state
            }
            (Some(Err(error)), Ok((plan, _))) => {
                log.error("not-restored", &[field.clone(), ("error", error.to_string().into())]);
                plan
            }
            (_, parsed) => parsed?.0,
        };
        fit_pool(&mut plan);
        let notes: Vec<_> = plan.notes.iter().map(ToString::to_string).collect();
        for note in notes.into_iter().chain(gain_privileges(&mut plan)?) {
            log.warning("note", &[field.clone(), ("note", note.into())]);
        }
        Ok(Self { named, plan, state: state.map(Arc::new) })
    }

    /// Starts it. A group may use its API, besides this user, and the TCP server.
    ///
    /// # Errors
    /// If its hosts can't be made, its ports not opened, or its state not written.
    pub fn start(
        self,
        (group, web): (Option<u32>, Option<Web>),
        records: &RecordOptions,
        log: &Arc<EventLog>,
    ) -> anyhow::Result<ServedScenario> {
        let Self { named, plan, state } = self;
        let failed = || format!("can't start \"{}\"", named.name);
        let links = plan.links.len();
        let hosts = TestHosts::make(&named.name, &plan).with_context(failed)?;
        let (told, noticed) = channel();
        let (name, records) = (named.name.clone(), records.of_scenario(&named.name));
        let options = RealOptions { name, group, told: Some(told), web, records, ..RealOptions::default() };
        let run = RealRun::start(plan, hosts, options).with_context(failed)?;
        let _kept_off = run.keep_off();
        if let Some(state) = &state {
            state.write(run.instance(), Survives::PowerCut)?;
        }
        let keeper = Keeper {
            instance: Arc::downgrade(run.instance()),
            name: named.name.clone(),
            state: state.as_ref().map(Arc::downgrade),
            log: Arc::clone(log),
        };
        keeper.start(noticed).context("the thread that keeps the state")?;
        let socket = run.socket().map(|path| path.display().to_string()).unwrap_or_default();
        let address = run.web().map(|web| web.address().to_string());
        let served = ServedScenario { named, state, run: Some(run) };
        let file = served.named.file.display().to_string();
        let mut fields =
            vec![served.field(), ("file", file.into()), ("links", links.into()), ("socket", socket.into())];
        fields.extend(address.map(|address| ("address", address.into())));
        log.info("started", &fields);
        Ok(served)
    }
}

/// A line about what runs, for the service manager; `what` they are called if they are many.
pub fn status(all: &[ServedScenario], what: &str) -> String {
    let names: Vec<&str> = all.iter().filter(|served| served.runs()).map(ServedScenario::name).collect();
    match names.len() {
        0..=8 => format!("running {}", names.join(", ")),
        count => format!("running {count} {what}"),
    }
}

impl ServedScenario {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.named.name
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.run.is_some()
    }

    /// Whether a worker has ended by itself.
    pub fn is_broken(&self) -> bool {
        self.run.as_ref().is_some_and(RealRun::has_ended)
    }

    /// Whether its end was requested over its API.
    pub fn is_asked_to_stop(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.stopped().try_recv().is_ok())
    }

    /// Logs which of its files can't be written any more, once for each.
    pub fn log_record_faults(&self, log: &EventLog) {
        let faults = self.run.as_ref().map(|run| run.instance().record_faults().take_new());
        for fault in faults.into_iter().flatten() {
            log.error("not-recorded", &[self.field(), ("error", fault.into())]);
        }
    }

    /// Whether its workers answer, if it runs.
    pub fn answers(&self) -> bool {
        self.run.as_ref().is_none_or(|run| run.instance().flow().is_ok())
    }

    /// Reads its file again and applies it.
    pub fn read_again(&self, log: &EventLog) {
        let Some(run) = &self.run else { return };
        let read = longwire_scenario::read_text(&self.named.file).map_err(|error| error.to_string());
        let applied = read.and_then(|toml| {
            let wanted = ScenarioRequest { toml, partial: false };
            let made = run.instance().apply(&wanted).and_then(Made::wait);
            let file = self.named.file.display().to_string();
            Ok((made.map_err(|error| error.in_file(&file))?.count(), wanted.toml))
        });
        match applied {
            Ok((changed, toml)) => {
                if let Some(state) = &self.state {
                    state.give(&toml);
                }
                self.save(log);
                log.info("reloaded", &[self.field(), ("changed", changed.into())]);
            }
            Err(error) => log.error("not-reloaded", &[self.field(), ("error", error.into())]),
        }
    }

    /// The instance behind its API, while it runs.
    pub fn instance(&self) -> Option<&Arc<RunningInstance>> {
        self.run.as_ref().map(RealRun::instance)
    }

    /// Ends it, logs its outcome, and returns that if it has run until now.
    pub fn stop(&mut self, log: &EventLog) -> Option<RealRunOutcome> {
        self.save(log);
        self.state = None;
        let ended = self.run.take()?.stop();
        let mut fields = vec![
            self.field(),
            ("elapsed_ns", ended.elapsed.0.into()),
            ("in", ended.counted.flow.taken.into()),
            ("out", ended.counted.flow.sent.into()),
        ];
        let fidelity = ended.counted.fidelity.as_ref();
        fields.extend(fidelity.map(|fidelity| ("faithful", fidelity.faithful.into())));
        fields.extend(ended.recorded.fields());
        log.info("stopped", &fields);
        for error in &ended.counted.errors {
            log.error("failed", &[self.field(), ("error", error.clone().into())]);
        }
        Some(ended)
    }

    fn save(&self, log: &EventLog) {
        if let (Some(state), Some(run)) = (&self.state, &self.run) {
            log_unsaved(state.write(run.instance(), Survives::PowerCut), self.field(), log);
        }
    }

    fn field(&self) -> Field<'static> {
        ("scenario", self.named.name.clone().into())
    }
}
