//! What the view knows: the last answers, what is selected, and what is being typed.

use crate::asking::{Answer, Ask, Look, ViewRequest};
use crate::fields;
use crate::history::History;
use crate::input::Edit;
use crate::line_edit::LineEdit;
use crate::list::List;
use longwire_control::{Kind, LoggedEvent, Object, ObjectPage, Summary};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

/// Entries of the log that are kept.
const MOST_EVENTS: usize = 1000;
/// Links up to which counters are asked for all the time. Counting more delays packets by so much that the
/// view waits until somebody wants it.
const MOST_COUNTED: usize = 100_000;

/// Whose instance is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstanceOwner {
    /// The run of this process, which ends with it.
    ThisProcess,
    /// Another process's.
    #[default]
    OtherProcess,
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tab {
    /// What its rows are, if they are objects, and not events.
    pub(crate) kind: Option<Kind>,
}

impl Tab {
    pub(crate) const LINKS: Self = Self::of(Kind::Link);
    pub(crate) const EVENTS: Self = Self { kind: None };
    const ALL: [Self; 8] = [
        Self::LINKS,
        Self::of(Kind::Source),
        Self::of(Kind::Medium),
        Self::of(Kind::Port),
        Self::of(Kind::Router),
        Self::of(Kind::Flow),
        Self::of(Kind::Forwarder),
        Self::EVENTS,
    ];

    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind: Some(kind) }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self.kind {
            Some(kind) => kind.collection(),
            None => "events",
        }
    }
}

impl Default for Tab {
    fn default() -> Self {
        Self::LINKS
    }
}

/// What keys mean.
#[derive(Debug, Clone, Default)]
pub(crate) enum Mode {
    /// They move and choose.
    #[default]
    Watch,
    /// They are what is looked for.
    Search(LineEdit),
    /// They change an object.
    Edit(Box<Edit>),
    /// They scroll the help: its first line.
    Help(usize),
    /// They say whether the run ends.
    Leave,
}

/// See the module.
#[derive(Default)]
pub(crate) struct App {
    pub(crate) owner: InstanceOwner,
    pub(crate) name: String,
    /// Where the dashboard is, if there is one.
    pub(crate) dashboard: Option<String>,
    pub(crate) tab: Tab,
    lists: HashMap<&'static str, List>,
    pub(crate) mode: Mode,
    pub(crate) look: Option<Box<Look>>,
    pub(crate) history: History,
    pub(crate) log: VecDeque<LoggedEvent>,
    after: u64,
    description: Value,
    /// Packets and bits per second that leave.
    pub(crate) pace: Option<(f64, f64)>,
    pub(crate) paused: bool,
    /// Links there are so many of that they are counted only when somebody wants it.
    pub(crate) too_many: Option<usize>,
    /// Why the last question had no answer.
    pub(crate) trouble: Option<String>,
    /// What was changed last, or why it was not.
    pub(crate) done: Option<Result<String, String>>,
    /// The instance has ended, for this reason.
    pub(crate) gone: Option<String>,
    /// Counters are wanted now.
    pub(crate) refresh: bool,
}

impl App {
    pub(crate) fn new(owner: InstanceOwner, name: String, dashboard: Option<String>) -> Self {
        Self { owner, name, dashboard, ..Self::default() }
    }

    pub(crate) fn list(&mut self) -> &mut List {
        self.lists.entry(self.tab.word()).or_default()
    }

    /// What the screen shows, to be asked for.
    pub(crate) fn wanted(&mut self) -> ViewRequest {
        let choice = self.list().choice();
        ViewRequest { kind: self.tab.kind, choice, after: self.after }
    }

    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.look.as_ref().map(|look| &look.summary)
    }

    /// The rows that are known of the open table.
    pub(crate) fn page(&self) -> Option<&ObjectPage> {
        let look = self.look.as_ref()?;
        look.page.as_ref().filter(|_| look.wanted.kind == self.tab.kind)
    }

    /// The object that is selected.
    pub(crate) fn selected(&mut self) -> Option<&Object> {
        let name = self.list().selected()?.to_owned();
        self.page()?.objects.iter().find(|object| object.name == name)
    }

    /// The tables that have rows.
    pub(crate) fn tabs(&self) -> Vec<(Tab, usize)> {
        let number = |tab: Tab| match (tab.kind, self.summary()) {
            (None, _) => self.log.len(),
            (Some(kind), Some(summary)) => summary.objects.get(kind.collection()).copied().unwrap_or(0),
            (Some(_), None) => 0,
        };
        let always = [Tab::LINKS, Tab::EVENTS];
        let all = Tab::ALL.into_iter().map(|tab| (tab, number(tab)));
        all.filter(|(tab, number)| *number > 0 || always.contains(tab) || *tab == self.tab).collect()
    }

    /// Opens the next table, or the one before.
    pub(crate) fn turn(&mut self, forward: bool) {
        let tabs = self.tabs();
        let at = tabs.iter().position(|(tab, _)| *tab == self.tab).unwrap_or(0);
        let step = if forward { 1 } else { tabs.len() - 1 };
        self.tab = tabs[(at + step) % tabs.len()].0;
        if self.tab == Tab::EVENTS {
            let events = self.log.len();
            self.list().set_total(events);
        }
    }

    /// A change of the selected object, to be written; of a duplex link's directions both, if wanted.
    pub(crate) fn edit(&mut self, both: bool) -> Option<Edit> {
        let kind = self.tab.kind?;
        let object = self.selected()?;
        let (name, settings) = (object.name.clone(), object.settings.clone());
        let duplex = [".forward", ".backward"].into_iter().find_map(|tail| name.strip_suffix(tail));
        let target =
            duplex.filter(|_| both && kind == Kind::Link).map_or_else(|| name.clone(), str::to_owned);
        Some(Edit::new((kind, target), fields::of(&self.description, kind), settings))
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, answer: Answer) {
        match answer {
            Answer::Links(links) if links > MOST_COUNTED => {
                (self.too_many, self.paused) = (Some(links), true);
            }
            Answer::Links(_) => {}
            Answer::Described(description) => self.description = description,
            Answer::Looked(Ok(look)) => self.take_look(look),
            Answer::Looked(Err(error)) if error.gone => self.gone = Some(error.reason),
            Answer::Looked(Err(error)) => self.trouble = Some(error.reason),
            Answer::Set(result) => self.take_result(result.map_err(|error| error.reason)),
        }
    }

    fn take_look(&mut self, look: Box<Look>) {
        self.trouble = None;
        // Behind an address, time that runs backwards is that of another run.
        if self.summary().is_some_and(|before| look.summary.elapsed_ns < before.elapsed_ns) {
            (self.look, self.pace, self.history) = (None, None, History::default());
            self.log.clear();
            if look.wanted.after > 0 {
                // Its log was not asked for from the beginning.
                self.after = 0;
                self.refresh = true;
                return;
            }
        }
        if let Some(before) = self.summary() {
            let now = &look.summary;
            let seconds = now.elapsed_ns.saturating_sub(before.elapsed_ns) as f64 / 1e9;
            if seconds > 0.0 {
                let grown = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
                let packets = grown(now.out_packets, before.out_packets);
                self.pace = Some((packets, grown(now.out_bytes, before.out_bytes) * 8.0));
            }
        }
        self.after = look.events.last;
        self.log.extend(look.events.log.iter().cloned());
        let extra = self.log.len().saturating_sub(MOST_EVENTS);
        self.log.drain(..extra);
        if self.look.is_none() && self.tab == Tab::LINKS {
            // A net without links has something else to show.
            let has_rows = |tab: &Tab| {
                tab.kind
                    .is_some_and(|kind| look.summary.objects.get(kind.collection()).is_some_and(|n| *n > 0))
            };
            self.tab = Tab::ALL.into_iter().find(has_rows).unwrap_or(Tab::LINKS);
        }
        if let (Some(page), true) = (&look.page, look.wanted.kind == self.tab.kind) {
            self.history.add(page);
            self.list().take(page);
        }
        if self.tab == Tab::EVENTS {
            let events = self.log.len();
            self.list().set_total(events);
        }
        self.look = Some(look);
    }

    fn take_result(&mut self, result: Result<Object, String>) {
        // One that was left meanwhile has its result shown all the same.
        let waiting = match &mut self.mode {
            Mode::Edit(edit) if edit.sent => Some(edit),
            _ => None,
        };
        match (result, waiting) {
            (Ok(object), waiting) => {
                self.done = Some(Ok(format!("{} was changed", object.name)));
                self.refresh = true;
                if waiting.is_some() {
                    self.mode = Mode::Watch;
                }
            }
            (Err(reason), Some(edit)) => (edit.error, edit.sent) = (Some(reason), false),
            (Err(reason), None) => self.done = Some(Err(reason)),
        }
    }

    /// The question that makes a change.
    pub(crate) fn change(edit: &mut Edit) -> Option<Ask> {
        match edit.pairs() {
            Ok(changes) => {
                edit.sent = true;
                Some(Ask::Set { kind: edit.kind, name: edit.target.clone(), changes })
            }
            Err(reason) => {
                edit.error = Some(reason);
                None
            }
        }
    }

    /// What is known of a program, or of a router's budget. `budget_share` is what a packet needs at worst.
    pub(crate) fn program(&self, object: &Object) -> Option<Value> {
        let programs = &self.look.as_ref()?.programs;
        let of = |router: &str| programs.iter().find(|(name, _)| name == router).map(|(_, answer)| answer);
        match object.kind {
            Kind::Router => {
                let answer = of(&object.name)?;
                let budget = answer["budget"].as_object()?;
                let share = |(unit, most): (&String, &Value)| {
                    Some(answer["need"][unit].as_f64()? / most.as_f64().filter(|most| *most > 0.0)?)
                };
                let worst = budget.iter().filter_map(share).reduce(f64::max)?;
                let programs = answer["forwarders"].as_array().map_or(0, Vec::len);
                Some(json!({ "budget_share": worst, "programs": programs }))
            }
            Kind::Forwarder => {
                let (router, called) = object.name.rsplit_once('/')?;
                let answer = of(router)?;
                let own = |one: &&Value| {
                    one["name"] == *called || one["fid"].as_u64().is_some_and(|fid| called.parse() == Ok(fid))
                };
                let mut program = answer["forwarders"].as_array()?.iter().find(own)?.clone();
                let share =
                    program["cost"]["worst_case_ns"].as_f64().zip(answer["budget"]["picoseconds"].as_f64());
                program["budget_share"] = share.map(|(need, most)| need * 1000.0 / most.max(1.0)).into();
                Some(program)
            }
            _ => None,
        }
    }
}
