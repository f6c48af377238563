//! Objects of a running instance, with their settings and counters.

use crate::instance::RunningInstance;
use crate::link_now::{find, link_stats};
use crate::running_state::{MOST_COMPARED, RunningState};
use longwire_control::{Kind, Object, SetError};
use longwire_engine::Report;
use std::sync::Arc;

impl RunningInstance {
    /// An object, or the objects that a name matches, with counters, and with settings as last known.
    pub(crate) fn show(&self, state: &RunningState, kind: Kind, name: &str) -> Result<Object, SetError> {
        let members = state.objects.members(kind, name)?;
        let counted = self.counted_for(state, kind, members.as_deref().unwrap_or(&[name.into()]));
        let one = |name: &String| self.show_one(state, (kind, name), counted.as_ref());
        match &members {
            None => one(&name.into()),
            Some(all) => Ok(Object::several(kind, name, all.iter().map(one).collect::<Result<_, _>>()?)),
        }
    }

    /// Counters that include those of some objects of a kind, if they are among the workers'.
    pub(crate) fn counted_for(
        &self,
        state: &RunningState,
        kind: Kind,
        names: &[String],
    ) -> Option<Arc<Report>> {
        match kind {
            // Workers hold up their packets while they count all links: of very many, only these are counted.
            Kind::Link if state.plan.links.len() > MOST_COMPARED => {
                let places = names.iter().filter_map(|name| state.objects.links.place(name));
                let links: Vec<_> = places.map(|place| state.layout.links[place as usize]).collect();
                let mut links = self.remote().links(&links).ok()?;
                links.sort_unstable_by_key(|link| link.place);
                Some(Arc::new(Report { links, ..Report::default() }))
            }
            Kind::Link | Kind::Source | Kind::Port | Kind::Router => self.recent(state).ok(),
            Kind::Medium | Kind::Flow | Kind::Forwarder => None,
        }
    }

    /// An object with the counters of a report.
    pub(crate) fn show_one(
        &self,
        state: &RunningState,
        (kind, name): (Kind, &str),
        counted: Option<&Arc<Report>>,
    ) -> Result<Object, SetError> {
        let (settings, links) = (state.objects.settings(self.remote(), kind, name)?, &state.objects.links);
        let stats = || match kind {
            Kind::Link => link_stats(state, find(&counted?.links, links.place(name)?)?),
            Kind::Source | Kind::Port | Kind::Router => {
                let ran = self.ran(state, Arc::clone(counted?), self.elapsed(), Vec::new());
                serde_json::to_value(ran.row_of(kind, name)?).ok()
            }
            Kind::Flow => Some(state.objects.routers.flow(self.remote(), name).ok()?.1),
            Kind::Medium | Kind::Forwarder => None,
        };
        let place = if kind == Kind::Link { links.place(name) } else { None };
        let notes = place.map(|place| links.notes(place)).unwrap_or_default();
        let stats = stats().unwrap_or_default();
        Ok(Object { kind, name: name.into(), settings, stats, members: Vec::new(), notes })
    }
}
