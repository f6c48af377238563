//! Rewires a running instance from one scenario to another: links and hosts are added and removed while
//! packets flow.

use crate::added_hosts::ChangedHosts;
use crate::instance::RunningInstance;
use crate::running_state::RunningState;
use longwire_assemble::{Rewired as Made, rewire};
use longwire_control::{Instance, RewireRequest, Rewired, RewiredObject, SetError};
use longwire_drivers::{HostDriver, Wire};
use longwire_scenario::{Plan, edited, parse_running};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

impl RunningInstance {
    /// Rewires the instance to the scenario `text`: new hosts and links join and missing ones leave, all at
    /// one instant. Remaining links keep their settings, whatever the text says. Packets of removed links are
    /// dropped and counted, unless the links are `drained`.
    ///
    /// # Errors
    /// If the scenario is invalid, or differs in what can't change in a run; then nothing has changed.
    pub fn bring(&self, text: &str, drained: bool) -> Result<Rewired, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        self.bring_alone(text, drained)
    }

    /// Adds and removes the requested objects; see [`RunningInstance::bring`].
    ///
    /// # Errors
    /// As there, or if there is no object of that name.
    pub fn edit(&self, ask: &RewireRequest) -> Result<Rewired, SetError> {
        let _alone = self.rewiring.lock().unwrap_or_else(PoisonError::into_inner);
        let text = Arc::clone(&self.state().plan.text);
        let text = edited(&text, &ask.add, &ask.remove);
        let text = text.map_err(|error| SetError::Refused(error.to_string()))?;
        self.bring_alone(&text, ask.drain)
    }

    /// The caller holds the lock.
    fn bring_alone(&self, text: &str, drained: bool) -> Result<Rewired, SetError> {
        let (old, layout) = {
            let state = self.state();
            (Arc::clone(&state.plan), Arc::clone(&state.layout))
        };
        let plan = parse_running(&old.file, text).map_err(|error| SetError::Refused(error.to_string()))?;
        let plan = Arc::new(as_running(&old, plan));
        let mut made =
            rewire(&old, &layout, &plan, drained).map_err(|error| SetError::Refused(error.to_string()))?;
        let done = Rewired { added: added(&plan, &made), removed: removed(&old, &made) };
        if done.added.is_empty() && done.removed.is_empty() && *plan.text == *old.text {
            return Ok(done);
        }
        let mut hosts = ChangedHosts::open(&Instance::name(self), &old, &plan, &made)?;
        made.give_ports(hosts.take_ports());
        let fresh: HashSet<u32> = made.added.iter().copied().collect();
        {
            let mut state = self.replace_state();
            self.remote().rewire(made.rewiring).map_err(|error| SetError::Unavailable(error.to_string()))?;
            let objects = state.objects.moved_to(&plan, &made.layout.links, &fresh);
            *state = RunningState::new(plan, objects, made.layout);
        }
        hosts.close()?;
        Ok(done)
    }
}

fn object(kind: &str, name: &str) -> RewiredObject {
    RewiredObject { kind: kind.into(), name: name.into() }
}

fn added(plan: &Plan, made: &Made) -> Vec<RewiredObject> {
    let hosts = plan.hosts[made.new_hosts.clone()].iter().map(|host| object("host", &host.name));
    let links = made.added.iter().map(|&place| object("link", &plan.links[place as usize].name));
    hosts.chain(links).collect()
}

fn removed(plan: &Plan, made: &Made) -> Vec<RewiredObject> {
    let links = made.removed.iter().map(|&place| object("link", &plan.links[place as usize].name));
    let hosts = plan.hosts[made.old_hosts.clone()].iter().map(|host| object("host", &host.name));
    links.chain(hosts).collect()
}

/// The plan with values chosen at the start of the run: memory, and how hosts are wired. Silenced sources
/// stay silent.
fn as_running(running: &Plan, mut plan: Plan) -> Plan {
    plan.engine = running.engine.clone();
    plan.sources.retain(|source| running.sources.iter().any(|known| known.name == source.name));
    for host in &mut plan.hosts {
        match running.hosts.iter().find(|known| known.name == host.name) {
            Some(known) => host.driver = known.driver,
            None if host.driver.wire == Wire::Tap && !longwire_lab::abilities().tap.available => {
                host.driver = HostDriver::VETH;
            }
            None => {}
        }
    }
    plan
}
