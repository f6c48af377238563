//! Entries of `[[at]]` that add links or remove them.

use super::{Entry, Resolver};
use crate::file::{At, File};
use crate::settings::AtSettings;
use longwire_units::Nanos;
use std::ops::Range;

/// The request of an entry.
pub(crate) struct StageRequest {
    /// Its place in the file.
    pub(crate) span: Range<usize>,
    pub(crate) time: Nanos,
    /// Sections to add.
    pub(crate) add: String,
    /// Names to remove.
    pub(crate) remove: Vec<String>,
    pub(crate) drain: bool,
}

/// Whether an entry adds or removes objects.
pub(super) fn rewires(written: &At) -> bool {
    written.add.is_some() || written.remove.is_some()
}

impl Resolver<'_, '_> {
    /// Additions and removals by time.
    pub(super) fn stages(&mut self, file: &File) -> Vec<StageRequest> {
        for written in file.at.iter().filter(|at| !rewires(at)) {
            if let Some(span) = written.span("drain") {
                let entry = Entry { section: "at", name: written.text("time"), n: None };
                let what = "drain has no meaning without remove";
                self.error(span, &entry, "drain", what, "leave it out, or name the links to remove");
            }
        }
        let entries = file.at.iter().filter(|at| rewires(at));
        let mut stages: Vec<_> = entries.filter_map(|written| self.stage(written)).collect();
        stages.sort_by_key(|stage| stage.time);
        stages
    }

    /// A request. None after an error.
    fn stage(&mut self, written: &At) -> Option<StageRequest> {
        let entry = Entry { section: "at", name: written.text("time"), n: None };
        let others = written.link.is_some()
            || written.source.is_some()
            || written.medium.is_some()
            || written.router.is_some()
            || !written.blocks.is_empty();
        let repeated = ["count", "first"].iter().any(|key| written.repeats().span(key).is_some())
            || ["ramp", "step", "every", "times"].iter().any(|key| written.span(key).is_some());
        if others || repeated {
            let what = "it adds or removes something, which stands alone and happens once";
            let fix = "write an entry for each time, and others for what else changes";
            return self.refuse(&written.span, &entry, "", what, fix);
        }
        let AtSettings { time, drain, .. } = self.row(&entry, written)?;
        let names = written.remove.iter().flat_map(|names| &names.0);
        let remove = names.map(|name| Some(self.term(&entry, "remove", name)?.0.into_string()));
        let remove: Vec<String> = remove.collect::<Option<_>>()?;
        let add = written.add.as_ref().map(|text| text.text.clone()).unwrap_or_default();
        Some(StageRequest { span: written.span.clone(), time, add, remove, drain })
    }
}
