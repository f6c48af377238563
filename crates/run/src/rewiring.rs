//! Bringing a running instance from one scenario to another: links, hosts and ports are added and removed
//! while packets flow.

use crate::changed_ports::ChangedPorts;
use crate::comparison::without_changes;
use crate::instance::RunningInstance;
use crate::planned_rewiring::PlannedRewiring;
use crate::running_state::RunningState;
use longwire_control::{Comparison, Instance, RewireRequest, Rewired, ScenarioRequest, SetError};
use longwire_scenario::{Plan, advanced, changed_sections, edited, parse_after};
use longwire_units::Nanos;
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::{Arc, PoisonError};

impl RunningInstance {
    /// Brings it to a scenario: settings of links, sources and media change at one instant, then those of
    /// routers, then links, hosts and ports join and leave at one instant. All is checked, hosts are made
    /// and ports opened, before anything changes. What removed links hold is dropped and counted.
    ///
    /// # Errors
    /// If the scenario is wrong, or differs in what can't change while it runs and the rest is not wanted;
    /// nothing has changed then.
    pub(crate) fn bring(&self, wanted: &ScenarioRequest) -> Result<Comparison, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        let (shown, text, rewiring) = {
            let state = self.state();
            let running = self.running(&state);
            let (shown, changes, rewiring) = running.changes_to(wanted)?;
            let text = changes.text();
            let rewiring = rewiring.map(|planned| self.with_ports(planned)).transpose()?;
            running.make(changes)?;
            (shown, text, rewiring)
        };
        match rewiring {
            Some((planned, ports)) => self.take_over(planned, ports)?,
            None if shown.refused.is_empty() => {
                // The objects are the same: only the text differs.
                let mut state = self.replace_state();
                state.plan = Arc::new(Plan { text, ..(*state.plan).clone() });
            }
            None => {}
        }
        Ok(shown)
    }

    /// Adds and removes what is asked for, all at one instant. Links that stay keep what they are set to.
    /// What removed links hold is dropped and counted, unless they are drained.
    ///
    /// # Errors
    /// If there is nothing of a name, or the scenario would be wrong, or differ in what can't change while it
    /// runs; nothing has changed then.
    pub fn edit(&self, ask: &RewireRequest) -> Result<Rewired, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        let old = Arc::clone(&self.state().plan);
        // Changes that were written behind the scenario are what objects are set to: they stay that.
        let old = without_changes(&old.text);
        let text = edited(old, &ask.add, &ask.remove).map_err(refused)?;
        if let Some(section) = changed_sections(old, &text).first() {
            return Err(SetError::Refused(format!(
                "{section} differs, and only links, hosts, ports and bridges can be added and removed while \
                 it runs: start it again"
            )));
        }
        self.follow(&text, ask.drain)
    }

    /// Adds and removes what the scenario's events up to `time` say.
    ///
    /// # Errors
    /// As [`RunningInstance::edit`].
    pub(crate) fn advance(&self, time: Nanos, drained: bool) -> Result<Rewired, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        let old = Arc::clone(&self.state().plan);
        self.follow(&advanced(without_changes(&old.text), time).map_err(refused)?, drained)
    }

    /// Brings it to the objects of the scenario `text`. The caller has the lock.
    fn follow(&self, text: &str, drained: bool) -> Result<Rewired, SetError> {
        let (old, layout) = {
            let state = self.state();
            (Arc::clone(&state.plan), Arc::clone(&state.layout))
        };
        let plan = parse_after(&old, text).map_err(refused)?;
        let planned = PlannedRewiring::new(&old, &layout, &plan, drained).map_err(refused)?;
        let done = planned.objects();
        if planned.is_empty() && *text == *old.text {
            return Ok(done);
        }
        let (planned, ports) = self.with_ports(planned)?;
        self.take_over(planned, ports)?;
        Ok(done)
    }

    /// Makes the hosts that a rewiring adds, and opens its ports.
    fn with_ports(&self, mut planned: PlannedRewiring) -> Result<(PlannedRewiring, ChangedPorts), SetError> {
        let PlannedRewiring { old, new, made } = &mut planned;
        let mut ports = ChangedPorts::open(&Instance::name(self), old, new, made)?;
        made.give_ports(ports.take_ports());
        Ok((planned, ports))
    }

    /// Lets the engine take over what was planned. The caller has the lock.
    fn take_over(&self, planned: PlannedRewiring, mut ports: ChangedPorts) -> Result<(), SetError> {
        let PlannedRewiring { new, made, .. } = planned;
        let fresh: HashSet<u32> = made.added.iter().copied().collect();
        if let Some(logged) = self.logged.get() {
            logged.place(&new, &made.layout.links, made.added.iter().copied());
        }
        {
            let mut state = self.replace_state();
            self.remote().rewire(made.rewiring).map_err(|error| SetError::Unavailable(error.to_string()))?;
            ports.keep();
            let objects = state.objects.moved_to(&new, &made.layout.links, &fresh);
            *state = RunningState::new(new, objects, made.layout);
        }
        ports.close()
    }
}

fn refused(error: impl Display) -> SetError {
    SetError::Refused(error.to_string())
}
