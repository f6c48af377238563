//! Entries of `[[at]]` in the scenario of a run. Objects that are gone are left out of entries that are over,
//! and refused in others.

use super::{Entry, Resolver};
use crate::file::At;
use crate::plan::Plan;
use crate::settings::AtSettings;
use crate::written::{Name, Written};
use longwire_units::Nanos;
use std::ops::Range;

/// A run that is brought to the scenario.
#[derive(Clone, Copy)]
pub(crate) struct RunSoFar<'p> {
    /// Its scenario before.
    pub(crate) plan: &'p Plan,
    /// Time since its start.
    pub(crate) elapsed: Nanos,
}

/// The name of an object that is gone, and its place in the file.
pub(super) struct GoneName {
    span: Range<usize>,
    name: Box<str>,
}

/// What is left out of an entry.
pub(crate) struct LeftOut {
    /// The entry's place in the file.
    pub(crate) span: Range<usize>,
    /// Its index among the entries.
    pub(crate) index: usize,
    /// The places of names; none if all of the entry is left out.
    pub(crate) names: Vec<Range<usize>>,
}

impl Resolver<'_, '_> {
    /// Whether the run had the object of a name that is not in the scenario; notes it then, for
    /// [`Resolver::leave_out`].
    pub(super) fn is_gone(
        &mut self,
        written: &Written<Name>,
        name: &str,
        was_there: impl FnOnce(&Plan) -> bool,
    ) -> bool {
        let is_gone = self.run.is_some_and(|run| was_there(run.plan));
        if is_gone {
            self.gone.push(GoneName { span: written.span.clone(), name: name.into() });
        }
        is_gone
    }

    /// Checks that an event whose object is gone is `over` by now. None after an error.
    pub(super) fn check_over(&mut self, entry: &Entry<'_>, key: &str, over: Nanos) -> Option<()> {
        let GoneName { span, name } = self.gone.last()?;
        if self.run.is_some_and(|run| over <= run.elapsed) {
            return Some(());
        }
        let what = format!("it changes \"{name}\", which would not be there any more");
        let fix = format!("take that event away first, or remove \"{name}\" when it is over");
        let span = span.clone();
        self.refuse(&span, entry, key, what, fix)
    }

    /// Whether the router of an event is gone; the event is over then. None after an error.
    pub(super) fn is_without_router(&mut self, entry: &Entry<'_>, written: &At) -> Option<bool> {
        let named = written.router.as_ref()?;
        let name = self.term(entry, "router", named)?.0;
        let was_there = |plan: &Plan| plan.routers.iter().any(|router| *router.name == *name);
        if self.routers.contains_key(&name) || !self.is_gone(named, &name, was_there) {
            return Some(false);
        }
        let settings: AtSettings = self.row(entry, written)?;
        self.check_over(entry, "router", settings.time)?;
        Some(true)
    }

    /// Notes what is left out of an entry, which has named this many objects, those of each event counted.
    pub(super) fn leave_out(&mut self, (index, written): (usize, &At), named: usize) {
        let gone = std::mem::take(&mut self.gone);
        let Some(first) = gone.first().filter(|_| !self.findings.failed()) else { return };
        let is_whole = gone.len() == named;
        if !is_whole && written.repeats().span("count").is_some() {
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            let what = format!("\"{}\" is one of several that an entry with a count changes", first.name);
            let fix = "write an entry for each, and apply that";
            return self.error(&first.span, &entry, "", what, fix);
        }
        let names = if is_whole { Vec::new() } else { gone.into_iter().map(|gone| gone.span).collect() };
        self.left_out.push(LeftOut { span: written.span.clone(), index, names });
    }
}
