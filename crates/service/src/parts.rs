//! The parts of an agent, as its API shows and starts them.

use crate::event_log::EventLog;
use crate::part_files::{PartFiles, PartFolder};
use crate::scenarios::NamedScenario;
use crate::served::PreparedScenario;
use longwire_control::{Agent, AgentError, AgentState, Condition, Instance, PartRequest, PartState};
use longwire_report::output::chain;
use longwire_run::instance::RunningInstance;
use longwire_units::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most parts at a time, those that have ended included.
const MOST_PARTS: usize = 64;
/// Longest name of a part, as of instances, and of a run.
const LONGEST_NAME: usize = 32;
const LONGEST_RUN: usize = 64;

/// What the thread that holds the runs is asked for.
pub enum Order {
    /// To start the part of this name.
    Start(String, Box<PreparedScenario>),
    /// To end it.
    End(String),
}

/// The parts of an agent.
pub struct Parts {
    folder: PartFolder,
    started: Nanos,
    all: Mutex<BTreeMap<String, Part>>,
    orders: Sender<Order>,
    log: Arc<EventLog>,
}

struct Part {
    /// Without its report.
    state: PartState,
    report: Option<Value>,
    instance: Option<Arc<RunningInstance>>,
}

/// What a request for a name finds.
enum Reserved {
    /// A part that has the name for the same run.
    Running(PartState),
    /// Nothing in its way: the name is taken, and this part, which has ended, had it before.
    Taken(Option<Part>),
}

impl Part {
    /// Whether it runs or soon will, or has not ended yet.
    const fn is_alive(&self) -> bool {
        matches!(self.state.condition, Condition::Starting | Condition::Running | Condition::Ending)
    }
}

impl Parts {
    /// No parts yet. Their files will be in `folder`.
    pub fn new(folder: PartFolder, orders: Sender<Order>, log: Arc<EventLog>) -> Self {
        Self { folder, started: longwire_clock::realtime(), all: Mutex::default(), orders, log }
    }

    /// Notes that a part runs.
    pub fn runs(&self, name: &str, instance: Option<Arc<RunningInstance>>) {
        self.note(name, |part| (part.state.condition, part.instance) = (Condition::Running, instance));
    }

    /// Notes that a part has ended: with an error if by itself, with a report if it has run. Its files are
    /// removed.
    pub fn ended(&self, name: &str, error: Option<String>, report: Option<Value>) {
        if let Err(failure) = self.folder.clear(name) {
            let fields = [("scenario", name.into()), ("error", failure.to_string().into())];
            self.log.error("not-removed", &fields);
        }
        self.note(name, |part| {
            part.state.condition = if error.is_some() { Condition::Failed } else { Condition::Ended };
            (part.state.error, part.report, part.instance) = (error, report, None);
        });
    }

    fn note(&self, name: &str, change: impl FnOnce(&mut Part)) {
        if let Some(part) = self.all().get_mut(name) {
            change(part);
        }
    }

    /// The parts are valid even after a panic of another thread.
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Part>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the name for a run, so that no other request does, unless a part has it for this run.
    fn reserve(&self, name: &str, ask: &PartRequest) -> Result<Reserved, AgentError> {
        let mut all = self.all();
        match all.get(name).filter(|part| part.is_alive()) {
            Some(Part { state, .. }) if state.run == ask.run && state.condition != Condition::Ending => {
                return Ok(Reserved::Running(state.clone()));
            }
            Some(part) => {
                let other = &part.state.run;
                let reason =
                    format!("\"{name}\" is still here, of run {other}: end it, or take another name");
                return Err(AgentError::Refused(reason));
            }
            None if all.len() >= MOST_PARTS && !all.contains_key(name) => {
                let reason = format!("there are {MOST_PARTS} parts already: remove some that have ended");
                return Err(AgentError::Refused(reason));
            }
            None => {}
        }
        let (name, run, load_ppm) = (name.to_owned(), ask.run.clone(), ask.load_ppm);
        let condition = Condition::Starting;
        let state = PartState { name: name.clone(), run, condition, load_ppm, error: None, report: None };
        Ok(Reserved::Taken(all.insert(name, Part { state, report: None, instance: None })))
    }

    /// Gives back a name that was taken, to the part that had it before, if any.
    fn give_back(&self, name: &str, before: Option<Part>) {
        // What was not written is not there, and the request's error says the rest. The next request for the
        // name may write its own files as soon as the name is free.
        let _ = self.folder.clear(name);
        let mut all = self.all();
        match before {
            Some(part) => all.insert(name.to_owned(), part),
            None => all.remove(name),
        };
    }

    fn prepare(&self, name: &str, toml: &str, files: &PartFiles) -> Result<PreparedScenario, AgentError> {
        let file = self.folder.write(name, toml, files).map_err(|error| match error.kind() {
            // A file cannot be another one's folder, too.
            std::io::ErrorKind::NotADirectory | std::io::ErrorKind::AlreadyExists => {
                AgentError::Value { key: "files", reason: format!("they can't be written: {error}") }
            }
            _ => AgentError::Failed(format!("the files can't be written: {error}")),
        })?;
        let prepared = PreparedScenario::new(NamedScenario { name: name.into(), file }, None, &self.log);
        prepared.map_err(|error| AgentError::Value { key: "toml", reason: chain(error.as_ref()) })
    }
}

impl Agent for Parts {
    fn state(&self) -> AgentState {
        AgentState {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started_ns: self.started.0,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            parts: self.all().values().map(|part| part.state.clone()).collect(),
        }
    }

    fn part(&self, name: &str) -> Result<PartState, AgentError> {
        let all = self.all();
        let part = all.get(name).ok_or_else(|| AgentError::Unknown(name.into()))?;
        Ok(PartState { report: part.report.clone(), ..part.state.clone() })
    }

    fn start(&self, name: &str, ask: &PartRequest) -> Result<PartState, AgentError> {
        check_word("name", name, LONGEST_NAME)?;
        check_word("run", &ask.run, LONGEST_RUN)?;
        let files = PartFiles::read(&ask.files)?;
        let before = match self.reserve(name, ask)? {
            Reserved::Running(state) => return Ok(state),
            Reserved::Taken(before) => before,
        };
        let prepared = self.prepare(name, &ask.toml, &files);
        let ordered = prepared.and_then(|prepared| {
            let ending = |_| AgentError::Refused("the agent is ending".into());
            self.orders.send(Order::Start(name.into(), Box::new(prepared))).map_err(ending)
        });
        if let Err(error) = ordered {
            self.give_back(name, before);
            return Err(error);
        }
        self.part(name)
    }

    fn end(&self, name: &str) -> Result<PartState, AgentError> {
        let mut all = self.all();
        let part = all.get_mut(name).ok_or_else(|| AgentError::Unknown(name.into()))?;
        match part.state.condition {
            Condition::Starting => {
                return Err(AgentError::Refused(format!("\"{name}\" is starting: end it when it runs")));
            }
            Condition::Running => {
                part.state.condition = Condition::Ending;
                // Without that thread the agent is ending, and all parts with it.
                let _ = self.orders.send(Order::End(name.into()));
            }
            Condition::Ending => {}
            Condition::Ended | Condition::Failed => {
                let state = PartState { report: part.report.take(), ..part.state.clone() };
                all.remove(name);
                return Ok(state);
            }
        }
        Ok(part.state.clone())
    }

    fn instance(&self, name: &str) -> Option<Arc<dyn Instance>> {
        let instance = self.all().get(name)?.instance.clone()?;
        Some(instance)
    }
}

/// Checks a name that becomes part of paths and of other names.
fn check_word(key: &'static str, word: &str, longest: usize) -> Result<(), AgentError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=longest).contains(&word.len()) && word.chars().all(is_plain) && !word.starts_with(['-', '.']) {
        return Ok(());
    }
    let reason = format!("write 1 to {longest} letters, digits and -_. that begin with a letter or digit");
    Err(AgentError::Value { key, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_log::Format;
    use serde_json::json;
    use std::sync::mpsc::channel;

    #[test]
    fn a_refused_part_leaves_the_one_that_has_ended() {
        let folder = std::env::temp_dir().join(format!("longwire-refused-{}", std::process::id()));
        let (orders, ordered) = channel();
        let log = Arc::new(EventLog::new(Format::Text));
        let parts = Parts::new(PartFolder::open(&folder).unwrap(), orders, log);
        let state = PartState {
            name: "old".into(),
            run: "1".into(),
            condition: Condition::Ended,
            load_ppm: Some(7),
            error: None,
            report: None,
        };
        let ended = Part { state, report: Some(json!({ "command": "run" })), instance: None };
        parts.all().insert("old".into(), ended);
        let before = parts.part("old").unwrap();
        let wrong =
            PartRequest { run: "2".into(), toml: "none".into(), files: BTreeMap::new(), load_ppm: None };
        for name in ["old", "new"] {
            let refused = parts.start(name, &wrong).unwrap_err();
            assert!(matches!(refused, AgentError::Value { key: "toml", .. }), "{refused}");
        }
        assert_eq!(parts.part("old").unwrap(), before);
        assert_eq!(parts.part("new"), Err(AgentError::Unknown("new".into())));
        assert!(ordered.try_recv().is_err());
        assert!(!folder.join("longwire-parts").join("old").exists());
        drop(parts);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_are_plain() {
        let is_right = |word: &str| check_word("name", word, LONGEST_NAME).is_ok();
        assert!(["wan", "a", "wan-2.x_1"].into_iter().all(is_right));
        let wrong = ["", ".", "..", "-x", "a/b", "a b", "ä", "a\n", &"x".repeat(33)];
        assert!(!wrong.into_iter().any(is_right));
    }
}
