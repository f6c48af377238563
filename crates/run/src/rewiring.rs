//! Bringing a running instance from one scenario to another: links are added and removed while packets flow.

use crate::instance::RunningInstance;
use crate::running_state::RunningState;
use longwire_assemble::rewire;
use longwire_control::{RewireAsk, Rewired, SetError};
use longwire_scenario::{Plan, edited, parse_running};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

impl RunningInstance {
    /// Brings it to the scenario that `text` describes: its links that are new join, those that it has no
    /// more leave, all at one instant. Links that stay keep what they are set to, whatever the text says.
    /// What removed links hold is dropped and counted, unless they are `drained`.
    ///
    /// # Errors
    /// If the scenario is wrong, or differs in what can't change while it runs; nothing has changed then.
    pub fn bring(&self, text: &str, drained: bool) -> Result<Rewired, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        self.bring_alone(text, drained)
    }

    /// Adds and removes what is asked for: see [`RunningInstance::bring`].
    ///
    /// # Errors
    /// As there, or if there is nothing of that name.
    pub fn edit(&self, ask: &RewireAsk) -> Result<Rewired, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        let text = Arc::clone(&self.state().plan.text);
        let text = edited(&text, &ask.add, &ask.remove);
        let text = text.map_err(|error| SetError::Refused(error.to_string()))?;
        self.bring_alone(&text, ask.drain)
    }

    /// Nobody else does it meanwhile.
    fn bring_alone(&self, text: &str, drained: bool) -> Result<Rewired, SetError> {
        let (old, layout) = {
            let state = self.state();
            (Arc::clone(&state.plan), Arc::clone(&state.layout))
        };
        let plan = parse_running(&old.file, text).map_err(|error| SetError::Refused(error.to_string()))?;
        let plan = Arc::new(as_running(&old, plan));
        let made =
            rewire(&old, &layout, &plan, drained).map_err(|error| SetError::Refused(error.to_string()))?;
        let name = |plan: &Plan, place: &u32| plan.links[*place as usize].name.to_string();
        let done = Rewired {
            added: made.added.iter().map(|place| name(&plan, place)).collect(),
            removed: made.removed.iter().map(|place| name(&old, place)).collect(),
        };
        if done.added.is_empty() && done.removed.is_empty() && *plan.text == *old.text {
            return Ok(done);
        }
        let fresh: HashSet<u32> = made.added.into_iter().collect();
        let mut state = self.replace_state();
        self.remote().rewire(made.rewiring).map_err(|error| SetError::Unavailable(error.to_string()))?;
        let objects = state.objects.moved_to(&plan, &made.layout.links, &fresh);
        *state = RunningState::new(plan, objects, made.layout);
        Ok(done)
    }
}

/// The plan with what the start of the run has settled: memory, and how hosts are wired. Sources that were
/// silenced are so here.
fn as_running(running: &Plan, mut plan: Plan) -> Plan {
    plan.engine = running.engine.clone();
    plan.sources.retain(|source| running.sources.iter().any(|known| known.name == source.name));
    for host in &mut plan.hosts {
        if let Some(known) = running.hosts.iter().find(|known| known.name == host.name) {
            host.driver = known.driver;
        }
    }
    plan
}
